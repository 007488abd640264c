"""Chats in one SQLite file, used from one thread through one connection; no windows here."""

from __future__ import annotations

import logging
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from slipstream.chat.records import Chat, ChatSummary, Message, Role
from slipstream.chat.titles import NEW_CHAT_TITLE
from slipstream.errors import UserError
from slipstream.storage.chat_connection import open_chats_file, open_in_memory
from slipstream.storage.columns import (
    answer_from_column,
    answer_to_column,
    moment_from_column,
    moment_to_column,
    text_from_column,
    text_to_column,
)
from slipstream.storage.database_error import (
    DamagedDatabaseError,
    damaged_error,
    database_error,
)

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

BUSY_SECONDS = 2.0
"""How long to wait for another process that is writing."""

_LISTED = """
    SELECT id, title, updated_at FROM chats
    WHERE EXISTS (SELECT 1 FROM messages WHERE chat_id = chats.id)
"""
_MATCHING = """
    AND (
        holds(CAST(title AS BLOB), :query)
        OR EXISTS (
            SELECT 1 FROM messages
            WHERE chat_id = chats.id AND holds(CAST(text AS BLOB), :query)
        )
    )
"""
_LATEST_FIRST = " ORDER BY updated_at DESC, key DESC"


class ChatDatabase:
    """A `ChatStore` over SQLite; every method that fails raises `UserError`.

    A new chat reaches the disk with its first message, so empty chats are neither listed nor kept.
    A message that could not be written is kept in memory, shown by `load`, and written before the
    next one of its chat, or on `close`.

    `notice` says why nothing can be saved when the file could be opened for reading only.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], datetime] | None = None,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        """Open or make the file; without a path, keep chats in memory until `close`.

        Raises `UserError` when the file is damaged, locked, another program's, from a newer
        version, or cannot be made; a file that was there is then unchanged.
        """
        self.notice: UserError | None = None
        if path is None:
            self._connection = open_in_memory()
        else:
            self._connection, self.notice = open_chats_file(path, busy_seconds)
        self._connection.create_function("holds", 2, _holds, deterministic=True)
        self._path = path
        self._clock = clock or _now
        self._damaged = False
        self._new: dict[str, Chat] = {}  # without a row yet
        self._unwritten: dict[str, dict[str, Message]] = {}  # by chat, then by message id

    def summaries(self, query: str = "") -> tuple[ChatSummary, ...]:
        """Chats whose title or text contains `query` (all when empty), the latest first.

        Upper and lower case are the same in every script, and so are composed and decomposed
        letters. Chats without messages are left out.
        """
        wanted = _folded(query.strip())
        statement = _LISTED + (_MATCHING if wanted else "") + _LATEST_FIRST
        with self._reporting():
            rows = self._connection.execute(statement, {"query": text_to_column(wanted)}).fetchall()
            stored = self._read(_summary, rows)
        waiting = [
            ChatSummary(id=chat.id, title=chat.title, updated_at=chat.updated_at)
            for chat in reversed(self._new.values())
            if self._unwritten.get(chat.id) and self._new_chat_holds(chat, wanted)
        ]
        return tuple(sorted(waiting + stored, key=lambda item: item.updated_at, reverse=True))

    def load(self, chat_id: str) -> Chat | None:
        """The chat with its messages in order, or None when there is no such chat."""
        with self._reporting():
            row = self._connection.execute(
                "SELECT id, title, system_prompt, created_at, updated_at FROM chats WHERE id = ?",
                (chat_id,),
            ).fetchone()
            rows = self._connection.execute(
                "SELECT id, role, text, reasoning, answer, created_at FROM messages"
                " WHERE chat_id = ? ORDER BY position",
                (chat_id,),
            ).fetchall()
            chat = self._new.get(chat_id) if row is None else self._read(_chat, [row])[0]
            stored = {message.id: message for message in self._read(_message, rows)}
        if chat is None:
            return None
        messages = stored | self._unwritten.get(chat_id, {})
        return replace(chat, messages=tuple(messages.values()))

    def create(self, system_prompt: str = "") -> Chat:
        """A new, empty chat; it reaches the disk with its first message."""
        now = self._clock()
        chat = Chat(uuid4().hex, NEW_CHAT_TITLE, now, now, system_prompt)
        self._new[chat.id] = chat
        return chat

    def save_message(self, chat_id: str, message: Message) -> None:
        """Append the message, or replace the one with the same id in place.

        Raises `UserError` when it could not be written now; it is then written with the next one.
        Raises `TypeError` for settings of a kind that cannot be stored; the message is not kept.
        """
        _message_values(message)
        self._unwritten.setdefault(chat_id, {})[message.id] = message
        self._write_waiting(chat_id)

    def remove_message(self, chat_id: str, message_id: str) -> None:
        """Forget a message that nothing follows; one that is not there is no error."""
        self._unwritten.get(chat_id, {}).pop(message_id, None)
        if chat_id in self._new:
            return
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM messages WHERE id = ? AND chat_id = ?",
                (message_id, chat_id),
            )

    def set_title(self, chat_id: str, title: str) -> None:
        """Rename the chat; its place in the list stays."""
        if chat_id in self._new:
            self._new[chat_id] = replace(self._new[chat_id], title=title)
            return
        self._update(chat_id, "UPDATE chats SET title = ? WHERE id = ?", title)

    def set_system_prompt(self, chat_id: str, system_prompt: str) -> None:
        """Replace the chat's system prompt."""
        if chat_id in self._new:
            self._new[chat_id] = replace(self._new[chat_id], system_prompt=system_prompt)
            return
        self._update(chat_id, "UPDATE chats SET system_prompt = ? WHERE id = ?", system_prompt)

    def close(self) -> None:
        """Write what is still waiting and release the file; calling it twice is harmless."""
        for chat_id in tuple(self._unwritten):
            try:
                self._write_waiting(chat_id)
            except UserError as error:
                _log.error("messages are lost: %s", error)
        self._unwritten.clear()
        self._connection.close()

    def _write_waiting(self, chat_id: str) -> None:
        messages = self._unwritten[chat_id]
        refused: sqlite3.Error | None = None
        try:
            with self._transaction() as connection:
                if chat_id in self._new:
                    _insert_chat(connection, self._new[chat_id])
                now = moment_to_column(self._clock())
                found = connection.execute(
                    "UPDATE chats SET updated_at = ? WHERE id = ?", (now, chat_id)
                )
                if not found.rowcount:
                    raise _NoSuchChatError
                for message in messages.values():
                    try:
                        _write_message(connection, chat_id, message)
                    except (sqlite3.IntegrityError, sqlite3.DataError) as error:
                        refused = error  # it would be refused for ever; the others are written
        except _NoSuchChatError:
            del self._unwritten[chat_id]  # it would fail for ever
            raise
        del self._unwritten[chat_id]
        self._new.pop(chat_id, None)
        if refused is not None:
            raise database_error(refused, self._path) from refused

    def _update(self, chat_id: str, statement: str, value: str) -> None:
        with self._transaction() as connection:
            if not connection.execute(statement, (text_to_column(value), chat_id)).rowcount:
                raise _NoSuchChatError

    def _new_chat_holds(self, chat: Chat, wanted: str) -> bool:
        texts = [chat.title, *(message.text for message in self._unwritten[chat.id].values())]
        return any(wanted in _folded(text) for text in texts)

    def _read(self, record: Callable[[Any], _T], rows: list[Any]) -> list[_T]:
        try:
            return [record(row) for row in rows]
        except (ValueError, TypeError, AttributeError) as error:
            raise damaged_error(self._path, f"a value is unreadable ({error}).") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self._damaged:
            raise damaged_error(self._path, "nothing is written to it any more.")
        connection = self._connection
        with self._reporting():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some failures have rolled back already
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # used after close or from another thread: a fault of ours
        except sqlite3.Error as error:
            shown = database_error(error, self._path)
            self._damaged |= isinstance(shown, DamagedDatabaseError)
            raise shown from error
        except UnicodeDecodeError as error:  # SQLite quotes the damage in its message
            self._damaged = True
            raise damaged_error(self._path, "its tables are unreadable.") from error


