"""The model picker: which model file is loaded, how loading goes, and a menu to choose another.

It shows entries it is given; it neither looks for files nor reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.file_picker import FilePicker, browse_row
from slipstream.ui.icons import set_icon
from slipstream.ui.section_list import ListRow
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import SPACE_S, SPACE_XS, set_kind


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model as the picker shows it.

    `caption` is a short line such as “Q4_1 · 92 MB · 8k context”, `details` what stands below the
    control (“llama · Apache-2.0”), `note` why an unavailable one cannot be chosen.
    """

    path: str
    name: str
    caption: str = ""
    details: str = ""
    available: bool = True
    note: str = ""


class ModelPicker(FilePicker):
    """Shows the chosen model and lets a person choose another.

    `model_chosen` carries a path and changes nothing here: what is loaded is shown by
    `show_loading` and `show_model` once it is so.
    """

    model_chosen = Signal(str)
    cancel_requested = Signal()

    def __init__(
        self, role: str = "Model", name: str = "target_picker", parent: QWidget | None = None
    ) -> None:
        super().__init__(role, "model", name, parent)
        self._current: ModelEntry | None = None
        self.facts = ElidedLabel(self)
        self.facts.setObjectName(f"{name}_facts")
        set_kind(self.facts, "caption")
        self._below = QStackedWidget(self)
        self._below.addWidget(self.facts)
        self._below.addWidget(self._make_progress(name))
        self._below.setFixedHeight(28)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.button)
        layout.addWidget(self._below)
        self.set_entries((), None)
        self.show_none()

    def _make_progress(self, name: str) -> QWidget:
        box = QWidget(self)
        self.progress = QProgressBar(box)
        self.progress.setObjectName(f"{name}_progress")
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Loading the model")
        self.progress.setToolTip("How much of the model is loaded")
        self.cancel_button = QToolButton(box)
        self.cancel_button.setObjectName(f"{name}_cancel")
        set_icon(self.cancel_button, "close")
        self.cancel_button.setText("Cancel")
        self.cancel_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.cancel_button.setAccessibleName("Cancel loading")
        self.cancel_button.setToolTip("Stop loading this model")
        self.cancel_button.clicked.connect(self.cancel_requested)
        line = QHBoxLayout(box)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(SPACE_S)
        line.addWidget(self.progress, 1)
        line.addWidget(self.cancel_button)
        return box

    def set_entries(self, recent: Sequence[ModelEntry], starter: ModelEntry | None) -> None:
        """What the menu offers: recent files, newest first, and the starter model."""
        rows: list[ListRow] = []
        others = [entry for entry in recent if starter is None or entry.path != starter.path]
        if others:
            rows.append(ListRow(key="", title="Recent", header=True))
            rows += [_row(entry, with_folder=True) for entry in others]
        if starter is not None:
            rows.append(ListRow(key="", title="Starter model", header=True))
            rows.append(_row(starter, with_folder=False))
        if rows:
            rows.append(ListRow(key="", title="On this computer", header=True))
        rows.append(browse_row())
        self._menu.rows.set_rows(rows)

    def show_model(self, entry: ModelEntry) -> None:
        """A model is loaded."""
        self._current = entry
        self.button.show_words(entry.name, entry.caption, _tooltip(entry))
        self._show_facts(entry.details)

    def show_none(self) -> None:
        """No model is loaded."""
        self._current = None
        self.button.show_words("Choose a model", "No model loaded", "Choose a model to chat with")
        self._show_facts("Choose one or drop a .gguf file here.")

    def show_loading(self, name: str, fraction: float | None) -> None:
        """A model is being loaded; `fraction` from 0 to 1, or None while it is unknown."""
        if fraction is None:
            self.progress.setRange(0, 0)
            caption = "Loading…"
        else:
            percent = min(max(int(fraction * 100), 0), 100)
            self.progress.setRange(0, 100)
            self.progress.setValue(percent)
            caption = f"Loading… {percent} %"
        self.button.show_words(name, caption)
        self._below.setCurrentIndex(1)

    def show_failed(self, name: str) -> None:
        """A model could not be loaded; the reason stands in the notice strip."""
        self._current = None
        self.button.show_words(name, "Could not be loaded", failed=True)
        self._show_facts("Choose another model.")

    def choose(self, key: str) -> None:
        self.model_chosen.emit(key)

    def current_key(self) -> str:
        return self.current_path()

    def current_path(self) -> str:
        return self._current.path if self._current else ""

    def _show_facts(self, words: str) -> None:
        self.facts.setText(words)
        self.facts.setToolTip(words)
        self._below.setCurrentIndex(0)


def _tooltip(entry: ModelEntry) -> str:
    parts = (entry.name, entry.path, entry.caption, entry.details, entry.note)
    return wrapped("\n".join(part for part in parts if part))


def _row(entry: ModelEntry, with_folder: bool) -> ListRow:
    if entry.available:
        folder = PurePath(entry.path).parent.name if with_folder else ""
        parts = (entry.caption, folder)
    else:
        parts = (entry.note or "file not found", str(PurePath(entry.path).parent))
    return ListRow(
        key=entry.path,
        title=entry.name,
        caption=" · ".join(part for part in parts if part),
        tooltip=_tooltip(entry),
        enabled=entry.available,
    )
