"""Finding the best draft in the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gui.person import Person
from models.tiny_llama import build_tiny_llama
from models.vocabulary import CHATML
from slipstream.bridge.engine_client import EngineState
from slipstream.engine.requests import DraftFinding
from slipstream.errors import EngineError
from slipstream.ui.draft_picker import FIND
from slipstream.ui.draft_search_dialog import DraftSearchDialog


@pytest.fixture
def dialog(qtbot: QtBot) -> DraftSearchDialog:
    made = DraftSearchDialog()
    qtbot.addWidget(made)
    return made


def test_the_fastest_is_offered(dialog: DraftSearchDialog) -> None:
    dialog.show_running("Target.gguf")
    dialog.show_progress(3, 24)
    assert (dialog.progress.value(), dialog.progress.maximum()) == (3, 24)
    dialog.show_outcome(
        (
            DraftFinding("/m/small.gguf", 1.5, 75.0),
            DraftFinding("prompt-lookup", 1.1, 55.0),
            DraftFinding("/m/odd.gguf", None, 0.0, "Token 5 differs."),
        )
    )
    lines = dialog.text().split("\n")
    assert lines[0] == "small is the fastest here: 1.50×"
    assert lines[1:10] == [
        "small", "1.50×", "75.0 tok/\u2060s",
        "Prompt lookup", "1.10×", "55.0 tok/\u2060s",
        "odd", "–", "does not fit",
    ]  # fmt: skip
    heard: list[str] = []
    dialog.chosen.connect(heard.append)
    dialog.use_button.click()
    assert heard == ["/m/small.gguf"]
    assert not dialog.isVisible()


def test_plain_decoding_may_be_the_fastest(dialog: DraftSearchDialog) -> None:
    dialog.show_running("Target.gguf")
    dialog.show_outcome((DraftFinding("prompt-lookup", 1.01, 55.0),))
    assert dialog.text().startswith("Without a draft this model is the fastest here")
    assert not dialog.use_button.isVisible()


def test_a_failure_and_a_cancel_are_told(dialog: DraftSearchDialog) -> None:
    heard: list[bool] = []
    dialog.cancelled.connect(lambda: heard.append(True))
    dialog.show_running("Target.gguf")
    dialog.reject()
    assert heard == [True]
    dialog.show_outcome(None)
    assert "cancelled" in dialog.text()
    dialog.show_outcome(EngineError("It broke.", "Here.", "Try again."))
    assert dialog.text() == "It broke.\nHere. Try again."


def test_the_menu_starts_it_and_the_choice_drafts_again(person: Person, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    build_tiny_llama(folder / "Target.gguf", chat_template=CHATML, name="Target")
    build_tiny_llama(folder / "Draft.gguf", name="Draft")
    app = person.start(folder / "Target.gguf")
    picker, chip = app.window.cockpit.draft_picker, app.window.cockpit.draft_chip
    person.qtbot.waitUntil(
        lambda: "Draft" in [row.title for row in picker.menu.rows.rows], timeout=20_000
    )
    picker.choose(str(folder / "Draft.gguf"))
    person.qtbot.waitUntil(lambda: "active" in chip.text, timeout=20_000)
    dialog = app._controller._drafting.search_dialog
    with person.qtbot.waitSignal(app.engine.search_ended, timeout=120_000) as ended:
        picker.choose(FIND)
        assert app.engine.state is EngineState.CHECKING
        assert dialog.isVisible()
    assert {finding.key for finding in ended.args[0]} == {
        "prompt-lookup",
        str(folder / "Draft.gguf"),
    }
    person.qtbot.waitUntil(
        lambda: app.engine._worker._target.session.drafter.kind == "draft-model", timeout=20_000
    )
    dialog.close()


def test_it_can_be_cancelled(person: Person, tmp_path: Path) -> None:
    build_tiny_llama(tmp_path / "Target.gguf", chat_template=CHATML, name="Target")
    app = person.start(tmp_path / "Target.gguf")
    with person.qtbot.waitSignal(app.engine.search_ended, timeout=60_000) as ended:
        app.window.cockpit.draft_picker.choose(FIND)
        app._controller._drafting.search_dialog.close_button.click()
    assert ended.args == [None]
    assert app.engine.state is EngineState.READY