class _NoSuchChatError(UserError):
    def __init__(self) -> None:
        super().__init__(
            "This chat does not exist any more.",
            "It may have been deleted in another window.",
            "Start a new chat.",
        )


def _insert_chat(connection: sqlite3.Connection, chat: Chat) -> None:
    connection.execute(
        "INSERT INTO chats (id, title, system_prompt, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            chat.id,
            text_to_column(chat.title),
            text_to_column(chat.system_prompt),
            moment_to_column(chat.created_at),
            moment_to_column(chat.updated_at),
        ),
    )


def _write_message(connection: sqlite3.Connection, chat_id: str, message: Message) -> None:
    values = _message_values(message) | {"id": message.id, "chat_id": chat_id}
    replaced = connection.execute(
        "UPDATE messages SET role = :role, text = :text, reasoning = :reasoning, answer = :answer,"
        " created_at = :created_at WHERE id = :id AND chat_id = :chat_id",
        values,
    )
    if not replaced.rowcount:
        connection.execute(
            "INSERT INTO messages"
            " (id, chat_id, parent_id, position, role, text, reasoning, answer, created_at)"
            " SELECT :id, :chat_id,"
            " (SELECT id FROM messages WHERE chat_id = :chat_id ORDER BY position DESC LIMIT 1),"
            " (SELECT coalesce(max(position), -1) + 1 FROM messages WHERE chat_id = :chat_id),"
            " :role, :text, :reasoning, :answer, :created_at",
            values,
        )


def _message_values(message: Message) -> dict[str, str | bytes | None]:
    return {
        "role": message.role.value,
        "text": text_to_column(message.text),
        "reasoning": text_to_column(message.reasoning),
        "answer": None if message.answer is None else answer_to_column(message.answer),
        "created_at": moment_to_column(message.created_at),
    }


def _message(row: Any) -> Message:
    id_, role, text, reasoning, answer, created_at = row
    record = None
    if answer is not None:
        try:
            record = answer_from_column(answer)
        except (ValueError, TypeError, KeyError, AttributeError):
            _log.warning("the numbers of message %s are unreadable", id_, exc_info=True)
    return Message(
        id=id_,
        role=Role(role),
        text=text_from_column(text),
        created_at=moment_from_column(created_at),
        reasoning=text_from_column(reasoning),
        answer=record,
    )


def _chat(row: Any) -> Chat:
    id_, title, system_prompt, created_at, updated_at = row
    return Chat(
        id=id_,
        title=text_from_column(title),
        created_at=moment_from_column(created_at),
        updated_at=moment_from_column(updated_at),
        system_prompt=text_from_column(system_prompt),
    )


def _summary(row: Any) -> ChatSummary:
    id_, title, updated_at = row
    return ChatSummary(
        id=id_, title=text_from_column(title), updated_at=moment_from_column(updated_at)
    )


def _holds(text: bytes, wanted: str | bytes) -> bool:
    return text_from_column(wanted) in _folded(text_from_column(text))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _now() -> datetime:
    return datetime.now(UTC)
