"""The draft picker and its controls: what can draft, why not, what a person changed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QDir, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from slipstream.engine.requests import Pace
from slipstream.engine.speculation.drafter import MAX_DRAFT, DraftSettings, PaceStatus
from slipstream.ui.draft_controls import DraftControls, DraftSettingRow
from slipstream.ui.draft_picker import DraftEntry, DraftPicker
from slipstream.ui.file_picker import BROWSE
from slipstream.ui.pace_words import pace_words
from slipstream.ui.theme import CAPTION_PX, SPACE_L, interface_font
from slipstream.ui.wrapping import fitting_facts

HEAD = DraftEntry("/models/head.gguf", "Head", "F16 · 14 MB · EAGLE-3 head")
OTHER = DraftEntry("/models/other.gguf", "Other 1B", "Q4_K_M · 800 MB · draft model")
REASON = "Its vocabulary differs: token 128 is “the” here and “was” in the target."
MISFIT = DraftEntry("/models/misfit.gguf", "Misfit 1B", "Q4_0 · 1.1 GB", False, REASON)


@pytest.fixture
def picker(qtbot: QtBot) -> DraftPicker:
    result = DraftPicker()
    qtbot.addWidget(result)
    result.resize(280, 120)
    result.show()
    return result


@pytest.fixture
def chosen(picker: DraftPicker) -> list[str]:
    told: list[str] = []
    picker.draft_chosen.connect(told.append)
    return told


def offered(picker: DraftPicker) -> list[str]:
    return [row.title for row in picker.menu.rows.rows]


def test_without_a_draft_the_picker_says_what_one_is_for(picker: DraftPicker) -> None:
    assert picker.objectName() == "draft_picker"
    assert picker.choice == "none"
    shown = (picker.button.text(), picker.button.caption)
    assert shown == ("Choose a draft", "Speculative decoding")
    words = "A draft can make answers faster without changing them. Prompt lookup needs no file."
    assert words in picker.button.toolTip()
    assert picker.hint.isVisible()
    assert picker.hint.text() == words
    assert picker.button.accessibleName() == "Draft: Choose a draft"
    assert picker.button.accessibleDescription().endswith("Opens the list of drafts.")


def test_menu_offers_what_needs_no_file_files_and_browse(picker: DraftPicker) -> None:
    assert offered(picker) == [
        *("Without a file", "None", "Prompt lookup", "Find the best draft…"),
        *("On this computer", "Browse…"),
    ]
    picker.set_entries((HEAD,), (OTHER, MISFIT), has_mtp=True)
    assert offered(picker) == [
        *("Without a file", "None", "Prompt lookup", "Built-in MTP", "Find the best draft…"),
        *("Recent", "Head"),
        *("On this computer", "Other 1B", "Browse…"),
        *("Not for this target", "Misfit 1B"),
    ]
    rows = {row.title: row for row in picker.menu.rows.rows}
    assert rows["Prompt lookup"].caption == "Drafts from the text itself"
    assert rows["Other 1B"].caption == "Q4_K_M · 800 MB · draft model"
    assert [rows[title].key for title in ("None", "Prompt lookup", "Built-in MTP", "Head")] == [
        *("none", "prompt-lookup", "mtp", HEAD.key),
    ]


def test_misfit_is_listed_with_its_reason(picker: DraftPicker) -> None:
    picker.set_entries((), (MISFIT,), has_mtp=False)
    row = picker.menu.rows.row_at(picker.menu.rows.index_of(MISFIT.key))
    assert row is not None
    assert not row.enabled
    assert (row.caption, row.note) == (MISFIT.caption, REASON)
    assert REASON in row.tooltip
    assert MISFIT.key in row.tooltip


def test_reason_of_a_misfit_takes_lines_of_its_row(picker: DraftPicker) -> None:
    picker.set_entries((), (HEAD, MISFIT), has_mtp=False)
    picker.open_menu()
    heights = {
        row.title: picker.menu.list.visualRect(picker.menu.rows.index_of(row.key)).height()
        for row in picker.menu.rows.rows
        if not row.header
    }
    assert heights["Misfit 1B"] == heights["Head"] + 32


def test_misfit_cannot_be_chosen(picker: DraftPicker, chosen: list[str], qtbot: QtBot) -> None:
    picker.set_entries((MISFIT, HEAD), (), has_mtp=False)
    picker.open_menu()
    view = picker.menu.list

    def click(title: str) -> None:
        index = picker.menu.rows.index(offered(picker).index(title))
        view.scrollTo(index)
        spot = view.visualRect(index).center()
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=spot)

    click("Misfit 1B")
    assert chosen == []
    assert picker.menu.isVisible()
    click("Head")
    assert chosen == [HEAD.key]
    assert not picker.menu.isVisible()


def test_keyboard_steps_over_the_misfit(
    picker: DraftPicker, chosen: list[str], qtbot: QtBot
) -> None:
    picker.set_entries((MISFIT, HEAD), (), has_mtp=False)
    picker.show_choice("prompt-lookup")
    qtbot.keyClick(picker.button, Qt.Key.Key_Down)
    assert picker.menu.list.currentIndex().data() == "Prompt lookup"
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Down)
    assert picker.menu.list.currentIndex().data() == "Find the best draft…"
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Down)
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Return)
    assert chosen == [HEAD.key]
    assert picker.choice == "prompt-lookup"  # only `show_choice` changes it


def test_choices_in_words(picker: DraftPicker) -> None:
    picker.set_entries((HEAD,), (), has_mtp=True)
    shown = []
    for key in ("prompt-lookup", "mtp", HEAD.key, "/elsewhere/Other.gguf"):
        picker.show_choice(key)
        assert not picker.hint.isVisible()
        shown.append((picker.button.text(), picker.button.caption))
    assert shown == [
        ("Prompt lookup", "Drafts from the text itself"),
        ("Built-in MTP", "The target's own heads"),
        ("Head", "F16 · 14 MB · EAGLE-3 head"),
        ("Other", "Draft file"),
    ]
    picker.show_choice("none")
    assert picker.hint.isVisible()


@pytest.mark.parametrize("panel", [280, 320])
def test_captions_of_the_closed_picker_are_never_cut(picker: DraftPicker, panel: int) -> None:
    picker.button.resize(panel - 2 * SPACE_L - 12, 52)  # the panel's margins and scroll bar
    picker.set_entries((), (MISFIT,), has_mtp=True)
    metrics = QFontMetrics(interface_font(CAPTION_PX))
    for key in ("none", "prompt-lookup", "mtp", MISFIT.key):
        picker.show_choice(key)
        assert metrics.horizontalAdvance(picker.button.caption) <= picker.button.words_width


def test_facts_without_room_are_left_out_whole() -> None:
    metrics = QFontMetrics(interface_font(CAPTION_PX))
    room = metrics.horizontalAdvance("Q4_K_M · 800 MB · draft")
    assert fitting_facts("Q4_K_M · 800 MB · draft model", metrics, room) == "Q4_K_M · 800 MB"
    assert fitting_facts("Q4_K_M · 800 MB", metrics, room) == "Q4_K_M · 800 MB"
    assert fitting_facts("Q4_K_M", metrics, metrics.horizontalAdvance("Q4_K")).endswith("…")


def test_choice_that_another_target_rules_out_stays_with_its_reason(picker: DraftPicker) -> None:
    fit = DraftEntry(MISFIT.key, MISFIT.name, MISFIT.caption)
    picker.set_entries((fit,), (), has_mtp=True)
    picker.show_choice(MISFIT.key)
    assert picker.button.caption == MISFIT.caption
    picker.set_entries((MISFIT,), (), has_mtp=False)
    assert (picker.choice, picker.button.caption) == (MISFIT.key, "Does not fit this target")
    assert REASON in picker.button.toolTip()
    picker.show_choice("mtp")
    assert picker.button.caption == "Does not fit this target"
    assert "This target has no MTP heads." in picker.button.toolTip()


def test_misfit_without_a_reason_still_says_something(picker: DraftPicker) -> None:
    assert DraftEntry("/x.gguf", "X", "Q4", available=False).note == "Does not fit this target."


@pytest.mark.parametrize("width", [236, 276, 500])
def test_menu_is_as_wide_as_the_button_and_stands_below_it(picker: DraftPicker, width: int) -> None:
    picker.resize(width, 120)
    long = DraftEntry("/x.gguf", "DeepSeek-R1-Distill-" * 20, available=False, reason="Why. " * 90)
    picker.set_entries((HEAD, long), (OTHER,), has_mtp=False)
    picker.open_menu()
    button = picker.button
    corner = button.mapToGlobal(button.rect().topLeft())
    menu = picker.menu.geometry()
    assert (menu.left(), menu.width()) == (corner.x(), button.width())
    assert menu.top() >= corner.y() + button.height() or menu.bottom() < corner.y()


def test_browse_reports_the_file(
    picker: DraftPicker, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QFileDialog] = []
    monkeypatch.setattr(QFileDialog, "open", lambda dialog: opened.append(dialog))
    picker.menu.chosen.emit(BROWSE)
    (dialog,) = opened
    assert dialog.windowTitle() == "Choose a draft"
    dialog.fileSelected.emit("/models/drâft with space.gguf")
    assert chosen == [QDir.toNativeSeparators("/models/drâft with space.gguf")]
    dialog.close()


def test_long_words_keep_the_narrow_picker_narrow(picker: DraftPicker) -> None:
    long = DraftEntry("/x.gguf", "DeepSeek-R1-Distill-" * 20, available=False, reason="Why. " * 90)
    picker.set_entries((long,), (), has_mtp=False)
    picker.show_choice(long.key)
    assert picker.minimumSizeHint().width() <= 248


# ---- depth and probability --------------------------------------------------------------------


@pytest.fixture
def controls(qtbot: QtBot) -> DraftControls:
    result = DraftControls()
    qtbot.addWidget(result)
    result.resize(280, 240)
    result.show()
    result.pace_switch.click()  # depth and probability belong to the fixed pace
    return result


@pytest.fixture
def told(controls: DraftControls) -> list[DraftSettings]:
    settings: list[DraftSettings] = []
    controls.changed.connect(lambda: settings.append(controls.settings()))
    return settings


def enter(row: DraftSettingRow, text: str, qtbot: QtBot) -> None:
    row.field.setFocus()
    row.field.selectAll()
    qtbot.keyClicks(row.field, text)
    qtbot.keyClick(row.field, Qt.Key.Key_Return)


def test_under_the_auto_pace_the_depth_is_the_apps(qtbot: QtBot) -> None:
    controls = DraftControls()
    qtbot.addWidget(controls)
    controls.show()
    assert controls.pace() is Pace.AUTO
    assert controls.pace_label.isVisible()
    assert not controls.depth_row.isVisible()
    controls.pace_switch.click()
    assert controls.pace() is Pace.FIXED
    assert controls.depth_row.isVisible()
    assert controls.p_min_row.isVisible()
    controls.set_probabilities(False)
    assert not controls.p_min_row.isVisible()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "Speed with and without is measured with the first answer."),
        (
            PaceStatus(4, 1.341, 1.4, 3.0),
            "1.34× as fast as without here · Drafted 4 tokens last.",
        ),
        (
            PaceStatus(1, 1.01, 1.1, 30.0),
            "As fast as without a draft here · Drafted 1 token last. "
            "Plain speed measured 30 s ago.",
        ),
        (PaceStatus(0, 0.99, 0.87, 1.0), "Not drafting now: it would be 0.87× as fast here."),
        (PaceStatus(0, 1.0, None, 1.0), "Not drafting now: nothing was found to draft from."),
        (
            PaceStatus(0, 1.5, 1.6, 300.0),
            "1.50× as fast as without here · Nothing to draft from just now. "
            "Plain speed measured 5 min ago.",
        ),
    ],
)
def test_pacing_is_told_in_words(status: PaceStatus | None, words: str) -> None:
    assert pace_words(status) == words


def test_controls_begin_with_the_defaults(controls: DraftControls) -> None:
    assert controls.settings() == DraftSettings()
    assert (controls.depth_row.value(), controls.p_min_row.value()) == (4, 0.0)
    assert (controls.depth_row.field.minimum(), controls.depth_row.field.maximum()) == (1, 32)
    assert (controls.p_min_row.field.minimum(), controls.p_min_row.field.maximum()) == (0, 1)
    assert not controls.depth_row.changed


def test_fields_and_sliders_change_the_settings(
    controls: DraftControls, told: list[DraftSettings], qtbot: QtBot
) -> None:
    enter(controls.depth_row, "8", qtbot)
    enter(controls.p_min_row, "0.35", qtbot)
    assert told == [DraftSettings(8), DraftSettings(8, p_min=0.35)]
    controls.depth_row.slider.setFocus()
    qtbot.keyClick(controls.depth_row.slider, Qt.Key.Key_End)
    assert told[-1] == DraftSettings(MAX_DRAFT, p_min=0.35) == controls.settings()
    qtbot.mouseClick(controls.depth_row.dot, Qt.MouseButton.LeftButton)
    assert told[-1] == DraftSettings(p_min=0.35)


@pytest.mark.parametrize(("text", "kept"), [("0", 4), ("33", 4), ("2.5", 4), ("x", 4)])
def test_impossible_depth_says_why_and_changes_nothing(
    controls: DraftControls, told: list[DraftSettings], qtbot: QtBot, text: str, kept: int
) -> None:
    enter(controls.depth_row, text, qtbot)
    assert told == []
    assert controls.settings().n_draft_max == kept
    assert controls.depth_row.error.isVisible()
    if text == "33":
        assert "must lie between 1 and 32" in controls.depth_row.error.text()


def test_setting_is_silent_and_keeps_the_shortest_draft_within_the_depth(
    controls: DraftControls, told: list[DraftSettings], qtbot: QtBot
) -> None:
    controls.set_settings(DraftSettings(6, n_draft_min=3, p_min=0.5))
    assert told == []
    assert (controls.depth_row.value(), controls.p_min_row.value()) == (6, 0.5)
    enter(controls.depth_row, "2", qtbot)
    assert told == [DraftSettings(2, n_draft_min=2, p_min=0.5)]


def test_controls_are_named_and_explained(controls: DraftControls) -> None:
    for row in (controls.depth_row, controls.p_min_row):
        for widget in (row.field, row.slider):
            assert widget.accessibleName().startswith(row.info.label)
            assert row.info.help in widget.toolTip()
            assert "Default: " in widget.toolTip()
        assert row.info.help.count(".") == 1  # one sentence
