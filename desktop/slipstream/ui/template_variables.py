"""Controls for the variables a chat template reads: thinking on or off, effort, and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QIntValidator, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from slipstream.ui.theme import SPACE_M, SPACE_XS

_AS_TEMPLATE = "As the template decides"
_MOST = 2**31 - 1


class Variable(Protocol):
    """What the editor needs to know; the engine's `TemplateVariable` has it."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def choices(self) -> Sequence[str]: ...
    @property
    def default(self) -> Any: ...


class ChoiceBox(QComboBox):
    """A choice that leaves the wheel to the panel around it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class TemplateVariablesEditor(QWidget):
    """A switch, a choice or a field for each variable; hidden when there are none.

    `changed` carries only the values that differ from what the template takes by itself.
    """

    changed = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("template_variables")
        self._variables: dict[str, Variable] = {}
        self._controls: dict[str, QWidget] = {}
        self._box: QWidget | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self.hide()

    def set_variables(
        self, variables: Sequence[Variable], values: Mapping[str, object] | None = None
    ) -> None:
        """Shows controls for variables, with these values where they fit; no signal."""
        layout = self.layout()
        assert layout is not None
        if self._box is not None:
            layout.removeWidget(self._box)
            self._box.hide()
            self._box.deleteLater()
        self._variables = {variable.name: variable for variable in variables}
        self._controls = {}
        self._box = QWidget(self)
        lines = QVBoxLayout(self._box)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(SPACE_M)
        for variable in variables:
            lines.addLayout(self._line(variable, (values or {}).get(variable.name)))
        layout.addWidget(self._box)
        self.setVisible(bool(variables))

    def values(self) -> dict[str, object]:
        """The values that differ from the defaults, by name."""
        chosen = {name: self._value(name) for name in self._controls}
        return {
            name: value
            for name, value in chosen.items()
            if value is not None and value != self._variables[name].default
        }

    def control(self, name: str) -> QWidget:
        """The control of a variable."""
        return self._controls[name]

    def _line(self, variable: Variable, value: object) -> QVBoxLayout:
        label = variable.label or variable.name.replace("_", " ").capitalize()
        control = self._control(variable, label, variable.default if value is None else value)
        control.setObjectName(f"variable_{variable.name}")
        control.setAccessibleName(label)
        control.setToolTip(f"The chat template reads this as “{variable.name}”.")
        self._controls[variable.name] = control
        line = QVBoxLayout()
        line.setSpacing(SPACE_XS)
        if not isinstance(control, QCheckBox):
            caption = QLabel(label, self._box)
            caption.setBuddy(control)
            line.addWidget(caption)
        line.addWidget(control)
        return line

    def _control(self, variable: Variable, label: str, value: object) -> QWidget:
        if variable.kind == "choice":
            return self._choice([(word, word) for word in variable.choices], variable, value)
        if variable.kind == "switch" and variable.default is None:
            return self._choice([("On", True), ("Off", False)], variable, value)
        if variable.kind == "switch":
            switch = QCheckBox(label, self._box)
            switch.setChecked(bool(value))
            switch.toggled.connect(self._on_changed)
            return switch
        field = QLineEdit("" if value is None else str(value), self._box)
        field.setPlaceholderText(_AS_TEMPLATE)
        if variable.kind == "number":
            field.setValidator(QIntValidator(-_MOST, _MOST, field))
        field.textChanged.connect(self._on_changed)
        return field

    def _choice(
        self, items: Sequence[tuple[str, object]], variable: Variable, value: object
    ) -> QComboBox:
        box = ChoiceBox(self._box)
        if variable.default is None:
            box.addItem(_AS_TEMPLATE, None)
        for words, item in items:
            box.addItem(words, item)
        box.setCurrentIndex(max(box.findData(value), 0))
        box.currentIndexChanged.connect(self._on_changed)
        return box

    def _value(self, name: str) -> object:
        control = self._controls[name]
        if isinstance(control, QCheckBox):
            return control.isChecked()
        if isinstance(control, QComboBox):
            return control.currentData()
        assert isinstance(control, QLineEdit)
        text = control.text().strip()
        if self._variables[name].kind != "number":
            return text or None
        try:
            return int(text)
        except ValueError:
            return None

    @Slot()
    def _on_changed(self) -> None:
        self.changed.emit(self.values())
