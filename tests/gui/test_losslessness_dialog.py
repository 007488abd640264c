"""What the losslessness dialog says of every outcome."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.requests import Candidate, Divergence, LosslessnessReport
from slipstream.errors import EngineError
from slipstream.ui.losslessness_dialog import LosslessnessDialog

FIGURES = SpeculationStatistics(rounds=10, drafted=40, verified=40, accepted=30)


def report(divergence: Divergence | None = None, **values: object) -> LosslessnessReport:
    tokens = (1, 2, 3)
    given = {
        "with_draft": tokens if divergence is None else (1, 2, 9),
        "without_draft": tokens,
        "speculation": FIGURES,
        "with_draft_rate": 60.0,
        "without_draft_rate": 48.0,
        "divergence": divergence,
        **values,
    }
    return LosslessnessReport(**given)  # type: ignore[arg-type]


@pytest.fixture
def dialog(qtbot: QtBot) -> LosslessnessDialog:
    made = LosslessnessDialog()
    qtbot.addWidget(made)
    return made


def test_identical(dialog: LosslessnessDialog) -> None:
    dialog.show_running("Draft.gguf")
    assert dialog.close_button.text() == "Cancel"
    assert "Draft.gguf" in dialog.text()
    dialog.show_progress(3, 20)
    assert (dialog.progress.value(), dialog.progress.maximum()) == (3, 20)
    dialog.show_outcome(report())
    words = dialog.text()
    assert words.startswith("Identical, 3 tokens\n")
    assert "75 % of 40 drafted tokens were accepted" in words
    assert "1.25× as fast (60.0 and 48.0 tok/\u2060s)" in words
    assert dialog.close_button.text() == "Close"
    assert not dialog.progress.isVisible()


def test_nothing_drafted_is_said(dialog: LosslessnessDialog) -> None:
    dialog.show_outcome(report(speculation=SpeculationStatistics()))
    assert "Nothing was drafted" in dialog.text()


def test_a_difference_by_rounding_shows_both_candidates(dialog: LosslessnessDialog) -> None:
    found = Divergence(2, Candidate(9, " foo\n", 0.4012), Candidate(3, " bar", 0.4031))
    dialog.show_outcome(report(found))
    lines = dialog.text().split("\n")
    assert lines[0] == "Token 3 differs"
    assert lines[1:7] == [
        "With the draft",
        "“ foo↵”",
        "40.12 %",
        "Without",
        "“ bar”",
        "40.31 %",
    ]
    assert "rounding decides" in lines[7]


def test_a_real_difference_asks_for_a_report(dialog: LosslessnessDialog) -> None:
    dialog.show_outcome(report(Divergence(0, Candidate(9, "x", 0.1), Candidate(3, "y", 0.8))))
    assert dialog.text().startswith("The first token differs")
    assert "please report" in dialog.text()


def test_a_failure_is_told_and_a_new_outcome_replaces_the_table(dialog: LosslessnessDialog) -> None:
    dialog.show_outcome(report(Divergence(0, Candidate(9, "x", 0.1), Candidate(3, "y", 0.8))))
    dialog.show_outcome(EngineError("It broke.", "Here.", "Try again."))
    assert dialog.text() == "It broke.\nHere. Try again."


def test_closing_a_running_check_cancels_it_once(dialog: LosslessnessDialog, qtbot: QtBot) -> None:
    heard: list[bool] = []
    dialog.cancelled.connect(lambda: heard.append(True))
    dialog.show_running("Draft.gguf")
    dialog.reject()
    assert heard == [True]
    dialog.show_outcome(None)
    dialog.close()
    assert heard == [True]
