"""Lets one set-up at a time work in a clone; the lock ends with the process that held it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

WAITING = "Another set-up is at work in this folder; waiting for it to end…"

if sys.platform == "win32":
    import msvcrt

    def _lock(stream: IO[bytes], wait: bool) -> None:
        while True:
            try:
                msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except OSError:  # LK_LOCK itself gives up after ten tries
                if not wait:
                    raise

else:
    import fcntl

    def _lock(stream: IO[bytes], wait: bool) -> None:
        # Inherited by the commands of the set-up, which keep it when the set-up is killed.
        os.set_inheritable(stream.fileno(), True)
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def setup_lock(path: Path) -> Iterator[None]:
    """Hold the lock; says so when it has to wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        try:
            _lock(stream, wait=False)
        except OSError:
            print(WAITING, flush=True)
            _lock(stream, wait=True)
        yield
