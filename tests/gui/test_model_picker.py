"""The model picker: says what is loaded, offers what can be, reports a choice and nothing more."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QDir, QPoint, Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from slipstream.ui.file_picker import BROWSE
from slipstream.ui.model_picker import ModelEntry, ModelPicker

ONE = ModelEntry("/models/one/one.gguf", "One 7B", "Q4_K_M · 4.1 GB · 8k context", "llama · MIT")
GONE = ModelEntry("/old/gone.gguf", "Gone 3B", available=False, note="file not found")
STARTER = ModelEntry("/app/starter.gguf", "Starter", "Q4_1 · 92 MB", "llama · Apache-2.0")


@pytest.fixture
def picker(qtbot: QtBot) -> ModelPicker:
    result = ModelPicker()
    qtbot.addWidget(result)
    result.resize(280, 90)
    result.show()
    return result


@pytest.fixture
def chosen(picker: ModelPicker) -> list[str]:
    told: list[str] = []
    picker.model_chosen.connect(told.append)
    return told


def offered(picker: ModelPicker) -> list[str]:
    return [row.title for row in picker.menu.rows.rows]


def test_nothing_chosen_says_what_to_do(picker: ModelPicker) -> None:
    assert picker.objectName() == "target_picker"
    assert (picker.button.text(), picker.button.caption) == ("Choose a model", "No model loaded")
    assert "drop a .gguf file" in picker.facts.text()
    assert offered(picker) == ["Browse…"]


def test_loaded_model(picker: ModelPicker) -> None:
    picker.show_model(ONE)
    assert (picker.button.text(), picker.button.caption) == (ONE.name, ONE.caption)
    assert picker.facts.text() == "llama · MIT"
    assert picker.button.accessibleName() == "Model: One 7B"
    assert ONE.path in picker.button.toolTip()


def test_loading_and_cancelling(picker: ModelPicker, qtbot: QtBot) -> None:
    picker.show_loading("One 7B", None)
    assert (picker.progress.minimum(), picker.progress.maximum()) == (0, 0)
    assert picker.button.caption == "Loading…"
    picker.show_loading("One 7B", 0.429)
    assert (picker.progress.maximum(), picker.progress.value()) == (100, 42)
    assert picker.button.caption == "Loading… 42 %"
    assert picker.cancel_button.isVisible()
    with qtbot.waitSignal(picker.cancel_requested):
        qtbot.mouseClick(picker.cancel_button, Qt.MouseButton.LeftButton)
    picker.show_model(ONE)
    assert not picker.cancel_button.isVisible()


def test_states_do_not_change_the_height(picker: ModelPicker) -> None:
    heights = {picker.sizeHint().height()}
    picker.show_loading("One 7B", 0.5)
    heights.add(picker.sizeHint().height())
    picker.show_model(ONE)
    heights.add(picker.sizeHint().height())
    picker.show_failed("broken.gguf")
    heights.add(picker.sizeHint().height())
    assert len(heights) == 1


def test_failure_is_said_in_words(picker: ModelPicker) -> None:
    picker.show_failed("broken.gguf")
    assert picker.button.text() == "broken.gguf"
    assert picker.button.caption == "Could not be loaded"
    assert "Choose another" in picker.facts.text()


def test_long_name_keeps_the_narrow_picker_narrow(picker: ModelPicker) -> None:
    name = "DeepSeek-R1-Distill-" * 20
    picker.show_model(ModelEntry("/x.gguf", name, "caption " * 30, "details " * 30))
    assert picker.minimumSizeHint().width() <= 264
    assert name in picker.button.toolTip()


def test_menu_offers_recent_starter_and_browse(picker: ModelPicker) -> None:
    picker.set_entries((ONE, GONE, STARTER), STARTER)
    assert offered(picker) == [
        *("Recent", "One 7B", "Gone 3B"),
        *("Starter model", "Starter"),
        *("On this computer", "Browse…"),
    ]
    rows = {row.title: row for row in picker.menu.rows.rows}
    assert rows["One 7B"].caption == "Q4_K_M · 4.1 GB · 8k context · one"
    assert rows["Gone 3B"].caption.startswith("file not found")
    assert not rows["Gone 3B"].enabled


def test_keyboard_chooses_past_what_is_missing(
    picker: ModelPicker, chosen: list[str], qtbot: QtBot
) -> None:
    picker.set_entries((GONE, ONE), STARTER)
    qtbot.keyClick(picker.button, Qt.Key.Key_Down)
    assert picker.menu.isVisible()
    assert picker.menu.list.currentIndex().data() == "One 7B"
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Down)
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Return)
    assert chosen == [STARTER.path]
    assert not picker.menu.isVisible()
    assert picker.button.text() == "Choose a model"  # nothing is loaded yet


def test_menu_opens_at_the_loaded_model_and_escape_closes_it(
    picker: ModelPicker, chosen: list[str], qtbot: QtBot
) -> None:
    picker.set_entries((ONE,), STARTER)
    picker.show_model(STARTER)
    qtbot.mouseClick(picker.button, Qt.MouseButton.LeftButton)
    assert picker.menu.list.currentIndex().data() == "Starter"
    qtbot.keyClick(picker.menu.list, Qt.Key.Key_Escape)
    assert not picker.menu.isVisible()
    assert chosen == []


def test_click_chooses_and_missing_files_do_nothing(
    picker: ModelPicker, chosen: list[str], qtbot: QtBot
) -> None:
    picker.set_entries((GONE, ONE), STARTER)
    picker.open_menu()
    view = picker.menu.list

    def click(title: str) -> None:
        index = picker.menu.rows.index(offered(picker).index(title))
        spot: QPoint = view.visualRect(index).center()
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=spot)

    click("Gone 3B")
    assert chosen == []
    assert picker.menu.isVisible()
    click("One 7B")
    assert chosen == [ONE.path]


def test_browse_reports_the_file(
    picker: ModelPicker, chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QFileDialog] = []
    monkeypatch.setattr(QFileDialog, "open", lambda dialog: opened.append(dialog))
    picker.menu.chosen.emit(BROWSE)
    (dialog,) = opened
    assert any("*.gguf" in pattern for pattern in dialog.nameFilters())
    assert dialog.fileMode() == QFileDialog.FileMode.ExistingFile
    dialog.fileSelected.emit("/models/näme with space.gguf")
    assert chosen == [QDir.toNativeSeparators("/models/näme with space.gguf")]
    dialog.close()


def test_controls_are_named(picker: ModelPicker) -> None:
    for widget in (picker.button, picker.cancel_button, picker.menu.list):
        assert widget.accessibleName()
        assert widget.toolTip()
        assert widget.focusPolicy() != Qt.FocusPolicy.NoFocus
