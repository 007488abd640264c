"""The draft chip: whether something drafts, what it is, or why not. Always exactly one of them."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream.ui.icons import icon_pixmap
from slipstream.ui.painting import rounded
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import CAPTION_PX, SPACE_S, interface_font, mix, theme
from slipstream.ui.wrapping import broken_lines

_ICON, _LINE, _PADDING = 14, 16, 5
_LEFT_OF_WORDS = SPACE_S + _ICON + 6
_MOST_LINES = 4
_SMALL_WITHIN = (
    "A",
    "An",
    "Built-in",
    "It",
    "Its",
    "No",
    "The",
    "This",
    "Token",
)  # not names, and often first


class DraftChip(QWidget):
    """An icon and words on a tinted ground; long words take up to four lines, then lose their end.

    The tooltip always has all of them.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("draft_chip")
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._text = ""
        self._icon = self._role = ""
        self.show_off()

    @property
    def text(self) -> str:
        """The words in full."""
        return self._text

    @property
    def icon_name(self) -> str:
        """The icon before the words."""
        return self._icon

    @property
    def active(self) -> bool:
        """Whether a drafter is at work."""
        return self._icon == "draft"

    def show_off(self) -> None:
        """Nothing is chosen to draft."""
        self._show("Draft off", "draft-off", "muted")

    def show_active(self, kind_words: str, name: str = "") -> None:
        """A drafter is at work: its kind in words and, if it has one, the name of its file."""
        what = ", ".join(part for part in (kind_words, name) if part)
        self._show(f"Draft active: {what}", "draft", "good")

    def show_preparing(self) -> None:
        """A drafter is being opened, and what passes cost is being measured."""
        self._show("Preparing the draft…", "draft-off", "muted")

    def show_off_because(self, reason: str) -> None:
        """Something is chosen but does not draft. The reason, a sentence, follows “because”."""
        words = reason.strip().rstrip(".")
        first, gap, rest = words.partition(" ")
        if first in _SMALL_WITHIN:
            words = f"{first.lower()}{gap}{rest}"
        self._show(f"Draft off, because {words}", "warning", "warn")

    def _show(self, text: str, icon: str, role: str) -> None:
        if (text, icon) == (self._text, self._icon):
            return
        self._text, self._icon, self._role = text, icon, role
        self.setToolTip(wrapped(text))
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def lines(self, width: int) -> list[str]:
        """The words as they are broken into lines at a width of the chip."""
        room = max(width - _LEFT_OF_WORDS - SPACE_S, 40)
        return broken_lines(self._text, interface_font(CAPTION_PX), room, _MOST_LINES)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return len(self.lines(width)) * _LINE + 2 * _PADDING

    def sizeHint(self) -> QSize:
        return QSize(240, self.heightForWidth(240))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, _LINE + 2 * _PADDING)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        font = interface_font(CAPTION_PX)
        metrics = QFontMetricsF(font)
        lines = self.lines(self.width())
        widest = max(metrics.horizontalAdvance(line) for line in lines)
        width = min(_LEFT_OF_WORDS + widest + SPACE_S + 2, self.width())
        colour = getattr(tokens, self._role)
        ground = tokens.raised if self._role == "muted" else mix(colour, tokens.page, 0.13)
        rounded(painter, QRectF(0, 0, width, self.height()), QColor(ground))
        picture = icon_pixmap(self._icon, self._role, _ICON, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(SPACE_S, _PADDING + (_LINE - _ICON) / 2), picture)
        painter.setFont(font)
        painter.setPen(QColor(tokens.text))
        for number, line in enumerate(lines):
            area = QRectF(_LEFT_OF_WORDS, _PADDING + number * _LINE, widest + 2, _LINE)
            painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, line)
        painter.end()
