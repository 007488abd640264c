"""Where the person writes: a field that grows with its text, and one button to send or to stop."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QInputMethodEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextOption,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from slipstream.ui.icons import set_icon
from slipstream.ui.theme import (
    RADIUS_CARD,
    READING_PX,
    SPACE_L,
    SPACE_M,
    SPACE_S,
    interface_font,
    reading_width,
    set_kind,
    theme,
)
from slipstream.ui.wrapping import wrap_mode

_MOST_LINES = 8
_BUTTON = 34
_PLACEHOLDER = "Message…"


class Composer(QWidget):
    """The message field with its button.

    Sending leaves the text where it is: whoever takes the message calls `clear_after_send`, so
    nothing is lost when it cannot be taken. While an answer is running the stop button stands in
    the send button's place and Enter keeps the text.
    """

    send_requested = Signal(str)
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._answering = False
        self._ready = True
        self._reason = ""
        self.field = MessageField(self)
        self.send_button = self._make_button("send_button", "send", "Send", "Send (Enter)")
        self.stop_button = self._make_button("stop_button", "stop", "Stop", "Stop (Esc)")
        self.stop_button.hide()
        self._card = _Card(self.field)
        row = QHBoxLayout(self._card)
        row.setContentsMargins(SPACE_M, SPACE_S - 1, SPACE_S - 1, SPACE_S - 1)
        row.setSpacing(SPACE_S)
        row.addWidget(self.field, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.stop_button, 0, Qt.AlignmentFlag.AlignBottom)
        # As wide as the transcript's grounds, and centred like them.
        self._card.setMaximumWidth(reading_width() + 28)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(SPACE_L, SPACE_S, SPACE_L, SPACE_L)
        outer.addWidget(self._card)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setFocusProxy(self.field)
        self.field.textChanged.connect(self._refresh)
        self.field.enter_pressed.connect(self._send)
        self.field.escape_pressed.connect(self._escape)
        self.send_button.clicked.connect(self._send)
        self.stop_button.clicked.connect(self.stop_requested)
        self._refresh()

    # ---- the interface ----

    def text(self) -> str:
        """The text as typed."""
        return self.field.toPlainText()

    def set_text(self, text: str) -> None:
        """Replace the text, the cursor at its end; it can be undone."""
        self.field.setWordWrapMode(wrap_mode(text))
        cursor = self.field.textCursor()
        cursor.select(cursor.SelectionType.Document)
        cursor.insertText(text)
        self.field.setTextCursor(cursor)

    @Slot()
    def clear_after_send(self) -> None:
        """Empty the field, its text having been taken."""
        self.field.clear()
        self.field.setWordWrapMode(wrap_mode(""))

    def set_answering(self, answering: bool) -> None:
        """Show the stop button while an answer is running, the send button otherwise."""
        had_focus = self.send_button.hasFocus() or self.stop_button.hasFocus()
        self._answering = answering
        self.send_button.setVisible(not answering)
        self.stop_button.setVisible(answering)
        if had_focus:
            self.field.setFocus(Qt.FocusReason.OtherFocusReason)
        self._refresh()

    def set_ready(self, ready: bool, reason: str = "") -> None:
        """Whether a message could be answered; `reason` says why not. Typing is always possible."""
        self._ready = ready
        self._reason = "" if ready else reason
        self._refresh()

    def is_answering(self) -> bool:
        """Whether the stop button is shown."""
        return self._answering

    # ---- inside ----

    def _make_button(self, name: str, icon: str, words: str, tip: str) -> QToolButton:
        button = QToolButton(self)
        button.setObjectName(name)
        button.setAccessibleName(words)
        button.setToolTip(tip)
        button.setFixedSize(_BUTTON, _BUTTON)
        button.setIconSize(QSize(18, 18))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_kind(button, "primary")
        set_icon(button, icon, "on_accent")
        return button

    @Slot()
    def _refresh(self) -> None:
        has_text = bool(self.text().strip())
        self.send_button.setEnabled(self._ready and has_text)
        if not self._ready:
            self.send_button.setToolTip(self._reason or "No model is loaded.")
        elif not has_text:
            self.send_button.setToolTip("Write a message first, then send it with Enter.")
        else:
            self.send_button.setToolTip("Send (Enter)")
        self.field.setPlaceholderText(self._reason or _PLACEHOLDER)
        self.field.viewport().update()  # else only the caret's rectangle shows the new words
        self.field.setToolTip("" if self._ready else self._reason)

    @Slot()
    def _send(self) -> None:
        if self._ready and not self._answering and self.text().strip():
            self.send_requested.emit(self.text())

    @Slot()
    def _escape(self) -> None:
        if self._answering:
            self.stop_requested.emit()


class MessageField(QPlainTextEdit):
    """The text field: Enter is announced, Shift+Enter breaks the line, pasting brings text only."""

    enter_pressed = Signal()
    escape_pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self.setAccessibleName("Message")
        self.setAccessibleDescription("Enter sends, Shift and Enter begin a new line.")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(interface_font(READING_PX))
        self.setTabChangesFocus(True)
        self.setWordWrapMode(wrap_mode(""))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self._is_composing = False
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if is_enter and held == Qt.KeyboardModifier.NoModifier:
            if not self._is_composing:
                self.enter_pressed.emit()
            event.accept()
        elif is_enter and held == Qt.KeyboardModifier.ShiftModifier:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
            event.accept()
        elif event.key() == Qt.Key.Key_Escape and not self._is_composing:
            self.escape_pressed.emit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """While an input method holds unconfirmed text, Enter belongs to it."""
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasText():
            text = source.text()
            if wrap_mode(text) is QTextOption.WrapMode.WrapAnywhere:
                self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
            self.insertPlainText(text)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() and not source.hasUrls()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    @Slot()
    def _fit(self) -> None:
        """As high as the text, from one line to eight; then it scrolls."""
        # QPlainTextEdit measures its document in lines.
        lines = max(1, round(self.document().documentLayout().documentSize().height()))
        shown = min(lines, _MOST_LINES)
        policy = (
            Qt.ScrollBarPolicy.ScrollBarAsNeeded
            if lines > _MOST_LINES
            else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        if self.verticalScrollBarPolicy() != policy:
            self.setVerticalScrollBarPolicy(policy)
        margins = self.contentsMargins()
        height = (
            QFontMetrics(self.font()).lineSpacing() * shown
            + 2 * round(self.document().documentMargin())
            + margins.top()
            + margins.bottom()
            + 2
        )
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)


class _Card(QFrame):
    """The outline around field and button; shows the focus of the field inside it."""

    def __init__(self, field: MessageField) -> None:
        super().__init__()
        self._field = field
        field.installEventFilter(self)
        theme().changed.connect(self.update)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return False

    def mousePressEvent(self, event: object) -> None:
        self._field.setFocus(Qt.FocusReason.MouseFocusReason)

    def paintEvent(self, _event: QPaintEvent) -> None:
        tokens = theme().current()
        focused = self._field.hasFocus()
        width = 2.0 if focused else 1.0
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(tokens.accent if focused else tokens.control_border), width))
        painter.setBrush(QColor(tokens.surface))
        inset = width / 2
        area = self.rect().toRectF().adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(area, RADIUS_CARD, RADIUS_CARD)
        painter.end()
