"""The chat sidebar: start a chat, search, and the list of chats by the day they were last used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from slipstream.chat.records import ChatSummary
from slipstream.ui.icons import icon, set_icon
from slipstream.ui.section_list import (
    ListRow,
    SectionListDelegate,
    SectionListModel,
    SectionListView,
)
from slipstream.ui.theme import SPACE_M, SPACE_S, SPACE_XL, set_kind, theme

SEARCH_MS = 150
UNTITLED = "New chat"


class ChatList(SectionListView):
    """The list itself; F2 and a double click rename, no bare key deletes."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F2 and self.currentIndex().isValid():
            self.edit(self.currentIndex())
        else:
            super().keyPressEvent(event)


class SearchBox(QLineEdit):
    """The search field; Down moves into the list, Escape empties it."""

    down_pressed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)


class ChatSidebar(QWidget):
    """Shows the chats it is given and reports what a person asks for; it filters nothing itself."""

    chat_selected = Signal(str)
    new_chat_requested = Signal()
    chat_renamed = Signal(str, str)
    search_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chat_sidebar")
        self._selected = ""
        self._searched = ""
        self._filling = False
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_M, 0, 0)
        layout.setSpacing(SPACE_S)
        top = QVBoxLayout()
        top.setContentsMargins(SPACE_M, 0, SPACE_M, 0)
        top.setSpacing(SPACE_S)
        top.addWidget(self._make_new_button())
        top.addWidget(self._make_search_box())
        layout.addLayout(top)
        layout.addWidget(self._make_list(), 1)
        layout.addWidget(self._make_empty_words(), 1)
        self._search_pause = QTimer(self)
        self._search_pause.setSingleShot(True)
        self._search_pause.setInterval(SEARCH_MS)
        self._search_pause.timeout.connect(self._on_search_pause_over)
        self._show_empty_words()

    def _make_new_button(self) -> QPushButton:
        self.new_button = QPushButton(UNTITLED, self)
        self.new_button.setObjectName("new_chat_button")
        set_icon(self.new_button, "plus")
        self.new_button.setShortcut(QKeySequence(QKeySequence.StandardKey.New))
        keys = self.new_button.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self.new_button.setToolTip(f"Start a new chat ({keys})")
        self.new_button.setAccessibleName(UNTITLED)
        self.new_button.clicked.connect(self.new_chat_requested)
        return self.new_button

    def _make_search_box(self) -> SearchBox:
        self.search_box = SearchBox(self)
        self.search_box.setObjectName("search_box")
        self.search_box.setPlaceholderText("Search chats")
        self.search_box.setClearButtonEnabled(True)
        self.search_box.setAccessibleName("Search chats")
        self.search_box.setToolTip("Find chats by their title and text")
        self._search_icon = self.search_box.addAction(
            icon("search", "muted"), QLineEdit.ActionPosition.LeadingPosition
        )
        theme().changed.connect(self._dress)
        self.search_box.textChanged.connect(self._on_search_edited)
        self.search_box.down_pressed.connect(self._enter_list)
        return self.search_box

    def _make_list(self) -> ChatList:
        self.chat_list = ChatList(SectionListDelegate(), self)
        self.chat_list.setObjectName("chat_list")
        self.chat_list.setAccessibleName("Chats")
        self.chat_list.setToolTip("Enter or click opens a chat, F2 or a double click renames it")
        self.chat_list.setEditTriggers(ChatList.EditTrigger.DoubleClicked)
        self._model = SectionListModel(self)
        self._model.renamed.connect(self.chat_renamed)
        self.chat_list.setModel(self._model)
        self.chat_list.selectionModel().currentChanged.connect(self._on_current_changed)
        return self.chat_list

    def _make_empty_words(self) -> QLabel:
        self.empty_words = QLabel(self)
        self.empty_words.setObjectName("chat_list_empty")
        self.empty_words.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self.empty_words.setContentsMargins(SPACE_M, SPACE_XL, SPACE_M, 0)
        self.empty_words.setWordWrap(True)
        self.empty_words.setTextFormat(Qt.TextFormat.PlainText)
        set_kind(self.empty_words, "muted")
        return self.empty_words

    def set_chats(self, chats: Sequence[ChatSummary], now: datetime) -> None:
        """Lists chats, newest first, under the days of `now`'s time zone. The selection stays."""
        ordered = sorted(chats, key=lambda chat: chat.updated_at, reverse=True)
        rows: list[ListRow] = []
        section = ""
        for chat in ordered:
            current = section_of(chat.updated_at, now)
            if current != section:
                section = current
                rows.append(ListRow(key="", title=section, header=True))
            rows.append(_row(chat))
        scrolled = self.chat_list.verticalScrollBar().value()
        self._filling = True
        self._model.set_rows(rows)
        self._filling = False
        self._restore_selection()
        self.chat_list.verticalScrollBar().setValue(scrolled)
        self._show_empty_words()

    def select(self, chat_id: str) -> None:
        """Marks a chat as the open one, without a signal; an empty id marks none."""
        self._selected = chat_id
        self._restore_selection()
        index = self._model.index_of(chat_id)
        if index.isValid():
            self.chat_list.scrollTo(index)

    @property
    def selected(self) -> str:
        """The id of the chat marked as open; empty for none."""
        return self._selected

    def _restore_selection(self) -> None:
        self._filling = True
        self.chat_list.setCurrentIndex(self._model.index_of(self._selected))
        if not self.chat_list.currentIndex().isValid():
            self.chat_list.clearSelection()
        self._filling = False

    def _show_empty_words(self) -> None:
        empty = not self._model.rows
        searched = self.search_box.text().strip()
        self.empty_words.setText(
            f"Nothing found for “{searched}”"
            if searched
            else "No chats yet.\nWrite a message to start one."
        )
        self.empty_words.setVisible(empty)
        self.chat_list.setVisible(not empty)

    @Slot(QModelIndex)
    def _on_current_changed(self, current: QModelIndex) -> None:
        row = self._model.row_at(current)
        if self._filling or row is None or row.key == self._selected:
            return
        self._selected = row.key
        self.chat_selected.emit(row.key)

    @Slot()
    def _on_search_edited(self) -> None:
        self._search_pause.start()

    @Slot()
    def _on_search_pause_over(self) -> None:
        text = self.search_box.text().strip()
        if text != self._searched:
            self._searched = text
            self.search_changed.emit(text)

    @Slot()
    def _enter_list(self) -> None:
        if not self.chat_list.isVisible():
            return
        self.chat_list.setFocus()
        if not self.chat_list.currentIndex().isValid():
            first = next((row.key for row in self._model.rows if not row.header), "")
            self.chat_list.setCurrentIndex(self._model.index_of(first))

    @Slot()
    def _dress(self) -> None:
        self._search_icon.setIcon(icon("search", "muted"))


def section_of(updated_at: datetime, now: datetime) -> str:
    """The heading a chat stands under. Both times are aware; days are those of `now`'s zone."""
    today = now.date()
    day = updated_at.astimezone(now.tzinfo).date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return "Previous 7 days" if day >= today - timedelta(days=7) else "Older"


def _row(chat: ChatSummary) -> ListRow:
    title = " ".join(chat.title.split()) or UNTITLED
    return ListRow(key=chat.id, title=title, tooltip=title, editable=True)
