"""The notice strip: words, severity, details on request, and a window that keeps its width."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from slipstream.errors import ModelFileError
from slipstream.ui.notice_strip import NoticeStrip, Severity
from slipstream.ui.theme import apply_theme

ERROR = ModelFileError("The file is not whole", "/models/a.gguf ends early.", "Download it again.")


@pytest.fixture
def window(qapp: QApplication, qtbot: QtBot) -> QWidget:
    apply_theme(qapp, "light")
    page = QWidget()
    qtbot.addWidget(page)
    page.resize(420, 400)
    return page


@pytest.fixture
def strip(window: QWidget) -> NoticeStrip:
    widget = NoticeStrip()
    column = QVBoxLayout(window)
    column.addWidget(widget)
    column.addStretch(1)
    window.show()
    return widget


def test_hidden_until_something_happens(strip: NoticeStrip) -> None:
    assert strip.isHidden()
    assert strip.text() == ""


def test_an_error_says_what_happened_and_what_to_try(strip: NoticeStrip) -> None:
    strip.show_error(ERROR)
    assert strip.isVisible()
    assert strip.severity() is Severity.ERROR
    assert strip.title_label.text() == "The file is not whole"
    assert strip.hint_label.text() == "Download it again."
    assert strip.accessibleName() == "Error: The file is not whole"
    assert "/models/a.gguf" in strip.text()


def test_details_come_on_request(strip: NoticeStrip, qtbot: QtBot) -> None:
    strip.show_error(ERROR)
    assert not strip.detail_label.isVisible()
    qtbot.mouseClick(strip.details_button, Qt.MouseButton.LeftButton)
    assert strip.detail_label.isVisible()
    qtbot.keyClick(strip.details_button, Qt.Key.Key_Space)
    assert not strip.detail_label.isVisible()


def test_details_are_folded_again_for_the_next_notice(strip: NoticeStrip) -> None:
    strip.show_error(ERROR)
    strip.details_button.click()
    strip.show_notice("Other", detail="why")
    assert not strip.detail_label.isVisible()
    assert not strip.details_button.isChecked()


def test_a_plain_notice_has_no_empty_parts(strip: NoticeStrip) -> None:
    strip.show_notice("The model is loaded")
    assert strip.severity() is Severity.INFO
    assert not strip.hint_label.isVisible()
    assert not strip.details_button.isVisible()


def test_dismissing_by_button_and_by_escape(strip: NoticeStrip, qtbot: QtBot) -> None:
    strip.show_error(ERROR)
    qtbot.mouseClick(strip.dismiss_button, Qt.MouseButton.LeftButton)
    assert strip.isHidden()
    strip.show_error(ERROR)
    qtbot.keyClick(strip.dismiss_button, Qt.Key.Key_Escape)
    assert strip.isHidden()


def test_a_note_waits_until_the_error_was_read(strip: NoticeStrip, qtbot: QtBot) -> None:
    strip.show_error(ERROR)
    strip.show_note("ChatML is used")
    assert strip.title_label.text() == "The file is not whole"
    qtbot.mouseClick(strip.dismiss_button, Qt.MouseButton.LeftButton)
    assert strip.text() == "ChatML is used"
    assert strip.severity() is Severity.INFO
    strip.show_note("Something else")
    assert strip.text() == "Something else"
    qtbot.keyClick(strip.dismiss_button, Qt.Key.Key_Escape)
    assert strip.isHidden()
    strip.show_error(ERROR)
    strip.show_note("ChatML is used")
    strip.dismiss()  # as for another model: the note is none of its business
    assert strip.isHidden()
    strip.show_error(ERROR)
    qtbot.mouseClick(strip.dismiss_button, Qt.MouseButton.LeftButton)
    assert strip.isHidden()


def test_long_words_never_widen_the_window(
    strip: NoticeStrip, window: QWidget, qapp: QApplication
) -> None:
    strip.show_notice("x" * 300, "/a/" + "very-long-folder/" * 40, "y " * 400, Severity.WARNING)
    strip.details_button.click()
    qapp.processEvents()
    assert window.width() == 420
    assert window.minimumSizeHint().width() <= 420
    labels = (strip.title_label, strip.hint_label, strip.detail_label)
    assert all(label.height() >= label.heightForWidth(label.width()) for label in labels[1:])


def test_markup_is_shown_as_text(strip: NoticeStrip) -> None:
    strip.show_notice("<img src='file:///etc/passwd'>")
    assert strip.title_label.textFormat() is Qt.TextFormat.PlainText


def test_buttons_have_names_and_tips(strip: NoticeStrip) -> None:
    assert strip.objectName() == "notice_strip"
    for button in (strip.details_button, strip.dismiss_button):
        assert button.accessibleName()
        assert button.toolTip()
