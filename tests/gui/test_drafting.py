"""Drafting in the real window, with tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QMenu, QWidget

from gui.person import Person
from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from models.vocabulary import CHATML
from slipstream.bridge.engine_client import EngineState
from slipstream.chat.records import AnswerRecord
from slipstream.engine.requests import Pace
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.errors import EngineError

ENDLESS = ((2, -100.0), (344, -100.0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "models"
    made.mkdir()
    build_tiny_llama(made / "Target.gguf", chat_template=CHATML, name="Target")
    build_tiny_llama(made / "Draft.gguf", name="Draft")  # the same weights: all is accepted
    build_other_vocabulary_llama(made / "Stranger.gguf")
    return made


def last_answer(person: Person) -> AnswerRecord:
    chat = person.running._controller._chat
    assert chat is not None
    answer = chat.messages[-1].answer
    assert answer is not None
    return answer


def choose_draft(person: Person, key: str, words: str) -> None:
    """Choose a draft in the picker and wait for the chip to say so."""
    cockpit = person.running.window.cockpit
    cockpit.draft_picker.draft_chosen.emit(key)
    person.qtbot.waitUntil(lambda: words in cockpit.draft_chip.text, timeout=20_000)


def draft_always(person: Person) -> None:
    """Draft to a fixed depth, whether it pays with these tiny models or not."""
    switch = person.running.window.cockpit.draft_controls.pace_switch
    if switch.isChecked():
        switch.click()


def test_every_part_has_its_name(person: Person, folder: Path) -> None:
    window = person.start(folder / "Target.gguf").window
    for name in ("draft_picker", "draft_chip", "acceptance_gauge"):
        assert len(window.findChildren(QWidget, name)) == 1, name


def test_chip_and_gauge_follow_the_choice_and_the_target_stays(
    person: Person, folder: Path
) -> None:
    app = person.start(folder / "Target.gguf")
    cockpit = app.window.cockpit
    loads: list[object] = []
    app.engine.model_loaded.connect(loads.append)
    assert "off" in cockpit.draft_chip.text
    assert not cockpit.acceptance.isVisible()
    person.choose(temperature=0.0, max_tokens=21, logit_bias=ENDLESS)
    plain = person.ask("Hello")
    assert last_answer(person).speculation.rounds == 0

    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    assert "Draft.gguf" in cockpit.draft_chip.text
    app.window.sidebar.new_button.click()
    assert person.ask("Hello") == plain
    record = last_answer(person)
    assert (record.drafter, record.draft_path) == ("draft-model", str(folder / "Draft.gguf"))
    assert record.speculation.acceptance_rate == 1.0
    assert cockpit.acceptance.isVisible()
    assert cockpit.acceptance.rate == "100 %"

    choose_draft(person, "prompt-lookup", "prompt lookup")
    app.window.sidebar.new_button.click()
    assert person.ask("Hello") == plain
    assert last_answer(person).drafter == "prompt-lookup"

    choose_draft(person, "none", "off")
    app.window.sidebar.new_button.click()
    assert person.ask("Hello") == plain
    assert last_answer(person).drafter == "none"
    assert not cockpit.acceptance.isVisible()
    assert loads == []


def test_a_draft_that_does_not_fit_says_why_and_the_chat_goes_on(
    person: Person, folder: Path
) -> None:
    app = person.start(folder / "Target.gguf")
    choose_draft(person, str(folder / "Stranger.gguf"), "off, because")
    assert "oken 300" in app.window.cockpit.draft_chip.text
    assert "Stranger.gguf" in app.window.notice_strip.text()
    assert app.window.cockpit.acceptance.isHidden()
    person.choose(max_tokens=3, logit_bias=ENDLESS)
    assert person.ask("Hello") != ""


def sections(person: Person) -> dict[str, list[str]]:
    """The titles below each header of the draft menu."""
    found: dict[str, list[str]] = {}
    for row in person.running.window.cockpit.draft_picker.menu.rows.rows:
        if row.header:
            found[row.title] = []
        else:
            list(found.values())[-1].append(row.title)
    return found


def test_files_beside_the_target_are_offered_with_their_fitness(
    person: Person, folder: Path
) -> None:
    app = person.start(folder / "Target.gguf")
    menu = app.window.cockpit.draft_picker.menu
    person.qtbot.waitUntil(lambda: "Not for this target" in sections(person), timeout=20_000)
    assert sections(person) == {
        "Without a file": ["None", "Prompt lookup", "Find the best draft…"],
        "On this computer": ["Draft", "Browse…"],
        "Not for this target": ["Stranger"],
    }
    rows = {row.title: row for row in menu.rows.rows}
    assert (rows["Draft"].enabled, rows["Stranger"].enabled) == (True, False)
    assert rows["Draft"].caption == "F32 · 433.1 kB · draft model"
    assert rows["Stranger"].caption == rows["Draft"].caption
    assert "oken 300" in rows["Stranger"].note


def test_a_file_used_before_is_recent_and_the_target_shows_only_while_it_drafts(
    person: Person, folder: Path
) -> None:
    person.start(folder / "Target.gguf")
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    person.qtbot.waitUntil(
        lambda: (
            sections(person).get("Recent") == ["Draft"]
            and sections(person)["On this computer"] == ["Browse…"]
        ),
        timeout=20_000,
    )
    choose_draft(person, str(folder / "Target.gguf"), "Target.gguf")
    person.qtbot.waitUntil(
        lambda: sections(person).get("Recent") == ["Target", "Draft"], timeout=20_000
    )
    choose_draft(person, "prompt-lookup", "prompt lookup")
    person.qtbot.waitUntil(lambda: sections(person).get("Recent") == ["Draft"], timeout=20_000)


def test_a_draft_chosen_without_a_model_says_why_it_is_off(person: Person, tmp_path: Path) -> None:
    app = person.start(tmp_path / "missing.gguf", wait=False)
    person.wait_for(EngineState.EMPTY)
    choose_draft(person, "prompt-lookup", "off, because")
    assert app.window.cockpit.draft_chip.text == "Draft off, because no model is loaded"
    choose_draft(person, "none", "off")
    assert app.window.cockpit.draft_chip.text == "Draft off"


def test_the_panel_stands_still_while_an_answer_is_written(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    cockpit = app.window.cockpit
    person.choose(temperature=0.0, max_tokens=60, logit_bias=ENDLESS)
    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    person.qtbot.waitUntil(cockpit.acceptance.isVisible)
    assert cockpit.acceptance.height() <= 20
    heights: list[int] = []
    app.engine.frame_ready.connect(lambda _frame: heights.append(cockpit.acceptance.height()))
    person.ask("Hello")
    assert not cockpit.acceptance.empty
    assert len(heights) > 0
    assert set(heights) == {cockpit.acceptance.height()}
    assert heights[0] >= 100


def test_the_choice_is_remembered_for_each_target(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    controls = app.window.cockpit.draft_controls
    controls.set_settings(type(controls.settings())(n_draft_max=7, p_min=0.25), Pace.FIXED)
    controls.changed.emit()
    app.window.model_dropped.emit(str(folder / "Draft.gguf"))
    person.wait_for(EngineState.READY)
    assert app.window.cockpit.target_picker.button.text() == "Draft"
    assert "off" in app.window.cockpit.draft_chip.text
    person.quit()
    app = person.start(folder / "Target.gguf")
    cockpit = app.window.cockpit
    person.qtbot.waitUntil(lambda: "active" in cockpit.draft_chip.text, timeout=20_000)
    assert cockpit.draft_controls.settings().n_draft_max == 7
    assert cockpit.draft_controls.settings().p_min == 0.25
    assert cockpit.draft_controls.pace() is Pace.FIXED


def test_an_answer_without_drafts_clears_the_figures_of_the_one_before(
    person: Person, folder: Path
) -> None:
    app = person.start(folder / "Target.gguf")
    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    person.choose(temperature=0.0, max_tokens=13, logit_bias=ENDLESS)
    person.ask("Hello")
    assert not app.window.cockpit.acceptance.empty
    person.choose(temperature=0.0, max_tokens=1, logit_bias=ENDLESS)  # no room for a draft
    person.ask("Hello")
    assert last_answer(person).speculation.rounds == 0
    assert app.window.cockpit.acceptance.empty


def test_changing_the_depth_loads_nothing_anew(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    drafter = app.engine._worker._target.session.drafter  # type: ignore[union-attr]
    controls = app.window.cockpit.draft_controls
    with person.qtbot.waitSignal(app.engine.draft_changed, timeout=20_000):
        controls.set_settings(type(controls.settings())(n_draft_max=2), Pace.FIXED)
        controls.changed.emit()
    assert app.engine._worker._target.session.drafter is drafter  # type: ignore[union-attr]
    person.choose(temperature=0.0, max_tokens=13, logit_bias=ENDLESS)
    person.ask("Hello")
    assert len(last_answer(person).speculation.accepted_at) == 2


def test_accepted_tokens_are_coloured_on_demand_and_remembered(
    person: Person, folder: Path
) -> None:
    app = person.start(folder / "Target.gguf")
    tools = app.window.cockpit.draft_tools
    assert not tools.isVisible()
    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    assert tools.isVisible()
    person.choose(temperature=0.0, max_tokens=21, logit_bias=ENDLESS)
    answer = person.ask("Hello")
    record = last_answer(person)
    coloured = sum(end - start for start, end in record.accepted_text)
    assert 0 < coloured < len(answer)
    tools.colours_switch.click()
    assert app.window.transcript._style.shows_accepted
    choose_draft(person, "none", "off")
    assert tools.isVisible()  # else nobody could switch the colours off
    person.quit()
    app = person.start(folder / "Target.gguf")
    assert app.window.transcript._style.shows_accepted
    assert last_answer(person).accepted_text == record.accepted_text
    app.window.cockpit.draft_tools.colours_switch.click()
    assert not app.window.cockpit.draft_tools.isVisible()


def check_last_answer(person: Person) -> str:
    """Press the button, wait for the outcome, return what the dialog says."""
    app = person.running
    with person.qtbot.waitSignal(app.engine.check_ended, timeout=60_000):
        app.window.cockpit.draft_tools.check_button.click()
        assert app.engine.state is EngineState.CHECKING
        assert app.window.composer.stop_button.isVisible()
    return app._controller._losslessness.dialog.text()


def test_losslessness_is_checked_on_the_last_answer(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    button = app.window.cockpit.draft_tools.check_button
    draft_always(person)
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    assert not button.isEnabled()
    assert "no answer" in button.toolTip()
    person.choose(temperature=1.0, max_tokens=15, logit_bias=ENDLESS)
    person.ask("Hello")
    answer = person.ask("And again")
    assert button.isEnabled()
    words = check_last_answer(person)
    assert words.startswith("Identical, 15 tokens")
    assert "100 % of" in words
    assert app.engine.state is EngineState.READY
    assert app.window.transcript.answer_text() == answer
    choose_draft(person, "none", "off")
    assert not button.isEnabled()
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    app.window.model_dropped.emit(str(folder / "Draft.gguf"))
    person.wait_for(EngineState.READY)
    assert "Target" in button.toolTip()


def test_a_check_can_be_cancelled_and_the_chat_goes_on(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    person.choose(temperature=0.0, max_tokens=400, logit_bias=ENDLESS)
    person.ask("Hello")
    dialog = app._controller._losslessness.dialog
    with person.qtbot.waitSignal(app.engine.check_ended, timeout=60_000) as ended:
        app.window.cockpit.draft_tools.check_button.click()
        assert dialog.isVisible()
        dialog.close_button.click()
    assert ended.args == [None]
    assert not dialog.isVisible()
    person.choose(max_tokens=3, logit_bias=ENDLESS)
    assert person.ask("Go on") != ""


def test_quitting_during_a_check_is_clean(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    person.choose(temperature=0.0, max_tokens=400, logit_bias=ENDLESS)
    person.ask("Hello")
    app.window.cockpit.draft_tools.check_button.click()
    person.quit()


def test_the_menu_of_an_answer_offers_the_check(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    choose_draft(person, "prompt-lookup", "prompt lookup")
    person.choose(temperature=0.0, max_tokens=4, logit_bias=ENDLESS)
    person.ask("Hello")
    chat = app._controller._chat
    assert chat is not None

    def offered(message: object) -> list[tuple[str, bool]]:
        menu = QMenu(app.window)
        app.window.transcript.menu_opening.emit(menu, message)
        return [(action.text(), action.isEnabled()) for action in menu.actions() if action.text()]

    assert offered(chat.messages[0]) == []
    assert offered(None) == []
    assert offered(chat.messages[1]) == [("Check losslessness…", True)]
    choose_draft(person, "none", "off")
    assert offered(chat.messages[1]) == [("Check losslessness…", False)]


def test_a_drafter_that_fails_midway_turns_itself_off_with_a_notice(
    person: Person, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = person.start(folder / "Target.gguf")
    person.choose(temperature=0.0, max_tokens=30, logit_bias=ENDLESS)
    plain = person.ask("Hello")
    draft_always(person)
    choose_draft(person, "prompt-lookup", "prompt lookup")
    calls = 0

    def failing(self: PromptLookupDrafter, history: list[int], limit: int, guide: object) -> object:
        nonlocal calls
        calls += 1
        raise EngineError("The drafter broke.")

    monkeypatch.setattr(PromptLookupDrafter, "draft", failing)
    app.window.sidebar.new_button.click()
    assert person.ask("Hello") == plain
    assert calls == 1
    assert "off, because" in app.window.cockpit.draft_chip.text
    assert "The drafter broke." in app.window.notice_strip.text()
    assert app.engine.state is EngineState.READY


def test_the_pace_is_shown_and_kept_for_each_target(person: Person, folder: Path) -> None:
    app = person.start(folder / "Target.gguf")
    controls = app.window.cockpit.draft_controls
    choose_draft(person, str(folder / "Draft.gguf"), "active")
    assert "prompt lookup" in app.window.cockpit.draft_chip.text
    assert controls.pace() is Pace.AUTO
    assert not controls.depth_row.isVisible()
    person.choose(temperature=0.0, max_tokens=30, logit_bias=ENDLESS)
    person.ask("Hello")
    person.qtbot.waitUntil(lambda: "first answer" not in controls.pace_label.text(), timeout=5_000)
    draft_always(person)
    assert controls.depth_row.isVisible()
    assert not controls.pace_label.isVisible()
    person.quit()
    app = person.start(folder / "Target.gguf")
    assert app.window.cockpit.draft_controls.pace() is Pace.FIXED
