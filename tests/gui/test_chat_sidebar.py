"""The chat sidebar: groups by day, one report per choice, renaming, a search that waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from slipstream.chat.records import ChatSummary
from slipstream.ui.chat_sidebar import ChatSidebar, section_of

NOW = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)


def chat(name: str, days: float = 0.0) -> ChatSummary:
    return ChatSummary(name, f"Chat {name}", NOW - timedelta(days=days))


CHATS = (chat("a"), chat("b", 0.1), chat("c", 1), chat("d", 3), chat("e", 30))


@pytest.fixture
def sidebar(qtbot: QtBot) -> ChatSidebar:
    result = ChatSidebar()
    qtbot.addWidget(result)
    result.resize(240, 600)
    with qtbot.waitExposed(result):
        result.show()
        result.activateWindow()
    return result


@pytest.fixture
def selected(sidebar: ChatSidebar) -> list[str]:
    told: list[str] = []
    sidebar.chat_selected.connect(told.append)
    return told


def titles(sidebar: ChatSidebar) -> list[str]:
    model = sidebar.chat_list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def place(sidebar: ChatSidebar, title: str) -> QPoint:
    index = sidebar.chat_list.model().index(titles(sidebar).index(title), 0)
    return sidebar.chat_list.visualRect(index).center()


def click(qtbot: QtBot, sidebar: ChatSidebar, title: str) -> None:
    viewport = sidebar.chat_list.viewport()
    qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place(sidebar, title))


@pytest.mark.parametrize(
    ("days", "section"),
    [
        (-1, "Today"),
        (0, "Today"),
        (0.62, "Today"),  # 00:07 of the same day
        (0.63, "Yesterday"),  # 23:52 of the day before
        (1, "Yesterday"),
        (2, "Previous 7 days"),
        (7, "Previous 7 days"),
        (8, "Older"),
        (400, "Older"),
    ],
)
def test_sections(days: float, section: str) -> None:
    assert section_of(NOW - timedelta(days=days), NOW) == section


def test_days_are_those_of_the_reader() -> None:
    tokyo = timezone(timedelta(hours=9))
    now = datetime(2026, 12, 1, 1, 0, tzinfo=tokyo)  # 16:00 UTC the day before
    assert section_of(datetime(2026, 11, 30, 15, 30, tzinfo=UTC), now) == "Today"
    assert section_of(datetime(2026, 11, 30, 14, 30, tzinfo=UTC), now) == "Yesterday"


def test_list_is_grouped_newest_first(sidebar: ChatSidebar) -> None:
    sidebar.set_chats(tuple(reversed(CHATS)), NOW)
    assert titles(sidebar) == [
        *("Today", "Chat a", "Chat b", "Yesterday", "Chat c"),
        *("Previous 7 days", "Chat d", "Older", "Chat e"),
    ]


def test_headers_cannot_be_chosen(sidebar: ChatSidebar, selected: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(CHATS, NOW)
    click(qtbot, sidebar, "Yesterday")
    assert selected == []


def test_click_tells_once(sidebar: ChatSidebar, selected: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(CHATS, NOW)
    click(qtbot, sidebar, "Chat c")
    click(qtbot, sidebar, "Chat c")
    assert selected == ["c"]
    assert sidebar.selected == "c"


def test_arrow_keys_skip_headers(sidebar: ChatSidebar, selected: list[str], qtbot: QtBot) -> None:
    sidebar.set_chats(CHATS, NOW)
    sidebar.select("b")
    sidebar.chat_list.setFocus()
    qtbot.keyClick(sidebar.chat_list, Qt.Key.Key_Down)
    qtbot.keyClick(sidebar.chat_list, Qt.Key.Key_Up)
    assert selected == ["c", "b"]


def test_select_and_refill_are_silent(sidebar: ChatSidebar, selected: list[str]) -> None:
    sidebar.set_chats(CHATS, NOW)
    sidebar.select("d")
    assert sidebar.chat_list.currentIndex().data() == "Chat d"
    sidebar.set_chats(CHATS[:2], NOW)  # a search leaves it out
    assert not sidebar.chat_list.currentIndex().isValid()
    assert sidebar.chat_list.selectedIndexes() == []
    sidebar.set_chats(CHATS, NOW)
    assert sidebar.chat_list.currentIndex().data() == "Chat d"
    sidebar.select("")
    assert sidebar.chat_list.selectedIndexes() == []
    assert selected == []


def rename(qtbot: QtBot, sidebar: ChatSidebar, typed: str, key: Qt.Key) -> None:
    editor = sidebar.chat_list.findChild(QLineEdit)
    assert editor is not None
    editor.selectAll()
    qtbot.keyClick(editor, Qt.Key.Key_Delete)
    qtbot.keyClicks(editor, typed)
    qtbot.keyClick(editor, key)
    qtbot.waitUntil(lambda: sidebar.chat_list.findChild(QLineEdit) is None)


@pytest.mark.parametrize(
    ("typed", "key", "told"),
    [
        ("  New name ", Qt.Key.Key_Return, [("b", "New name")]),
        ("New name", Qt.Key.Key_Escape, []),
        ("   ", Qt.Key.Key_Return, []),
        ("Chat b", Qt.Key.Key_Return, []),
    ],
)
def test_f2_renames(
    sidebar: ChatSidebar, qtbot: QtBot, typed: str, key: Qt.Key, told: list[tuple[str, str]]
) -> None:
    reports: list[tuple[str, str]] = []
    sidebar.chat_renamed.connect(lambda chat_id, title: reports.append((chat_id, title)))
    sidebar.set_chats(CHATS, NOW)
    sidebar.select("b")
    sidebar.chat_list.setFocus()
    qtbot.keyClick(sidebar.chat_list, Qt.Key.Key_F2)
    rename(qtbot, sidebar, typed, key)
    assert reports == told


def test_double_click_renames(sidebar: ChatSidebar, qtbot: QtBot) -> None:
    sidebar.set_chats(CHATS, NOW)
    click(qtbot, sidebar, "Chat d")
    viewport = sidebar.chat_list.viewport()
    with qtbot.waitSignal(sidebar.chat_renamed) as report:
        qtbot.mouseDClick(viewport, Qt.MouseButton.LeftButton, pos=place(sidebar, "Chat d"))
        rename(qtbot, sidebar, "Other", Qt.Key.Key_Return)
    assert report.args == ["d", "Other"]


def test_no_bare_key_deletes(sidebar: ChatSidebar, qtbot: QtBot) -> None:
    sidebar.set_chats(CHATS, NOW)
    sidebar.select("b")
    for key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
        qtbot.keyClick(sidebar.chat_list, key)
    assert "Chat b" in titles(sidebar)


def test_search_waits_for_a_pause(sidebar: ChatSidebar, qtbot: QtBot) -> None:
    told: list[str] = []
    sidebar.search_changed.connect(told.append)
    qtbot.keyClicks(sidebar.search_box, "tea")
    assert told == []
    qtbot.waitUntil(lambda: told == ["tea"])
    qtbot.keyClicks(sidebar.search_box, " ")  # nothing new to find
    qtbot.wait(250)
    assert told == ["tea"]
    qtbot.keyClick(sidebar.search_box, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: told == ["tea", ""])


def test_down_goes_from_the_search_into_the_list(
    sidebar: ChatSidebar, selected: list[str], qtbot: QtBot
) -> None:
    sidebar.set_chats(CHATS, NOW)
    sidebar.search_box.setFocus()
    qtbot.keyClick(sidebar.search_box, Qt.Key.Key_Down)
    assert sidebar.chat_list.hasFocus()
    assert selected == ["a"]


def test_empty_list_speaks(sidebar: ChatSidebar) -> None:
    assert sidebar.empty_words.isVisible()
    assert sidebar.empty_words.text().startswith("No chats yet")
    sidebar.search_box.setText("tea")
    sidebar.set_chats((), NOW)
    assert sidebar.empty_words.text() == "Nothing found for “tea”"
    sidebar.set_chats(CHATS, NOW)
    assert not sidebar.empty_words.isVisible()
    assert sidebar.chat_list.isVisible()


def test_new_chat_button_and_shortcut(sidebar: ChatSidebar, qtbot: QtBot) -> None:
    told: list[bool] = []
    sidebar.new_chat_requested.connect(lambda: told.append(True))
    qtbot.mouseClick(sidebar.new_button, Qt.MouseButton.LeftButton)
    qtbot.keyClick(sidebar, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(told) == 2)


def test_untitled_and_multi_line_titles_take_one_line(sidebar: ChatSidebar) -> None:
    sidebar.set_chats(
        (ChatSummary("x", " ", NOW), ChatSummary("y", "two\nlines", NOW - timedelta(hours=1))), NOW
    )
    assert titles(sidebar) == ["Today", "New chat", "two lines"]


def test_controls_are_named(sidebar: ChatSidebar) -> None:
    for widget in (sidebar.new_button, sidebar.search_box, sidebar.chat_list):
        assert widget.accessibleName()
        assert widget.toolTip()
        assert widget.focusPolicy() != Qt.FocusPolicy.NoFocus
    assert (sidebar.search_box.objectName(), sidebar.chat_list.objectName()) == (
        "search_box",
        "chat_list",
    )
