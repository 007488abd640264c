"""The log on disk: a few rotating files that also take what nobody caught. Never raises.

What goes into it is up to whoever logs; chats and prompts must not.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from slipstream.errors import UserError
from slipstream.storage.data_dir import make_folder

FILE_NAME = "slipstream.log"
FILE_BYTES = 1_000_000
OLDER_FILES = 2  # three files in all

_FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"
_APP = "slipstream"  # the logger above all of ours

_log = logging.getLogger(__name__)


def start_logging(directory: Path, verbose: bool = False) -> Path | None:
    """Log to a file in the directory, with debug messages of the app when `verbose`.

    Returns the file, or None when it cannot be written and messages go to stderr instead. A second
    call replaces what the first one set up.
    """
    global _running
    stop_logging()
    file: Path | None = directory / FILE_NAME
    handler: logging.Handler
    problem: Exception | None = None
    try:
        make_folder(directory)
        handler = _LogFile(
            directory / FILE_NAME,
            maxBytes=FILE_BYTES,
            backupCount=OLDER_FILES,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except (OSError, UserError, ValueError) as error:
        file, problem = None, error
        handler = logging.NullHandler() if sys.stderr is None else logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    root, app = logging.getLogger(), logging.getLogger(_APP)
    _running = _Running(handler, app.level, sys.excepthook, threading.excepthook)
    root.addHandler(handler)
    app.setLevel(logging.DEBUG if verbose else logging.INFO)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    if problem is not None:
        _log.warning("no log file: %s", problem)
    return file


def stop_logging() -> None:
    """Close the file and put everything back as it was; calling it twice is harmless."""
    global _running
    if _running is None:
        return
    running, _running = _running, None
    logging.getLogger().removeHandler(running.handler)
    logging.getLogger(_APP).setLevel(running.app_level)
    if sys.excepthook is _log_uncaught:
        sys.excepthook = running.excepthook
    if threading.excepthook is _log_uncaught_in_thread:
        threading.excepthook = running.thread_excepthook
    with suppress(OSError):  # a full disk: what was not written is lost
        running.handler.close()


class _LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk is no reason to fill the terminal with tracebacks."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)

    def doRollover(self) -> None:
        try:
            super().doRollover()
        except OSError:  # another instance holds an older file open (Windows): go on in this one
            if self.stream is None:
                self.stream = self._open()


@dataclass(frozen=True, slots=True)
class _Running:
    """What was set up, and what was there before."""

    handler: logging.Handler
    app_level: int
    excepthook: Any
    thread_excepthook: Any


_running: _Running | None = None


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, Exception):
        _log.critical("uncaught exception", exc_info=(kind, error, traceback))
    previous = sys.__excepthook__ if _running is None else _running.excepthook
    previous(kind, error, traceback)


def _log_uncaught_in_thread(details: threading.ExceptHookArgs) -> None:
    if issubclass(details.exc_type, Exception) and details.exc_value is not None:
        name = "a thread" if details.thread is None else details.thread.name
        _log.critical(
            "uncaught exception in %s",
            name,
            exc_info=(details.exc_type, details.exc_value, details.exc_traceback),
        )
    previous = threading.__excepthook__ if _running is None else _running.thread_excepthook
    previous(details)
