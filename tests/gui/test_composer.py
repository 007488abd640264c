"""The composer: sending, stopping, breaking lines, input methods, and never losing text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent, QTextOption
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from slipstream.ui.composer import Composer
from slipstream.ui.theme import apply_theme


@pytest.fixture
def composer(qapp: QApplication, qtbot: QtBot) -> Composer:
    apply_theme(qapp, "light")
    widget = Composer()
    qtbot.addWidget(widget)
    widget.resize(700, 200)
    widget.show()
    widget.activateWindow()
    widget.field.setFocus()
    return widget


@pytest.fixture
def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.send_requested.connect(texts.append)
    return texts


@pytest.fixture
def stops(composer: Composer) -> list[int]:
    counted: list[int] = []

    def count() -> None:
        counted.append(1)

    composer.stop_requested.connect(count)
    return counted


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_sends_and_keeps_the_text_until_it_is_taken(
    composer: Composer, sent: list[str], qtbot: QtBot, key: Qt.Key
) -> None:
    qtbot.keyClicks(composer.field, "hello")
    qtbot.keyClick(composer.field, key)
    assert sent == ["hello"]
    assert composer.text() == "hello"
    composer.clear_after_send()
    assert composer.text() == ""


def test_the_button_sends(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_text("hello")
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert sent == ["hello"]


def test_shift_enter_breaks_the_line(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.field, "one")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.field, "two")
    assert composer.text() == "one\ntwo"
    assert sent == []


def test_enter_that_confirms_an_input_method_candidate_does_not_send(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    composer.set_text("あ")
    QApplication.sendEvent(composer.field, QInputMethodEvent("か", []))
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    confirmed = QInputMethodEvent("", [])
    confirmed.setCommitString("か")
    QApplication.sendEvent(composer.field, confirmed)
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == ["あか"]


def test_nothing_but_space_is_not_sent(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    composer.set_text(" \n ")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    assert not composer.send_button.isEnabled()


def test_stop_takes_the_place_of_send(composer: Composer, stops: list[int], qtbot: QtBot) -> None:
    place = composer.send_button.geometry()
    composer.set_answering(True)
    qtbot.waitUntil(lambda: composer.stop_button.geometry() == place)
    assert composer.stop_button.isVisible()
    assert not composer.send_button.isVisible()
    qtbot.mouseClick(composer.stop_button, Qt.MouseButton.LeftButton)
    assert len(stops) == 1
    composer.set_answering(False)
    assert composer.send_button.isVisible()
    assert not composer.stop_button.isVisible()


def test_escape_stops_only_while_answering(
    composer: Composer, stops: list[int], qtbot: QtBot
) -> None:
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert stops == []
    composer.set_answering(True)
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert len(stops) == 1


def test_enter_while_answering_keeps_the_text(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    composer.set_answering(True)
    qtbot.keyClicks(composer.field, "next question")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    assert composer.text() == "next question"


def test_without_a_model_one_can_type_but_not_send(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    composer.set_ready(False, "Choose a model first.")
    assert composer.field.placeholderText() == "Choose a model first."
    qtbot.keyClicks(composer.field, "hello")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    assert not composer.send_button.isEnabled()
    assert composer.send_button.toolTip() == "Choose a model first."
    composer.set_ready(True)
    assert composer.text() == "hello"
    assert composer.send_button.isEnabled()


def test_focus_returns_to_the_field_when_the_buttons_change(
    composer: Composer, qtbot: QtBot
) -> None:
    composer.set_text("hello")
    composer.send_button.setFocus()
    composer.set_answering(True)
    assert composer.focusWidget() is composer.field


def test_field_grows_to_eight_lines_and_then_scrolls(composer: Composer, qtbot: QtBot) -> None:
    heights = []
    for lines in (1, 2, 8, 20):
        composer.set_text("\n".join(["line"] * lines))
        heights.append(composer.field.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]
    assert composer.field.verticalScrollBar().maximum() > 0
    composer.clear_after_send()
    assert composer.field.height() == heights[0]


def test_field_grows_with_wrapped_lines(composer: Composer) -> None:
    composer.set_text("one")
    one = composer.field.height()
    composer.set_text("many words " * 30)
    assert composer.field.height() > one


def test_a_word_longer_than_any_line_is_wrapped_without_looking_for_its_end(
    composer: Composer,
) -> None:
    """Word by word, Qt would need a quarter of an hour for these; see `wrap_mode`."""
    usual = composer.field.wordWrapMode()
    data = QMimeData()
    data.setText("y" * 5_000_000)
    composer.field.insertFromMimeData(data)
    assert composer.field.wordWrapMode() is QTextOption.WrapMode.WrapAnywhere
    assert len(composer.text()) == 5_000_000
    composer.clear_after_send()
    assert composer.field.wordWrapMode() is usual
    composer.set_text("y" * 100_000)
    assert composer.field.wordWrapMode() is QTextOption.WrapMode.WrapAnywhere
    composer.set_text("word " * 20_000)
    assert composer.field.wordWrapMode() is usual


def test_pasting_brings_plain_text_only(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("plain")
    composer.field.insertFromMimeData(data)
    assert composer.text() == "plain"


def test_set_text_can_be_undone(composer: Composer) -> None:
    composer.set_text("first")
    composer.set_text("second")
    composer.field.undo()
    assert composer.text() == "first"


def test_tab_moves_on(composer: Composer, qtbot: QtBot) -> None:
    composer.set_text("hello")
    qtbot.keyClick(composer.field, Qt.Key.Key_Tab)
    assert composer.text() == "hello"
    assert composer.focusWidget() is composer.send_button


def test_everything_has_a_name(composer: Composer) -> None:
    assert composer.field.objectName() == "composer"
    for widget in (composer.field, composer.send_button, composer.stop_button):
        assert widget.accessibleName()
    assert composer.send_button.objectName() == "send_button"
    assert composer.stop_button.objectName() == "stop_button"
