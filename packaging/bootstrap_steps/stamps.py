"""What has been set up already: one small file inside .venv, written after each finished step.

It lives inside the environment so that it can never outlast it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from .layout import Layout


def digest(*parts: str | bytes) -> str:
    """One key for several inputs; the border between two inputs counts."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def python_tag() -> str:
    """The running Python as far as an installed package cares: implementation, x.y, platform."""
    return f"{sys.implementation.cache_tag}-{sys.platform}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a killed process, never leaves half of it."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)


class Stamps:
    """Keys of the finished steps by name, each a digest of all that the step depends on."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.venv / "slipstream-setup.json"

    def read(self, name: str) -> str | None:
        return self._all().get(name)

    def write(self, name: str, key: str) -> None:
        stamps = {**self._all(), name: key}
        write_atomically(self._path, json.dumps(stamps, indent=1, sort_keys=True).encode())

    def _all(self) -> dict[str, str]:
        try:
            stamps = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return stamps if isinstance(stamps, dict) else {}
