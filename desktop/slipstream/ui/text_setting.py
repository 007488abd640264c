"""Settings that are typed: seed, lists of strings, grammar, biases; how text becomes values."""

from __future__ import annotations

import random

from PySide6.QtCore import QEvent, QObject, QSize, QTimer, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QToolButton,
    QWidget,
)

from slipstream.engine.sampling import MAX_SEED, SettingInfo
from slipstream.errors import UsageError
from slipstream.ui.escapes import escape_lines, unescape_lines
from slipstream.ui.icons import set_icon
from slipstream.ui.setting_row import SettingRow
from slipstream.ui.theme import SPACE_XS, monospace_font, set_kind

_PATIENCE_MS = 700  # how long half-typed text may be wrong before it is said


class TextArea(QPlainTextEdit):
    """A small multi-line field. Tab moves on; the wheel is its own only while it has the focus."""

    def __init__(self, lines: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        self._lines = lines
        self.setMinimumHeight(self.sizeHint().height())
        self.setMaximumHeight(self.sizeHint().height())

    def sizeHint(self) -> QSize:
        return QSize(160, self.fontMetrics().lineSpacing() * self._lines + 22)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class TypedSettingRow(SettingRow):
    """A setting read from text as it is typed; text that cannot be used keeps the last good value.

    Half-typed text is given a moment before it is called wrong.
    """

    def __init__(
        self, name: str, info: SettingInfo, default: object, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, info, default, parent)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(_PATIENCE_MS)
        self._patience.timeout.connect(self._complain)

    def parse(self, text: str) -> object:
        """The value the text stands for. Raises `UsageError`."""
        raise NotImplementedError

    def typed_text(self) -> str:
        """What stands in the editor."""
        raise NotImplementedError

    def finish(self, editor: QWidget) -> None:
        """Describes the editor and watches it lose the focus; called once by each kind of row."""
        editor.setObjectName(f"field_{self.name}")
        self.label.setBuddy(editor)
        self._describe(editor, self.info.label)
        self._describe(self.label, self.info.label)
        editor.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut and self._patience.isActive():
            self._complain()
        return super().eventFilter(watched, event)

    def set_value(self, value: object) -> None:
        self._patience.stop()
        super().set_value(value)

    def _take(self) -> None:
        try:
            value = self.parse(self.typed_text())
        except UsageError:
            if self.error.isHidden():
                self._patience.start()
            else:
                self._complain()
            return
        self._patience.stop()
        self.commit(value)

    @Slot()
    def _complain(self) -> None:
        self._patience.stop()
        try:
            self.parse(self.typed_text())
        except UsageError as error:
            self.show_error(str(error))


class SeedRow(TypedSettingRow):
    """The seed: empty for a new one each time, a dice to draw one, a cross to empty it."""

    def __init__(
        self, name: str, info: SettingInfo, default: object, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, info, default, parent)
        self.field = QLineEdit(self)
        self.field.setPlaceholderText("Random")
        self.dice = self._button("dice", "Draw a seed and keep it", self._on_dice_clicked)
        self.dice.setObjectName("seed_dice")
        self.clear = self._button("close", "Take a new seed each time", self._on_clear_clicked)
        self.clear.setObjectName("seed_clear")
        line = QHBoxLayout()
        line.setSpacing(SPACE_XS)
        line.addWidget(self.field, 1)
        line.addWidget(self.dice)
        line.addWidget(self.clear)
        self.rows.addLayout(line)
        self.rows.addWidget(self.error)
        self.finish(self.field)
        self.show_value(default)
        self.field.textChanged.connect(self._on_text_changed)

    def _button(self, icon_name: str, words: str, slot: object) -> QToolButton:
        button = QToolButton(self)
        set_icon(button, icon_name)
        button.setFixedSize(30, 30)
        button.setToolTip(words)
        button.setAccessibleName(words)
        button.clicked.connect(slot)
        return button

    def editor(self) -> QWidget:
        return self.field

    def typed_text(self) -> str:
        return self.field.text()

    def words(self, value: object) -> str:
        return "random" if value is None else str(value)

    def show_value(self, value: object) -> None:
        self.field.blockSignals(True)
        self.field.setText("" if value is None else str(value))
        self.field.blockSignals(False)
        self.clear.setEnabled(value is not None)

    def parse(self, text: str) -> object:
        text = text.strip()
        if not text:
            return None
        if not (text.isascii() and text.isdecimal()) or int(text) > MAX_SEED:
            raise UsageError(
                f"“{text}” is no seed.",
                f"A seed is a whole number from 0 to {MAX_SEED:,}.",
                "Leave the field empty for a new seed each time.",
            )
        return int(text)

    @Slot()
    def _on_text_changed(self) -> None:
        self.clear.setEnabled(bool(self.field.text()))
        self._take()

    @Slot()
    def _on_dice_clicked(self) -> None:
        self.field.setText(str(random.randint(0, MAX_SEED)))

    @Slot()
    def _on_clear_clicked(self) -> None:
        self.field.setFocus()
        self.field.clear()


class AreaRow(TypedSettingRow):
    """A setting typed over several lines, with a word on how to write it."""

    hint = ""
    placeholder = ""
    lines = 3

    def __init__(
        self, name: str, info: SettingInfo, default: object, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, info, default, parent)
        self.field = TextArea(self.lines, self)
        self.field.setFont(monospace_font(12))
        self.field.setPlaceholderText(self.placeholder)
        self.rows.addWidget(self.field)
        self.rows.addWidget(self.error)
        if self.hint:
            hint = QLabel(self.hint, self)
            hint.setWordWrap(True)
            set_kind(hint, "caption")
            self.rows.addWidget(hint)
        self.finish(self.field)
        self.show_value(default)
        self.field.textChanged.connect(self._on_text_changed)

    def editor(self) -> QWidget:
        return self.field

    def typed_text(self) -> str:
        return self.field.toPlainText()

    def words(self, value: object) -> str:
        return self.written(value).replace("\n", "  ") or "none"

    def show_value(self, value: object) -> None:
        self.field.blockSignals(True)
        self.field.setPlainText(self.written(value))
        self.field.blockSignals(False)

    def written(self, value: object) -> str:
        """The value as it is typed."""
        return str(value)

    @Slot()
    def _on_text_changed(self) -> None:
        self._take()


class StringsRow(AreaRow):
    """A list of strings, one per line."""

    lines = 4
    hint = "One per line; \\n is a line break, \\t a tab, \\\\ a backslash."

    def written(self, value: object) -> str:
        assert isinstance(value, tuple)
        return escape_lines(value)

    def parse(self, text: str) -> object:
        return unescape_lines(text)


class GrammarRow(AreaRow):
    """A GBNF grammar, taken as it stands."""

    placeholder = 'root ::= "yes" | "no"'
    lines = 4

    def parse(self, text: str) -> object:
        return text if text.strip() else ""


class BiasRow(AreaRow):
    """Token ids with what is added to their score, one id=value per line."""

    hint = "One per line, such as 123=-1.5; -inf forbids the token."

    def written(self, value: object) -> str:
        assert isinstance(value, tuple)
        return "\n".join(f"{token}={bias!r}" for token, bias in value)

    def parse(self, text: str) -> object:
        return tuple(_bias(line) for line in text.split("\n") if line.strip())


def _bias(line: str) -> tuple[int, float]:
    token, _, bias = line.partition("=")
    try:
        return int(token), float(bias)
    except ValueError:
        raise UsageError(
            f"“{line.strip()}” is no bias.",
            "A bias is a token id, an equals sign and a number.",
            "Write it as 123=-1.5, or 123=-inf to forbid the token.",
        ) from None


ROWS: dict[str, type[TypedSettingRow]] = {
    "seed": SeedRow,
    "stop": StringsRow,
    "grammar": GrammarRow,
    "logit_bias": BiasRow,
    "dry_sequence_breakers": StringsRow,
}
"""Which row edits which typed setting."""
