"""What to say when SQLite fails: a sentence for each kind of failure, with the file named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from slipstream.errors import UserError

_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class DamagedDatabaseError(UserError):
    """The file is not, or no longer, a sound database; nothing may be written to it."""


def is_unwritable(error: sqlite3.Error) -> bool:
    """Whether the file or its folder lacks the permission to write."""
    return _primary_code(error) in _UNWRITABLE


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock."""
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def damaged_error(path: Path | None, reason: str) -> DamagedDatabaseError:
    """The error for a file that is not what it should be; `reason` is a whole sentence."""
    return DamagedDatabaseError(
        "The chats cannot be read.",
        f"{_named(path)} is damaged: {reason} It was left as it is.",
        "Move the file away to start afresh, or put a backup in its place.",
    )


def unwritable_error(path: Path | None, reason: str) -> UserError:
    """The error for a file that cannot be made or written; `reason` is a whole sentence."""
    return UserError(
        "Chats cannot be saved.",
        f"{_named(path)} cannot be written: {reason}",
        "Check the permissions of the file and its folder, "
        "or choose another folder with --data-dir.",
    )


def database_error(error: sqlite3.Error, path: Path | None) -> UserError:
    """The error to show for what SQLite reported."""
    code = _primary_code(error)
    reason = f"{error}."
    if code in _DAMAGED:
        return damaged_error(path, reason)
    if is_busy(error):
        return UserError(
            "The chats are in use by another program.",
            f"{_named(path)} is locked.",
            "Close other windows of Slipstream and backup programs, then try again.",
        )
    if code == sqlite3.SQLITE_FULL:
        return UserError(
            "The disk is full.",
            f"{_named(path)} could not grow, so the chat was not saved.",
            "Free some space, then go on; what was not saved is written with the next message.",
        )
    if code in _UNWRITABLE:
        return unwritable_error(path, reason)
    if code == sqlite3.SQLITE_IOERR:
        return UserError(
            "The disk reported an error.",
            f"{_named(path)} could not be read or written: {reason}",
            "Check that the disk is connected and sound.",
        )
    return UserError("The chats could not be read or saved.", f"{_named(path)}: {reason}")


def _primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _named(path: Path | None) -> str:
    return "The storage in memory" if path is None else str(path)
