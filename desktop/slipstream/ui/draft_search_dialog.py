"""Shows the search for the best draft while it runs and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from slipstream.engine.requests import DraftFinding
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.errors import UserError
from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.setting_row import wrapped
from slipstream.ui.task_dialog import GOOD, INFO, TaskDialog
from slipstream.ui.theme import set_kind

_PAYS = 1.02  # gains below are within what repeating a measurement changes
_NAMES = {
    str(DrafterKind.PROMPT_LOOKUP): "Prompt lookup",
    str(DrafterKind.MTP): "Built-in MTP",
}


class DraftSearchDialog(TaskDialog):
    """Lists every way to draft with its gain; `chosen` carries the key of the one to use."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Find the best draft", "draft_search", stretched=0, parent=parent)
        self._best = ""
        self.use_button = QPushButton("Use it")
        self.use_button.setObjectName("draft_search_use_button")
        set_kind(self.use_button, "primary")
        self.use_button.clicked.connect(self._use)
        self.use_button.hide()
        self.buttons.addWidget(self.use_button)

    def show_running(self, model: str) -> None:
        """The search has begun for this target."""
        self.use_button.hide()
        self.begin(
            "Measuring",
            f"{model} writes a few short answers with every draft that fits it, and the same ones "
            "without. This takes some minutes with a large model.",
        )

    @Slot(object)
    def show_outcome(self, outcome: object) -> None:
        """A tuple of `DraftFinding`, a `UserError`, or None for a search that was cancelled."""
        self.end()
        if isinstance(outcome, UserError):
            self.say_error(outcome)
        elif isinstance(outcome, tuple):
            self._show_findings(outcome)
        else:
            self.say("The search was cancelled", "Nothing was changed.", INFO)

    def _show_findings(self, findings: Sequence[DraftFinding]) -> None:
        best = findings[0] if findings else None
        self._best = best.key if best is not None and (best.gain or 0.0) >= _PAYS else ""
        self.use_button.setVisible(bool(self._best))
        self.show_table([_cells(finding) for finding in findings])
        self.say(
            f"{_name(best.key)} is the fastest here: {best.gain:.2f}×"
            if best is not None and self._best
            else "Without a draft this model is the fastest here",
            "Beside plain decoding, over an explanation, some code, and a text to change. "
            "Texts that repeat more gain more.",
            GOOD if self._best else INFO,
        )

    @Slot()
    def _use(self) -> None:
        self.chosen.emit(self._best)
        self.close()


def _cells(finding: DraftFinding) -> tuple[QLabel, QLabel, QLabel]:
    """Name, gain and speed."""
    name = ElidedLabel()
    name.setText(_name(finding.key))
    name.setToolTip(wrapped(finding.obstacle or finding.key))
    gain = QLabel("–" if finding.gain is None else f"{finding.gain:.2f}×")
    speed = f"{finding.tokens_per_second:.1f} tok/\u2060s"
    rate = QLabel("does not fit" if finding.obstacle else speed)
    set_kind(rate, "muted")
    for label in (gain, rate):
        label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return name, gain, rate


def _name(key: str) -> str:
    return _NAMES.get(key) or PurePath(key).stem
