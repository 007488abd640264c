"""The threads panel says what computes, and a person's choice is used and remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gui.person import Person
from models.tiny_llama import build_tiny_llama
from models.vocabulary import CHATML
from slipstream.engine.requests import TargetFacts
from slipstream.ui.threads_panel import ThreadsPanel


def facts(writing: int, reading: int) -> TargetFacts:
    return TargetFacts(
        path=Path("/models/a.gguf"),
        n_ctx=64,
        n_ctx_train=64,
        n_batch=64,
        n_threads=writing,
        n_threads_batch=reading,
        flash_attention=True,
        template_name="chatml",
        template_variables=(),
        notes=(),
    )


@pytest.fixture
def panel(qtbot: QtBot) -> ThreadsPanel:
    result = ThreadsPanel(8)
    qtbot.addWidget(result)
    result.resize(280, 300)
    result.section.set_expanded(True)
    result.show()
    return result


@pytest.mark.parametrize(
    ("writing", "reading", "summary", "words"),
    [
        (
            2, 2, "2 threads",
            "2 threads in use for writing and reading, chosen for this model on this computer.",
        ),
        (
            1, 4, "1 and 4 threads",
            "1 thread in use for writing, 4 for reading, chosen for this model on this computer.",
        ),
    ],
)  # fmt: skip
def test_it_says_what_is_in_use(
    panel: ThreadsPanel, writing: int, reading: int, summary: str, words: str
) -> None:
    assert panel.in_use.isHidden()  # no model is loaded yet
    panel.show_facts(facts(writing, reading))
    assert panel.section.header.summary == summary
    assert panel.in_use.text() == words


def test_a_choice_is_told_and_no_longer_called_measured(panel: ThreadsPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.changed):
        panel.writing_row.field.setValue(3)
    assert panel.threads() == (3, 0)
    panel.show_facts(facts(3, 2))
    assert panel.in_use.text() == "3 threads in use for writing, 2 for reading."
    with qtbot.waitSignal(panel.changed):
        panel.writing_row.dot.click()
    assert panel.threads() == (0, 0)


def test_a_choice_from_a_larger_computer_is_cut_to_this_one(panel: ThreadsPanel) -> None:
    panel.set_threads(64, 2)
    assert panel.threads() == (8, 2)


def test_more_threads_than_the_computer_has_are_refused_in_words(panel: ThreadsPanel) -> None:
    panel.writing_row.commit(9)
    assert panel.threads() == (0, 0)
    assert panel.writing_row.error.text() == (
        "Threads for writing cannot be 9. This computer can run 8 at once. Choose 1 to 8, or 0 "
        "for what measured best."
    )


def test_a_person_changes_the_threads_and_finds_them_again(person: Person, tmp_path: Path) -> None:
    model = build_tiny_llama(tmp_path / "tiny.gguf", chat_template=CHATML)
    app = person.start(model)
    panel = app.window.cockpit.threads_panel
    assert not panel.in_use.isHidden()
    panel.writing_row.field.setValue(1)
    panel.reading_row.field.setValue(1)
    person.qtbot.waitUntil(
        lambda: panel.in_use.text() == "1 thread in use for writing and reading.", timeout=10_000
    )
    assert person.ask("Hello")
    person.quit()
    again = person.start(model).window.cockpit.threads_panel
    assert again.threads() == (1, 1)
    assert again.in_use.text() == "1 thread in use for writing and reading."
