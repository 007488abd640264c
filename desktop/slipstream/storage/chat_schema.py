"""The tables of the chat database, made and brought up to date one version at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

APPLICATION_ID = 0x536C6970  # "Slip"; tells our file from any other SQLite database


def _create_tables(connection: sqlite3.Connection) -> None:
    """Version 1: chats with their turns in one line.

    `key` is the stable row number that a full-text index needs; `parent_id` is the turn before,
    so that a message can get several children; `position` is the order of arrival in its chat.
    Texts with lone surrogates are BLOBs, hence no STRICT tables.
    """
    connection.execute(
        """
        CREATE TABLE chats (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            title TEXT NOT NULL,
            system_prompt TEXT NOT NULL,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL
        )
        """
    )
    connection.execute(
        """
        CREATE TABLE messages (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            parent_id TEXT REFERENCES messages (id),
            position INTEGER NOT NULL,
            role TEXT NOT NULL,
            text TEXT NOT NULL,
            reasoning TEXT NOT NULL,
            answer TEXT,
            created_at TEXT NOT NULL,
            UNIQUE (chat_id, position)
        )
        """
    )
    connection.execute("CREATE INDEX chats_by_time ON chats (updated_at)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create_tables,)
"""Migration n brings the tables from version n to n + 1 inside the caller's transaction."""

SCHEMA_VERSION = len(MIGRATIONS)


def schema_version(connection: sqlite3.Connection) -> int:
    """The version of the tables, 0 when there are none yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Whether the database holds something that this app did not make."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(application_id != APPLICATION_ID and (tables or application_id))


def migrate(connection: sqlite3.Connection) -> None:
    """Run the migrations that are missing, all or none of them.

    Raises `sqlite3.Error`, also when there is nothing to do but the file cannot be written.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # read under the write lock: two apps may start at the same moment
        missing = MIGRATIONS[schema_version(connection) :]
        for migration in missing:
            migration(connection)
        # written in any case: beginning a transaction does not find out that a file is read-only
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT" if missing else "ROLLBACK")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
