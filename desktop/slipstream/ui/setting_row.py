"""One setting in the window: its label, the dot that resets it, its editor and what is wrong.

A row knows one `SamplerSettings` field and nothing of the others; ranges and words come from
`SettingInfo`.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from slipstream.engine.sampling import SamplerSettings, SettingInfo
from slipstream.errors import UsageError
from slipstream.ui.number_field import NumberField
from slipstream.ui.painting import focus_ring, rounded
from slipstream.ui.slider_scale import scale_for
from slipstream.ui.theme import SPACE_S, SPACE_XS, set_kind, theme
from slipstream.ui.value_slider import ValueSlider

_FIELD_WIDTH = 80


def wrapped(text: str) -> str:
    """Words for a tooltip, which breaks lines only in rich text."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")
    return f"<qt>{escaped}</qt>"


class ResetDot(QAbstractButton):
    """A dot beside a changed value; a click brings the default back."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = label
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"Reset {label}")
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.setSizePolicy(policy)
        self.setFixedSize(20, 20)

    def set_default_words(self, default: str) -> None:
        """Names the value that a click brings back."""
        words = f"Changed. Click to reset {self._label} to {default}."
        self.setToolTip(words)
        self.setAccessibleDescription(words)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        area = QRectF(self.rect())
        if self.underMouse():
            rounded(painter, area, QColor(tokens.raised), None, 10)
        size = 9 if self.underMouse() or self.isDown() else 7
        dot = QRectF(0, 0, size, size)
        dot.moveCenter(area.center())
        rounded(painter, dot, QColor(tokens.accent), None, size / 2)
        if self.hasFocus():
            focus_ring(painter, area, tokens, 10)
        painter.end()


class SettingRow(QWidget):
    """A labelled setting. `value_changed` (field name, value) reports what a person changed."""

    value_changed = Signal(str, object)

    def __init__(
        self, name: str, info: SettingInfo, default: object, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(f"setting_{name}")
        self.name = name
        self.info = info
        self._default = default
        self._value = default
        self.label = QLabel(info.label, self)
        self.dot = ResetDot(info.label, self)
        self.dot.setObjectName(f"reset_{name}")
        self.dot.set_default_words(self.words(default))
        self.dot.hide()
        self.dot.clicked.connect(self.reset)
        self.error = QLabel(self)
        self.error.setObjectName(f"error_{name}")
        self.error.setWordWrap(True)
        self.error.setTextFormat(Qt.TextFormat.PlainText)
        set_kind(self.error, "bad")
        self.error.hide()
        self.header = QHBoxLayout()
        self.header.setSpacing(SPACE_XS)
        self.header.addWidget(self.label)
        self.header.addWidget(self.dot)
        self.header.addStretch(1)
        self.rows = QVBoxLayout(self)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setSpacing(SPACE_XS)
        self.rows.addLayout(self.header)

    def value(self) -> object:
        """The value in force; typed text that cannot be used does not count."""
        return self._value

    def set_value(self, value: object) -> None:
        """Shows a value, without a signal."""
        self.show_error("")
        self._value = value
        self.show_value(value)
        self._show_dot()

    @property
    def changed(self) -> bool:
        """Whether the value differs from the default."""
        return self._value != self._default

    @Slot()
    def reset(self) -> None:
        """Brings the default back, as a person would."""
        if self.dot.hasFocus():
            self.editor().setFocus()
        self.set_value(self._default)
        self.value_changed.emit(self.name, self._value)

    def commit(self, value: object) -> None:
        """Takes a value a person chose; one that cannot be used shows why and changes nothing."""
        try:
            self.check(value)
        except UsageError as error:
            self.show_error(str(error))
            return
        self.show_error("")
        if value != self._value:
            self._value = value
            self._show_dot()
            self.value_changed.emit(self.name, value)

    def commit_typed(self) -> None:
        """Takes what is typed but not yet confirmed."""

    def check(self, value: object) -> None:
        """Raises `UsageError` if the setting cannot have the value."""
        SamplerSettings().with_values({self.name: value})

    def show_error(self, sentence: str) -> None:
        """Says under the editor what cannot be used and why; empty for nothing."""
        self.error.setText(sentence)
        self.error.setVisible(bool(sentence))
        self.editor().setAccessibleDescription(
            f"{sentence} {self.info.help}" if sentence else self.info.help
        )

    def editor(self) -> QWidget:
        """The widget that takes the keyboard focus for this setting."""
        raise NotImplementedError

    def show_value(self, value: object) -> None:
        """Puts a value into the editor, without a signal."""
        raise NotImplementedError

    def words(self, value: object) -> str:
        """A value as a person reads it."""
        raise NotImplementedError

    def _show_dot(self) -> None:
        self.dot.setVisible(self.changed)

    def _describe(self, widget: QWidget, name: str) -> None:
        widget.setToolTip(wrapped(f"{self.info.help}\nDefault: {self.words(self._default)}"))
        widget.setAccessibleName(name)
        widget.setAccessibleDescription(self.info.help)


class NumberSettingRow(SettingRow):
    """A number: a slider for the gesture and a field for the exact value."""

    def __init__(
        self, name: str, info: SettingInfo, default: float, parent: QWidget | None = None
    ) -> None:
        self._whole = isinstance(default, int)
        super().__init__(name, info, default, parent)
        two_sided = info.minimum is not None and info.minimum < 0 and not info.special
        self.slider = ValueSlider(scale_for(info, self._whole), default, self, two_sided)
        self.slider.setObjectName(f"slider_{name}")
        self.field = NumberField(info, self._whole, self)
        self.field.setObjectName(f"field_{name}")
        self.field.setFixedWidth(_FIELD_WIDTH)
        self.label.setBuddy(self.field)
        self._describe(self.field, info.label)
        self._describe(self.slider, f"{info.label} slider")
        self._describe(self.label, info.label)
        line = QHBoxLayout()
        line.setSpacing(SPACE_S)
        line.addWidget(self.slider, 1)
        line.addWidget(self.field)
        self.rows.addLayout(line)
        self.rows.addWidget(self.error)
        self.show_value(default)
        self.slider.picked.connect(self._on_slider_picked)
        self.field.valueChanged.connect(self._on_field_changed)
        self.field.rejected.connect(self._on_text_rejected)
        self.field.lineEdit().textEdited.connect(self._on_text_edited)

    def editor(self) -> QWidget:
        return self.field

    def show_value(self, value: object) -> None:
        assert isinstance(value, (int, float))
        self._show_in_field(value)
        self.slider.show_value(value)

    def words(self, value: object) -> str:
        assert isinstance(value, (int, float))
        if self.info.special and value == self.info.minimum:
            return self.info.special
        return str(value) if self._whole else f"{value:.{self.info.decimals}f}"

    def commit_typed(self) -> None:
        if self.field.lineEdit().isModified():
            self.field.interpretText()

    @Slot(float)
    def _on_slider_picked(self, value: float) -> None:
        self._show_in_field(value)
        self.commit(self._typed(value))

    @Slot(float)
    def _on_field_changed(self, value: float) -> None:
        self.slider.show_value(value)
        self.commit(self._typed(value))

    @Slot(str)
    def _on_text_rejected(self, text: str) -> None:
        self.show_error(self._complaint(text))

    @Slot(str)
    def _on_text_edited(self, _text: str) -> None:
        self.show_error("")

    def _complaint(self, text: str) -> str:
        kind = "a whole number" if self._whole else "a number"
        try:
            number = float(text.replace(",", "."))
            self.check(int(number) if number.is_integer() else number)
        except UsageError as error:
            return str(error)
        except (ValueError, OverflowError):
            pass
        what = f"“{text}”" if text else "nothing"
        return f"{self.info.label} needs {kind}, not {what}."

    def _show_in_field(self, value: float) -> None:
        self.field.blockSignals(True)
        self.field.setValue(value)
        self.field.blockSignals(False)

    def _typed(self, value: float) -> float:
        return round(value) if self._whole else value
