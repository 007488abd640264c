"""Shows a losslessness check while it runs and what it found."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLabel, QWidget

from slipstream.engine.requests import LosslessnessReport
from slipstream.errors import UserError
from slipstream.ui.losslessness_words import candidates, explanation, headline
from slipstream.ui.task_dialog import GOOD, INFO, WARNING, TaskDialog
from slipstream.ui.theme import set_kind


class LosslessnessDialog(TaskDialog):
    """Says whether two answers are the same, or shows both candidates where they part."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Check losslessness", "losslessness", stretched=1, parent=parent)

    def show_running(self, draft: str) -> None:
        """A check has begun with this draft."""
        self.begin(
            "Writing the answer again",
            f"At temperature 0, first with {draft} and then without it, to compare the two.",
        )

    @Slot(object)
    def show_outcome(self, outcome: object) -> None:
        """A `LosslessnessReport`, a `UserError`, or None for a check that was cancelled."""
        self.end()
        if isinstance(outcome, LosslessnessReport):
            self._show_report(outcome)
        elif isinstance(outcome, UserError):
            self.say_error(outcome)
        else:
            self.say("The check was cancelled", "Nothing was compared.", INFO)

    def _show_report(self, report: LosslessnessReport) -> None:
        divergence = report.divergence
        icon = GOOD
        if divergence is not None:
            icon = INFO if divergence.is_rounding else WARNING
            rows = [[QLabel(words) for words in row] for row in candidates(divergence)]
            for which, _text, probability in rows:
                set_kind(which, "muted")
                probability.setAlignment(
                    Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                )
            self.show_table(rows)
        self.say(headline(report), explanation(report), icon)
