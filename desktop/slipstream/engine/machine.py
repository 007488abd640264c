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


def machine_name() -> str:
    """Processor and cores."""
    return f"{processor_name()}, {os.cpu_count()} cores"


def _entry(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()
