"""Checks files by SHA-256 and takes single files out of archives without trusting their names."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from .console import SetupError

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def verify_sha256(path: Path, expected: str) -> None:
    """Raise SetupError unless the file's SHA-256 is the expected one."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        raise SetupError(
            f"{path.name} is not the file expected: its SHA-256 is {found}, not {expected}.\n"
            "Nothing of it was kept.",
            "Run the command again; if it fails again, ask where the file comes from.",
        )


def is_safe_name(name: str) -> bool:
    """Whether a name can be a file in one folder, on every system, and nothing else."""
    return _SAFE_NAME.fullmatch(name) is not None


def extract_zip_member(archive: Path, member: str, target: Path, sha256: str) -> None:
    """Put one member of a zip at `target`, checked, and whole or not at all."""
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            zipfile.ZipFile(archive) as opened,
            opened.open(member) as source,
            part.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
            sink.flush()
            os.fsync(sink.fileno())
        verify_sha256(part, sha256)
        part.replace(target)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SetupError(f"{archive.name} does not hold {member}: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def extract_tar_files(
    archive: Path, folder_of: Callable[[str], str | None], target: Path
) -> list[Path]:
    """Put the chosen files of a tar archive flat into folders below `target`.

    `folder_of` gets a member's path and returns the name of the folder its file goes to, or None
    to leave it out. Only plain files with plain names are taken; anything else that was chosen is
    refused, because no honest archive has it there.
    """
    written = []
    with tarfile.open(archive) as opened:
        for member in opened:
            folder = folder_of(member.name)
            if folder is None or member.isdir():
                continue
            name = member.name.rpartition("/")[2]
            source = opened.extractfile(member) if member.isreg() else None
            if source is None or not is_safe_name(name) or not is_safe_name(folder):
                raise SetupError(f"{archive.name} holds an unsafe entry: {member.name!r}.")
            path = target / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            written.append(path)
    return written
