"""The acceptance gauge: how much of what was drafted stands, at which positions, at what cost."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from slipstream.chat.records import SpeculationStatistics
from slipstream.ui.acceptance_words import length_in_words, share_in_words, shares_in_words
from slipstream.ui.gauges.repaint_limit import REPAINT_MS, RepaintLimit
from slipstream.ui.gauges.throughput import seconds_in_words
from slipstream.ui.painting import rounded
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import CAPTION_PX, SPACE_M, SPACE_S, Tokens, tabular_font, theme

NOTHING_DRAFTED = "Nothing was drafted yet."
FULL_WIDTH_BARS = 8  # more positions than these share the width among them
_TIME_PARTS = (
    ("drafting", "proposing tokens"),
    ("verifying", "passes of the target, those without a draft included"),
    ("sampling", "choosing tokens"),
)
_RATE_PX = 20
_RATE_HEIGHT, _BARS_HEIGHT, _WORDS_HEIGHT, _SPLIT_HEIGHT = 28, 36, 18, 8
_GUTTER = 54  # words at the left of the bars
_WIDEST_BAR, _GAP_SHARE = 18.0, 0.34
_SWATCH = 8.0
_HOLLOW_FROM = 6.0  # narrower parts of the time are solid

_BARS_TOP = _RATE_HEIGHT + SPACE_S
_NUMBERS_TOP = _BARS_TOP + _BARS_HEIGHT + 2
_SPLIT_TOP = _NUMBERS_TOP + _WORDS_HEIGHT + 6
_LEGEND_TOP = _SPLIT_TOP + _SPLIT_HEIGHT + 5
_HEIGHT = _LEGEND_TOP + _WORDS_HEIGHT


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the time split and what belongs to it; `share` is “20 %” of the whole."""

    name: str
    what: str
    seconds: float
    share: str


