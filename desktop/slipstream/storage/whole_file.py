"""Writes a file as a whole: at every moment the old one or the new one is there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from slipstream.storage.data_dir import make_folder


def write_whole(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Put a new file in the place of the old one, readable for this user only.

    It lasts through a power cut unless `lasting` is False, which saves waiting for the disk. Makes
    the folder. A link stays a link: the file it leads to is replaced. Raises `OSError`, or
    `UserError` where the folder cannot be made; the old file is then still there.
    """
    target = Path(os.path.realpath(path))
    make_folder(target.parent)
    descriptor, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".new", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:  # mkstemp made it for this user only
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    if lasting:
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last through a power cut, where folders can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
