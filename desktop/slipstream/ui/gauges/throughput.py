"""The throughput gauge: tokens per second now, over the last minute, and how the answer began."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream.ui.gauges.repaint_limit import REPAINT_MS, RepaintLimit
from slipstream.ui.gauges.sparkline import RateHistory, draw_sparkline
from slipstream.ui.theme import (
    CAPTION_PX,
    FIGURE_PX,
    SPACE_S,
    SPACE_XS,
    interface_font,
    tabular_font,
    theme,
)

NOTHING = "–"
NOTHING_MEASURED = "Measured with the first answer"
_FIGURE_HEIGHT, _SPARK_HEIGHT, _CAPTION_HEIGHT = 36, 40, 18


class ThroughputGauge(QWidget):
    """Shows the rates it is given; computes none. Its size never depends on the numbers.

    `clock` gives seconds for the time axis. While an answer is written the figure is the current
    rate; afterwards it is the average of that answer, and says so.
    """

    def __init__(
        self,
        parent: QWidget | None = None,
        clock: Callable[[], float] = time.monotonic,
        interval_ms: int = REPAINT_MS,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("throughput_gauge")
        self.setAccessibleName("Speed")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._clock = clock
        self._history = RateHistory()
        self._current: float | None = None
        self._average: float | None = None
        self._prefill: float | None = None
        self._first_token: float | None = None
        self._live = False
        self._limit = RepaintLimit(self, interval_ms)
        self._limit.due.connect(self._show)
        self.setToolTip(
            "Tokens per second: the figure is the last second, the line the last minute.\n"
            "Below it: how fast the prompt was read and when the first token came."
        )
        self._describe()

    @property
    def history(self) -> RateHistory:
        """The samples of the last minute."""
        return self._history

    def set_rate(self, current: float | None, average: float | None) -> None:
        """A round of an answer: the rate of about the last second and that of the answer so far."""
        self._live = True
        self._current, self._average = current, average
        if current is not None:
            self._history.add(self._clock(), current)
        self._limit.request()

    def set_prefill(self, tokens_per_second: float | None) -> None:
        """How fast the prompt is or was read; None when nothing had to be evaluated."""
        self._prefill = tokens_per_second
        self._limit.request()

    def set_first_token(self, seconds: float | None) -> None:
        """When the first token came, in seconds after the message was sent."""
        self._first_token = seconds
        self._limit.request()

    def set_idle(self) -> None:
        """The answer ended: the figure becomes its average."""
        self._live = False
        self._current = None
        self._history.pause()
        self._limit.request()

    def reset(self) -> None:
        """Forgets everything, as after another model was loaded."""
        self._live = False
        self._current = self._average = self._prefill = self._first_token = None
        self._history.clear()
        self._limit.request()

    @property
    def idle(self) -> bool:
        """Whether no repaint is pending and no timer runs."""
        return self._limit.idle

    @property
    def figure(self) -> str:
        """The big number."""
        return rate_in_words(self._current if self._live else self._average)

    @property
    def caption(self) -> str:
        """The words beside the big number."""
        if self._live or self._average is None:
            return "tok/s"
        return "tok/s, last answer"

    @property
    def aside(self) -> str:
        """The words at the right: the average while the figure is the current rate."""
        if self._live and self._average is not None:
            return f"average {rate_in_words(self._average)}"
        return ""

    @property
    def line(self) -> str:
        """The words below the sparkline."""
        if not self._live and self._average is self._prefill is self._first_token is None:
            return NOTHING_MEASURED
        prefill = rate_in_words(self._prefill)
        first = NOTHING if self._first_token is None else seconds_in_words(self._first_token)
        unit = "" if self._prefill is None else " tok/s"
        return f"Prompt {prefill}{unit} · first token {first}"

    @Slot()
    def _show(self) -> None:
        self._describe()
        self.update()

    def _describe(self) -> None:
        figure = self.figure
        rate = "not measured yet" if figure == NOTHING else f"{figure} {self.caption}"
        self.setAccessibleDescription(f"{rate}. {self.aside or 'No average'}. {self.line}.")

    def sizeHint(self) -> QSize:
        height = _FIGURE_HEIGHT + _SPARK_HEIGHT + _CAPTION_HEIGHT + SPACE_XS + SPACE_S
        return QSize(240, height)

    def minimumSizeHint(self) -> QSize:
        return QSize(180, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        width = float(self.width())
        big, small = tabular_font(FIGURE_PX), tabular_font(CAPTION_PX)
        baseline = QFontMetricsF(big).ascent()
        painter.setFont(big)
        measured = self.figure != NOTHING
        painter.setPen(QColor(tokens.text if measured else tokens.muted))
        painter.drawText(QRectF(0, 0, width, _FIGURE_HEIGHT), _LEFT, self.figure)
        painter.setFont(small)
        painter.setPen(QColor(tokens.muted))
        taken = QFontMetricsF(big).horizontalAdvance(self.figure)
        if measured and self._live:  # changing digits are not to move the words
            taken = max(taken, QFontMetricsF(big).horizontalAdvance("00.0"))
        slot = taken + SPACE_S
        top = baseline - QFontMetricsF(small).ascent()
        words = QRectF(slot, top, width - slot, _CAPTION_HEIGHT)
        painter.drawText(words, _LEFT, self.caption)
        painter.drawText(words, _RIGHT, self.aside)
        spark = QRectF(0, _FIGURE_HEIGHT + SPACE_XS, width, _SPARK_HEIGHT)
        draw_sparkline(painter, spark, self._history, tokens, self._live)
        painter.setFont(interface_font(CAPTION_PX) if not measured else small)
        below = QRectF(0, spark.bottom() + SPACE_S, width, _CAPTION_HEIGHT)
        words_below = QFontMetricsF(small).elidedText(
            self.line, Qt.TextElideMode.ElideRight, below.width()
        )
        painter.drawText(below, _LEFT, words_below)
        painter.end()


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop


def rate_in_words(rate: float | None) -> str:
    """A rate in at most four digits: 9.6, 41.8, 310; a dash when nothing was measured."""
    if rate is None:
        return NOTHING
    return f"{rate:.1f}" if rate < 99.95 else f"{rate:.0f}"


def seconds_in_words(seconds: float) -> str:
    """A short time: 0.42 s, 12.3 s, 128 s."""
    digits = 2 if seconds < 9.995 else 1 if seconds < 99.95 else 0
    return f"{seconds:.{digits}f} s"
