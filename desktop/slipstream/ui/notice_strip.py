"""The one place where the window says that something happened: a strip, never a dialog."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import UserError
from slipstream.ui.icons import icon_pixmap, set_icon
from slipstream.ui.theme import (
    RADIUS_CARD,
    SPACE_L,
    SPACE_M,
    SPACE_S,
    SPACE_XS,
    Tokens,
    mix,
    set_kind,
    theme,
)

_ICON = 18
_LEFT, _ABOVE, _BELOW = SPACE_L, SPACE_M, SPACE_XS  # around the strip; gone when it is hidden


class Severity(Enum):
    """How bad it is: the icon's name, the theme's colour, and the word said for it."""

    INFO = ("info", "accent", "Note")
    WARNING = ("warning", "warn", "Warning")
    ERROR = ("error", "bad", "Error")

    @property
    def icon(self) -> str:
        return self.value[0]

    @property
    def colour(self) -> str:
        return self.value[1]

    @property
    def word(self) -> str:
        return self.value[2]


class NoticeStrip(QFrame):
    """What happened, what to try, and on request the details. Hidden while there is nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("notice_strip")
        self._severity = Severity.INFO
        self._waiting = ""  # the note behind an error
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON, _ICON)
        self.title_label = _Words()
        set_kind(self.title_label, "heading")
        self.hint_label = _Words()
        self.detail_label = _Words()
        set_kind(self.detail_label, "muted")
        self.details_button = QPushButton("Details")
        self.details_button.setObjectName("notice_details_button")
        self.details_button.setCheckable(True)
        self.details_button.setAccessibleName("Details of this notice")
        self.details_button.setToolTip("Show or hide which file or setting it is about, and why")
        set_kind(self.details_button, "ghost")
        self.dismiss_button = QToolButton()
        self.dismiss_button.setObjectName("notice_dismiss_button")
        self.dismiss_button.setAccessibleName("Dismiss this notice")
        self.dismiss_button.setToolTip("Dismiss (Esc)")
        self.dismiss_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.dismiss_button.setIconSize(QSize(16, 16))
        set_icon(self.dismiss_button, "close")
        self._lay_out()
        self.details_button.toggled.connect(self._show_details)
        self.dismiss_button.clicked.connect(self._go_on)
        theme().changed.connect(self._on_theme_changed)
        self.hide()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setContentsMargins(0, 2, 0, 2)
        words.setSpacing(SPACE_XS)
        words.addWidget(self.title_label)
        words.addWidget(self.hint_label)
        words.addWidget(self.detail_label)
        row = QHBoxLayout(self)
        row.setContentsMargins(_LEFT + SPACE_M, _ABOVE + SPACE_S, _LEFT + SPACE_S, _BELOW + SPACE_S)
        row.setSpacing(SPACE_S)
        top = Qt.AlignmentFlag.AlignTop
        row.addWidget(self._icon, 0, top)
        row.addLayout(words, 1)
        row.addWidget(self.details_button, 0, top)
        row.addWidget(self.dismiss_button, 0, top)
        row.setAlignment(self._icon, top)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)

    # ---- the interface ----

    def show_error(self, error: UserError) -> None:
        """Show an error in its own words."""
        self.show_notice(error.title, error.detail, error.hint, Severity.ERROR)

    def show_notice(
        self,
        title: str,
        detail: str = "",
        hint: str = "",
        severity: Severity = Severity.INFO,
    ) -> None:
        """Show a notice in place of the one before; `detail` stays folded until asked for."""
        self._severity = severity
        self.title_label.setText(title)
        self.hint_label.setText(hint)
        self.hint_label.setVisible(bool(hint))
        self.detail_label.setText(detail)
        self.details_button.setChecked(False)
        self._show_details(False)
        self.details_button.setVisible(bool(detail))
        self.setAccessibleName(f"{severity.word}: {title}")
        self.setAccessibleDescription(" ".join(part for part in (hint, detail) if part))
        self._on_theme_changed()
        self.show()

    def show_note(self, title: str) -> None:
        """Show a notice that can wait: not in place of an error, but once that one was read."""
        if self._severity is Severity.ERROR and not self.isHidden():
            self._waiting = title
        else:
            self.show_notice(title)

    @Slot()
    def dismiss(self) -> None:
        """Hide the notice, and forget the one that waits behind it."""
        self._waiting = ""
        self.hide()

    def severity(self) -> Severity:
        """How bad the notice shown is."""
        return self._severity

    def text(self) -> str:
        """Title, hint and detail in one line each, whether shown or folded; "" when hidden."""
        if self.isHidden():
            return ""
        labels = (self.title_label, self.hint_label, self.detail_label)
        return "\n".join(label.text() for label in labels if label.text())

    # ---- inside ----

    @Slot(bool)
    def _show_details(self, shown: bool) -> None:
        self.detail_label.setVisible(shown)
        self.details_button.setText("Hide details" if shown else "Details")
        self.updateGeometry()

    @Slot()
    def _on_theme_changed(self) -> None:
        severity = self._severity
        ratio = self.devicePixelRatioF()
        self._icon.setPixmap(icon_pixmap(severity.icon, severity.colour, _ICON, ratio))
        self._icon.setAccessibleName(severity.word)
        self.update()

    @Slot()
    def _go_on(self) -> None:
        """The person has read the notice."""
        waiting = self._waiting
        self.dismiss()
        if waiting:
            self.show_notice(waiting)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._go_on()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        tokens = theme().current()
        edge = QColor(getattr(tokens, self._severity.colour))
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(edge)
        painter.setBrush(QColor(strip_ground(tokens, self._severity)))
        area = (
            self.rect().toRectF().adjusted(_LEFT + 0.5, _ABOVE + 0.5, -_LEFT - 0.5, -_BELOW - 0.5)
        )
        painter.drawRoundedRect(area, RADIUS_CARD, RADIUS_CARD)
        painter.end()


def strip_ground(tokens: Tokens, severity: Severity) -> str:
    """The tinted ground behind the words of a notice."""
    return mix(getattr(tokens, severity.colour), tokens.surface, 0.08)


class _Words(QLabel):
    """Wrapping words that can be selected and never make the window wider."""

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setMinimumWidth(40)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def minimumSizeHint(self) -> QSize:
        return QSize(40, super().minimumSizeHint().height())
