"""Reads the hashed lock files; knows nothing about pip."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>.*))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})(?:\s|$)")


@dataclass(frozen=True)
class LockedRequirement:
    """One pinned package of a lock file; hashes are SHA-256 of every file it may come as."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def parse_lock(text: str) -> list[LockedRequirement]:
    """The requirements of a lock; ValueError for a line that is neither a pin nor a comment."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pin, *_ = line.split("--hash", 1)
        match = _REQUIREMENT.fullmatch(pin.strip())
        if match is None:
            raise ValueError(f"not a pinned requirement: {line.strip()!r}")
        found.append(
            LockedRequirement(
                match["name"], match["version"], match["marker"] or "", tuple(_HASH.findall(line))
            )
        )
    return found


def only_requirement(lock: Path) -> LockedRequirement:
    """The one requirement of a lock file that holds exactly one."""
    (requirement,) = parse_lock(lock.read_text("utf-8"))
    return requirement