class AcceptanceGauge(QWidget):
    """Shows the figures of one answer; computes no rate.

    Without figures it is a line of words, but never while an answer is written: the panel is not to
    move under the reader when the first draft is verified.
    """

    def __init__(self, parent: QWidget | None = None, interval_ms: int = REPAINT_MS) -> None:
        super().__init__(parent)
        self.setObjectName("acceptance_gauge")
        self.setAccessibleName("Acceptance")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._figures = SpeculationStatistics()
        self._answering = False
        self._limit = RepaintLimit(self, interval_ms)
        self._limit.due.connect(self._show)
        self._describe()

    def show_figures(self, statistics: SpeculationStatistics) -> None:
        """The figures of the answer so far or, once it has ended, of all of it."""
        if statistics != self._figures:
            was_expanded = self.expanded
            self._figures = statistics
            self._limit.request()
            self._resize(was_expanded)

    def set_answering(self, answering: bool) -> None:
        """An answer is being written with a draft, or is no longer: keep room for its figures."""
        was_expanded = self.expanded
        self._answering = answering
        self._resize(was_expanded)

    def reset(self) -> None:
        """Forgets everything, as after another draft was chosen."""
        self.show_figures(SpeculationStatistics())

    @property
    def idle(self) -> bool:
        """Whether no repaint is pending and no timer runs."""
        return self._limit.idle

    @property
    def expanded(self) -> bool:
        """Whether there is room for figures and not only for a line of words."""
        return self._answering or not self.empty

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show but words."""
        return self._figures.rounds == 0

    @property
    def rate(self) -> str:
        """The big figure: accepted of verified tokens."""
        return share_in_words(self._figures.accepted, self._figures.verified)

    @property
    def aside(self) -> str:
        """The words at the right: the mean accepted length."""
        return length_in_words(self._figures)

    @property
    def bars(self) -> tuple[float, ...]:
        """The height of each bar, 0 to 1, from the first position on."""
        return self._figures.acceptance_by_position

    @property
    def time_split(self) -> tuple[TimePart, ...]:
        """What the seconds went to, in the order of the bar."""
        figures = self._figures
        seconds = (figures.draft_seconds, figures.verify_seconds, figures.sample_seconds)
        return tuple(
            TimePart(name, what, spent, share)
            for (name, what), spent, share in zip(
                _TIME_PARTS, seconds, shares_in_words(seconds), strict=True
            )
        )

    @property
    def rate_explanation(self) -> str:
        """What the big figure divides by what."""
        figures = self._figures
        tokens = "token" if figures.verified == 1 else "tokens"
        return f"accepted {figures.accepted:,} of {figures.verified:,} verified {tokens}"

    @property
    def length_explanation(self) -> str:
        """How the mean accepted length comes about."""
        figures = self._figures
        if self.empty:
            return ""
        return (
            f"1 + accepted / rounds = 1 + {figures.accepted:,} / {figures.rounds:,}"
            f" = {figures.mean_accepted_length:.2f}; the 1 is the target's own token"
        )

    def position_explanation(self, position: int) -> str:
        """What a bar divides by what; positions count from 1."""
        accepted, rounds = self._figures.accepted_at[position - 1], self._figures.rounds
        unit = "round" if rounds == 1 else "rounds"
        return f"position {position}: accepted in {accepted:,} of {rounds:,} {unit}"

    def time_explanation(self, part: TimePart) -> str:
        """How much of the time a part took."""
        whole = self._whole_time
        return (
            f"{part.name}: {seconds_in_words(part.seconds)} of {seconds_in_words(whole)}"
            f" ({part.share}); {part.what}"
        )

    @property
    def explanation(self) -> str:
        """Every figure with what it is divided by."""
        if self.empty:
            return f"{NOTHING_DRAFTED} The figures appear with the first verified draft."
        positions = range(1, len(self.bars) + 1)
        lines = [self.rate_explanation, self.length_explanation]
        lines += [self.position_explanation(position) for position in positions]
        if self._whole_time > 0:
            lines += [self.time_explanation(part) for part in self.time_split]
        return "\n".join(lines)

    def explanation_at(self, spot: QPoint) -> str:
        """The explanation of what is drawn at a spot."""
        if self.empty or spot.y() < 0 or spot.y() >= _HEIGHT:
            return self.explanation
        if spot.y() < _BARS_TOP:
            left = spot.x() < self.width() / 2
            return self.rate_explanation if left else self.length_explanation
        if spot.y() < _SPLIT_TOP - 3:
            position = int((spot.x() - _GUTTER) // self._slot) + 1
            known = spot.x() >= _GUTTER and position <= len(self.bars)
            return self.position_explanation(position) if known else self._positions_in_words()
        areas = self._split_areas() if spot.y() < _LEGEND_TOP else self._legend_areas()
        for part, area in zip(self.time_split, areas, strict=True):
            if area.left() - 1 <= spot.x() < area.right() + 1:
                return self.time_explanation(part)
        return "\n".join(self.time_explanation(part) for part in self.time_split)

    def _positions_in_words(self) -> str:
        return "\n".join(self.position_explanation(at + 1) for at in range(len(self.bars)))

    @property
    def _whole_time(self) -> float:
        return sum(part.seconds for part in self.time_split)

    @property
    def _slot(self) -> float:
        """The width of a bar and the gap after it."""
        return (self.width() - _GUTTER) / max(len(self.bars), FULL_WIDTH_BARS)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), wrapped(self.explanation_at(event.pos())), self)
            return True
        return super().event(event)

    @Slot()
    def _show(self) -> None:
        self._describe()
        self.update()

    def _describe(self) -> None:
        self.setToolTip(wrapped(self.explanation))
        if self.empty:
            self.setAccessibleDescription(NOTHING_DRAFTED)
        else:
            details = self.explanation.replace("\n", ". ")
            self.setAccessibleDescription(f"{self.rate} accepted, {self.aside}. {details}.")

    def _resize(self, was_expanded: bool) -> None:
        if self.expanded != was_expanded:
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, _HEIGHT if self.expanded else _WORDS_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(220, self.sizeHint().height())

    # ---- painting -----------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        painter.setFont(tabular_font(CAPTION_PX))
        if self.empty:
            painter.setPen(QColor(tokens.muted))
            painter.drawText(QRectF(0, 0, self.width(), _WORDS_HEIGHT), _LEFT, NOTHING_DRAFTED)
            if self.expanded:
                self._paint_axes(painter, tokens)
        else:
            self._paint_rate(painter, tokens)
            self._paint_bars(painter, tokens)
            self._paint_split(painter, tokens)
        painter.end()

    def _paint_rate(self, painter: QPainter, tokens: Tokens) -> None:
        big, small = tabular_font(_RATE_PX), tabular_font(CAPTION_PX)
        width = float(self.width())
        painter.setFont(big)
        painter.setPen(QColor(tokens.text))
        painter.drawText(QRectF(0, 0, width, _RATE_HEIGHT), _LEFT, self.rate)
        painter.setFont(small)
        painter.setPen(QColor(tokens.muted))
        slot = QFontMetricsF(big).horizontalAdvance("00 %") + SPACE_S
        if len(self.rate) > 4:
            slot = QFontMetricsF(big).horizontalAdvance(self.rate) + SPACE_S
        top = QFontMetricsF(big).ascent() - QFontMetricsF(small).ascent()
        words = QRectF(slot, top, width - slot, _WORDS_HEIGHT)
        painter.drawText(words, _LEFT, "accepted")
        aside, metrics = self.aside, QFontMetricsF(small)
        taken = metrics.horizontalAdvance("accepted") + SPACE_S
        if taken + metrics.horizontalAdvance(aside) > words.width():
            aside = aside.replace("tokens ", "")  # the tooltip has the whole of it
        painter.drawText(words, _RIGHT, aside)

    def _paint_axes(self, painter: QPainter, tokens: Tokens) -> None:
        bottom = float(_BARS_TOP + _BARS_HEIGHT)
        painter.setPen(QColor(tokens.muted))
        painter.drawText(QRectF(0, _NUMBERS_TOP, _GUTTER, _WORDS_HEIGHT), _LEFT, "position")
        time = QRectF(0, _SPLIT_TOP - 5, _GUTTER, _WORDS_HEIGHT)
        painter.drawText(time, Qt.AlignmentFlag.AlignVCenter, "time")
        painter.setPen(QPen(QColor(tokens.border), 1))
        painter.drawLine(QPointF(_GUTTER, _BARS_TOP + 0.5), QPointF(self.width(), _BARS_TOP + 0.5))
        painter.drawLine(QPointF(_GUTTER, bottom), QPointF(self.width(), bottom))

    def _paint_bars(self, painter: QPainter, tokens: Tokens) -> None:
        self._paint_axes(painter, tokens)
        bottom = float(_BARS_TOP + _BARS_HEIGHT)
        slot = self._slot
        bar_width = min(slot * (1 - _GAP_SHARE), _WIDEST_BAR)
        step = 1 if len(self.bars) <= FULL_WIDTH_BARS else 4
        for index, share in enumerate(self.bars):
            left = _GUTTER + index * slot + (slot - bar_width) / 2
            height = max(share * _BARS_HEIGHT, 1.0)
            box = QRectF(left, bottom - height, bar_width, height)
            rounded(painter, box, QColor(tokens.accent), None, min(2.0, height / 2))
            if index == 0 or (index + 1) % step == 0:
                painter.setPen(QColor(tokens.muted))
                words = str(index + 1)
                reach = painter.fontMetrics().horizontalAdvance(words) / 2
                middle = min(left + bar_width / 2, self.width() - reach)
                area = QRectF(middle - 12, _NUMBERS_TOP, 24, _WORDS_HEIGHT)
                painter.drawText(area, _CENTRE, words)

    def _split_areas(self) -> list[QRectF]:
        """Where each part of the time lies, side by side."""
        whole = self._whole_time
        room = float(self.width() - _GUTTER)
        left = float(_GUTTER)
        areas = []
        for part in self.time_split:
            width = room * part.seconds / whole if whole > 0 else 0.0
            areas.append(QRectF(left, _SPLIT_TOP, width, _SPLIT_HEIGHT))
            left += width
        return areas

    def _legend_areas(self) -> list[QRectF]:
        metrics = QFontMetricsF(tabular_font(CAPTION_PX))
        left = 0.0
        areas = []
        for part in self.time_split:
            width = _SWATCH + 5 + metrics.horizontalAdvance(part.name)
            areas.append(QRectF(left, _LEGEND_TOP, width, _WORDS_HEIGHT))
            left += width + SPACE_M
        return areas

    def _paint_split(self, painter: QPainter, tokens: Tokens) -> None:
        """Drafting in the accent, verifying in grey, sampling hollow: told apart without colour."""
        looks = (
            (QColor(tokens.accent), None),
            (QColor(tokens.control_border), None),
            (None, QColor(tokens.control_border)),
        )
        painter.setPen(QColor(tokens.muted))
        parts = zip(self.time_split, self._split_areas(), self._legend_areas(), looks, strict=True)
        for part, area, entry, (fill, line) in parts:
            last = area.right() > self.width() - 1
            shown = area if last else area.adjusted(0, 0, -2, 0)
            if shown.width() >= _HOLLOW_FROM:
                rounded(painter, shown, fill, line, 2.0)
            elif shown.width() > 0:
                rounded(painter, shown, fill or line, None, shown.width() / 2)
            swatch = QRectF(entry.left(), entry.center().y() - _SWATCH / 2, _SWATCH, _SWATCH)
            rounded(painter, swatch, fill, line, 2.0)
            words = entry.adjusted(_SWATCH + 5, 0, 4, 0)
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, part.name)


_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
_CENTRE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
