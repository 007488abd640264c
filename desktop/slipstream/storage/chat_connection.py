"""Opens the chat database: checks the file before anything may write to it, then
brings it up to date."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from slipstream.errors import UserError
from slipstream.storage.chat_schema import SCHEMA_VERSION, is_foreign, migrate, schema_version
from slipstream.storage.data_dir import make_folder
from slipstream.storage.database_error import (
    damaged_error,
    database_error,
    is_busy,
    is_unwritable,
    unwritable_error,
)

_log = logging.getLogger(__name__)

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100


def open_in_memory() -> sqlite3.Connection:
    """An empty database that lasts as long as its connection."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _configure(connection, 0.0)
    migrate(connection)
    return connection


def open_chats_file(path: Path, busy_seconds: float) -> tuple[sqlite3.Connection, UserError | None]:
    """A connection in autocommit mode, and a notice when the file can be read but not written.

    Raises `UserError` when the file is damaged, locked, another program's, from a newer version of
    the app, or cannot be made; a file that was there is then unchanged to the byte.
    """
    make_folder(path.parent)
    try:
        unclean = _check_file(path)
        if _size(path):
            try:
                # a connection that can write would move the log into a damaged file on closing;
                # a journal, though, only such a one can roll back
                mode = "mode=rw" if _size(_beside(path, "-journal")) else "mode=ro"
                _inspected(path, mode, busy_seconds, unclean).close()
            except sqlite3.Error as error:
                if not is_unwritable(error) or _size(_beside(path, "-wal")):
                    raise
                # a WAL database in a read-only folder: readable only as a file nobody changes
                connection = _inspected(path, "mode=ro&immutable=1", busy_seconds, unclean)
                return connection, unwritable_error(path, "it or its folder is read-only.")
        else:
            path.touch(mode=0o600)
        return _open_writable(path, busy_seconds)
    except OSError as error:
        raise unwritable_error(path, f"{error.strerror or error}.") from error
    except sqlite3.Error as error:
        raise database_error(error, path) from error
    except UnicodeDecodeError as error:  # SQLite quotes the damage in its message
        raise damaged_error(path, "its tables are unreadable.") from error


def _check_file(path: Path) -> bool:
    """Whether the last user did not close it cleanly. Raises `UserError` for a damaged file.

    SQLite itself takes a file cut within its header, or within its last page, for a sound one.
    """
    unclean = _has_log(path)
    if _size(path) == 0:
        if _size(_beside(path, "-wal")):
            raise damaged_error(path, "it is empty while its log file is not.")
        return unclean
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise damaged_error(path, "it does not start like a database.")
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * page_size
    if page_size < 512 or page_size & (page_size - 1):
        raise damaged_error(path, f"it claims a page size of {page_size} bytes.")
    size = _size(path)
    # while there is a log, left by a crash or by another app that is just writing, it completes
    # the file, whose size then says nothing
    if (size < expected or size % page_size) and not (unclean or _has_log(path)):
        raise damaged_error(path, f"it has {size:,} bytes instead of {expected:,}.")
    return unclean


def _inspected(path: Path, mode: str, busy_seconds: float, unclean: bool) -> sqlite3.Connection:
    """A connection to a file found to be ours. Raises `UserError`, `sqlite3.Error`."""
    connection = _connect(path, mode, busy_seconds)
    try:
        if is_foreign(connection):
            raise UserError(
                "The chats cannot be read.",
                f"{path} is a database of another program.",
                "Move it away, or choose another folder with --data-dir.",
            )
        version = schema_version(connection)
        if version > SCHEMA_VERSION:
            raise UserError(
                "The chats were written by a newer version of Slipstream.",
                f"{path} has version {version}; this one reads up to {SCHEMA_VERSION}.",
                "Update Slipstream, or choose another folder with --data-dir.",
            )
        if version < SCHEMA_VERSION and "immutable" in mode:
            raise unwritable_error(path, "it or its folder is read-only.")
        if unclean:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise damaged_error(path, f"{' '.join(str(result).split())}.")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_writable(path: Path, busy_seconds: float) -> tuple[sqlite3.Connection, UserError | None]:
    connection = _connect(path, "mode=rw", busy_seconds)
    try:
        try:
            _write_ahead(connection)
            migrate(connection)
        except sqlite3.Error as error:
            usable = schema_version(connection) == SCHEMA_VERSION
            if usable and is_unwritable(error):
                return connection, database_error(error, path)
            if not (usable and is_busy(error)):
                raise
        return connection, None
    except BaseException:
        connection.close()
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Write-ahead logging where the file system can do it; the older journal is as safe."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        _log.info("the chat database uses the journal mode %s", mode)


def _connect(path: Path, options: str, busy_seconds: float) -> sqlite3.Connection:
    name = path.absolute().as_posix()
    # "file://" + "//server/share": SQLite takes a network path only after an empty host
    address = "file://" + ("" if name.startswith("/") else "/") + quote(os.fsencode(name), "/:")
    connection = sqlite3.connect(f"{address}?{options}", uri=True, isolation_level=None)
    try:
        _configure(connection, busy_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection, busy_seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {round(busy_seconds * 1000)}")
    connection.execute("PRAGMA foreign_keys = ON")
    # FULL: with NORMAL a power cut may take back the last commits, and a saved message must stay;
    # it costs one fsync per message
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's own cache too
    # a damaged byte becomes U+FFFD instead of making its whole chat unreadable
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")


def _has_log(path: Path) -> bool:
    return any(_size(_beside(path, suffix)) for suffix in ("-wal", "-journal"))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
