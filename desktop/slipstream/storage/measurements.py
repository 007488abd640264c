"""What was measured on this machine, kept in a JSON file; losing it costs time, not work."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from slipstream.errors import UserError
from slipstream.storage.whole_file import write_whole

_log = logging.getLogger(__name__)

MOST_ENTRIES = 64
_VERSION = 1


class MeasurementFile:
    """A `MeasurementStore`: entries by key, those saved longest ago are dropped first.

    Never raises: what cannot be read is measured again, what cannot be written is only logged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, key: str) -> Mapping[str, object] | None:
        """The entry, or None where there is none."""
        return self._entries().get(key)

    def save(self, key: str, values: Mapping[str, object]) -> None:
        """Keep the entry as the newest one; the file is replaced in one step."""
        entries = self._entries()
        entries.pop(key, None)
        entries[key] = dict(values)
        kept = dict(list(entries.items())[-MOST_ENTRIES:])
        text = json.dumps({"version": _VERSION, "entries": kept}, ensure_ascii=False)
        try:
            write_whole(self._path, text.encode(), lasting=False)
        except (OSError, UserError) as error:
            _log.warning("measurements are not kept: %s", error)

    def _entries(self) -> dict[str, dict[str, object]]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("the measurements cannot be read and are made anew: %s", error)
            return {}
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            return {}
        entries = content.get("entries")
        if not isinstance(entries, dict):
            return {}
        return {key: value for key, value in entries.items() if isinstance(value, dict)}
