"""The system prompt: a folding field for what the model is told before the conversation."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from slipstream.ui.collapsible import CollapsibleSection
from slipstream.ui.text_setting import TextArea

_LINES = 6


class SystemPromptEditor(CollapsibleSection):
    """Edits the system prompt; `changed` carries the text while a person types."""

    changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("System prompt", parent=parent)
        self.setObjectName("system_prompt")
        self.field = TextArea(_LINES, self.body)
        self.field.setObjectName("system_prompt_field")
        self.field.setPlaceholderText("You are a helpful assistant…")
        self.field.setAccessibleName("System prompt")
        self.field.setToolTip("What the model is told before the conversation; empty for nothing.")
        self.body_layout.addWidget(self.field)
        self.field.textChanged.connect(self._on_text_changed)

    def text(self) -> str:
        """The system prompt as typed."""
        return self.field.toPlainText()

    def set_text(self, text: str) -> None:
        """Shows a system prompt, without a signal."""
        if text != self.text():
            self.field.blockSignals(True)
            self.field.setPlainText(text)
            self.field.blockSignals(False)
            self._summarise()

    @Slot()
    def _on_text_changed(self) -> None:
        self._summarise()
        self.changed.emit(self.text())

    def _summarise(self) -> None:
        self.set_summary(" ".join(self.text().split())[:80])
