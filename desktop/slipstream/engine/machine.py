"""Names the computer, so that what was measured on one is not believed on another."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_TELLING = ("model name", "cpu family", "model", "stepping", "CPU part")


@functools.cache
def processor_name() -> str:
    """The processor as the system calls it; on Linux with family and model, which names lack."""
    try:
        first = _CPU_INFO.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    entries = dict(_entry(line) for line in first.splitlines())
    words = [entries[key] for key in _TELLING if entries.get(key)]
    return " ".join(words) or platform.machine()


def usable_cores() -> int:
    """Logical cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_name() -> str:
    """Processor and cores."""
    return f"{processor_name()}, {usable_cores()} cores"


def file_label(path: Path) -> str:
    """A file's name and size: a moved file keeps it, another one of the name has another."""
    try:
        return f"{path.name} ({path.stat().st_size})"
    except OSError:
        return path.name


def _entry(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()
