"""The context meter: how much of the context window the KV cache really holds."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream.ui.gauges.repaint_limit import REPAINT_MS, RepaintLimit
from slipstream.ui.theme import CAPTION_PX, CONTROL_PX, SPACE_S, tabular_font, theme

WARN_FROM = 0.85
_RING, _STROKE = 18.0, 3.5


class ContextMeter(QWidget):
    """A ring and words such as “1.2k / 8k tokens”; the exact numbers are in the tooltip."""

    def __init__(self, parent: QWidget | None = None, interval_ms: int = REPAINT_MS) -> None:
        super().__init__(parent)
        self.setObjectName("context_meter")
        self.setAccessibleName("Context")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._used = self._capacity = 0
        self._limit = RepaintLimit(self, interval_ms)
        self._limit.due.connect(self._show)
        self._describe()

    def set_usage(self, used: int, capacity: int) -> None:
        """Tokens in the KV cache and how many fit; a capacity of 0 means no model."""
        if (used, capacity) != (self._used, self._capacity):
            self._used, self._capacity = used, capacity
            self._limit.request()

    @property
    def share(self) -> float:
        """The used part of the window, 0 to 1."""
        return min(self._used / self._capacity, 1.0) if self._capacity else 0.0

    @property
    def text(self) -> str:
        """The short numbers."""
        return usage_in_words(self._used, self._capacity)

    @property
    def warning(self) -> str:
        """Words for a window that is running out; empty before that."""
        if self._capacity and self._used >= self._capacity:
            return "context full"
        return "nearly full" if self.share >= WARN_FROM else ""

    @Slot()
    def _show(self) -> None:
        self._describe()
        self.update()

    def _describe(self) -> None:
        if not self._capacity:
            words = "No model is loaded, so there is no context yet."
        else:
            left = max(self._capacity - self._used, 0)
            words = (
                f"{self._used:,} of {self._capacity:,} tokens are in the KV cache "
                f"({self.share:.0%}); {left:,} are free."
            )
        self.setToolTip(words)
        self.setAccessibleDescription(f"{words} {self.warning}".strip())

    def sizeHint(self) -> QSize:
        return QSize(240, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(180, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        color = QColor(tokens.warn if self.warning else tokens.accent)
        inset = _STROKE / 2
        ring = QRectF(inset, middle - _RING / 2 + inset, _RING - _STROKE, _RING - _STROKE)
        painter.setPen(QPen(QColor(tokens.border), _STROKE))
        painter.drawEllipse(ring)
        if self.share > 0:
            pen = QPen(color, _STROKE)
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            painter.setPen(pen)
            painter.drawArc(ring, 90 * 16, -max(round(self.share * 360 * 16), 16 * 8))
        words = QRectF(_RING + SPACE_S, 0, self.width() - _RING - SPACE_S, self.height())
        painter.setFont(tabular_font(CONTROL_PX))
        painter.setPen(QColor(tokens.text if self._capacity else tokens.muted))
        text = QFontMetricsF(painter.font()).elidedText(
            self.text, Qt.TextElideMode.ElideRight, words.width()
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.setFont(tabular_font(CAPTION_PX))
        painter.setPen(QColor(tokens.warn if self.warning else tokens.muted))
        aside = self.warning or (
            f"{math.floor(self.share * 100)} % of context" if self._capacity else ""
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, aside)
        painter.end()


def usage_in_words(used: int, capacity: int) -> str:
    """“1.2k / 8k tokens”. A k is 1,024 where the window is a multiple of that, else 1,000.

    Rounded down, so that the numbers never look full before the window is.
    """
    if not capacity:
        return "– tokens"
    thousand = 1024 if capacity % 1024 == 0 else 1000
    return f"{_short(used, thousand)} / {_short(capacity, thousand)} tokens"


def _short(count: int, thousand: int) -> str:
    if count < thousand:
        return str(count)
    tenths = count * 10 // thousand
    if tenths >= 1000 or tenths % 10 == 0:
        return f"{tenths // 10}k"
    return f"{tenths // 10}.{tenths % 10}k"
