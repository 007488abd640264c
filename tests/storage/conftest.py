from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def make_read_only() -> Iterator[Callable[[Path], None]]:
    """Takes the write permission from a folder; skips the test when that stops nobody (root)."""
    changed: list[Path] = []

    def take(folder: Path) -> None:
        folder.chmod(0o500)
        changed.append(folder)
        if os.name != "posix" or os.access(folder, os.W_OK):
            pytest.skip("this user can write into a read-only folder")

    yield take
    for folder in changed:
        folder.chmod(0o700)


@pytest.fixture
def read_only(tmp_path: Path, make_read_only: Callable[[Path], None]) -> Path:
    """An empty folder that cannot be written."""
    folder = tmp_path / "read only"
    folder.mkdir()
    make_read_only(folder)
    return folder
