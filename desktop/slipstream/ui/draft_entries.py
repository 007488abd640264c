"""What the draft picker shows of files, made from the engine's judgement and the library's facts.

Reads headers only, a file at a time, so that a folder of large ones does not hold up the window.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.engine.model_parts import split_stem
from slipstream.engine.requests import DraftJudgement
from slipstream.errors import UserError
from slipstream.library.model_file import describe_model_file, format_size
from slipstream.library.model_kind import ModelKind
from slipstream.ui.draft_picker import DraftEntry
from slipstream.ui.wrapping import SEPARATOR

_KINDS = {
    ModelKind.CHAT: "draft model",
    ModelKind.EAGLE3: "EAGLE-3 head",
    ModelKind.MTP: "MTP heads",
}


class DraftEntries(QObject):
    """Makes entries of judged files. `ready` carries all of one call; a newer call replaces it."""

    ready = Signal(object)  # tuple of DraftEntry

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: list[DraftJudgement] = []
        self._entries: dict[str, DraftEntry] = {}
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._describe_next)

    def describe(self, judgements: Sequence[DraftJudgement]) -> None:
        """Make an entry for each file; a split model is one."""
        self._waiting = list(judgements)
        self._entries = {}
        self._next.start()

    @Slot()
    def _describe_next(self) -> None:
        if self._waiting:
            entry = draft_entry(self._waiting.pop(0))
            self._entries.setdefault(entry.key, entry)
        else:
            self._next.stop()
            self.ready.emit(tuple(self._entries.values()))


def draft_entry(judged: DraftJudgement) -> DraftEntry:
    """The file as the picker shows it; one that cannot draft says why.

    It goes by the file's name, as in the chip and in notices: heads rarely name themselves.
    """
    reason = "" if judged.compatible else judged.words
    try:
        model = describe_model_file(judged.path)
    except UserError:
        return DraftEntry(
            str(judged.path), judged.path.stem, available=judged.compatible, reason=reason
        )
    facts = (model.quantisation, format_size(model.size_bytes), _KINDS.get(model.kind, ""))
    return DraftEntry(
        key=str(model.path if model.is_split else judged.path),
        name=split_stem(model.path.stem),
        caption=SEPARATOR.join(fact for fact in facts if fact),
        available=judged.compatible,
        reason=reason,
    )


def is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, also by a link."""
    try:
        return first == second or os.path.samefile(first, second)
    except (OSError, ValueError):
        return False
