"""The last minute of a rate: samples with their times, and the line drawn from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from slipstream.ui.painting import tinted
from slipstream.ui.theme import Tokens

WINDOW_SECONDS = 60.0
MERGE_SECONDS = 0.25  # samples closer than this, about a pixel, count as one: the newest


class RateHistory:
    """Rates of the last minute. A pause separates two answers; the clock is the caller's."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float | None]] = deque()
        self._bucket = -math.inf  # when the newest sample's interval began

    def __len__(self) -> int:
        return sum(rate is not None for _, rate in self._samples)

    def add(self, now: float, rate: float) -> None:
        """Keeps a rate measured at `now` (seconds, never running backwards)."""
        if (
            self._samples
            and now - self._bucket < MERGE_SECONDS
            and self._samples[-1][1] is not None
        ):
            self._samples.pop()
        else:
            self._bucket = now
        self._samples.append((now, rate))
        while self._samples[0][0] < now - WINDOW_SECONDS:
            self._samples.popleft()

    def pause(self) -> None:
        """Ends the line; the next sample starts a new one."""
        if self._samples and self._samples[-1][1] is not None:
            self._samples.append((self._samples[-1][0], None))

    def clear(self) -> None:
        """Forgets everything."""
        self._samples.clear()
        self._bucket = -math.inf

    @property
    def ceiling(self) -> float:
        """The round number the scale ends at: 1, 2 or 5 times a power of ten."""
        highest = max((rate for _, rate in self._samples if rate is not None), default=0.0)
        if highest <= 0:
            return 1.0
        power = 10.0 ** math.floor(math.log10(highest))
        return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= highest)

    def lines(self) -> Iterator[list[tuple[float, float]]]:
        """Unbroken runs of (seconds before the newest sample, rate), oldest first."""
        if not self._samples:
            return
        newest = self._samples[-1][0]
        run: list[tuple[float, float]] = []
        for moment, rate in self._samples:
            if rate is not None:
                run.append((newest - moment, rate))
            elif run:
                yield run
                run = []
        if run:
            yield run


def draw_sparkline(
    painter: QPainter, area: QRectF, history: RateHistory, tokens: Tokens, live: bool
) -> None:
    """Draws the history into an area, the newest sample at its right end."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(QRectF(area.left(), area.bottom() - 1, area.width(), 1), QColor(tokens.border))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    color = QColor(tokens.accent if live else tokens.muted)
    pen = QPen(color, 1.0)  # anything wider takes Qt five times as long
    plot = area.adjusted(1, 2, -3, -2)
    across, up = plot.width() / WINDOW_SECONDS, plot.height() / history.ceiling
    last = None
    for run in history.lines():
        points = [
            QPointF(plot.right() - age * across, plot.bottom() - rate * up) for age, rate in run
        ]
        last = points[-1]
        ground = [QPointF(last.x(), plot.bottom()), QPointF(points[0].x(), plot.bottom())]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tinted(color.name(), 0.14))
        painter.drawPolygon(QPolygonF([*points, *ground]))
        painter.setPen(pen)
        painter.drawPolyline(QPolygonF(points))
    if last is not None and live:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawEllipse(last, 2.5, 2.5)
    painter.restore()
