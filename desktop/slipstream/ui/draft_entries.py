"""What the draft picker shows of files, from what the engine's thread found out about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from slipstream.bridge.judged_file import JudgedFile
from slipstream.engine.model_parts import split_stem
from slipstream.library.model_file import format_size
from slipstream.library.model_kind import ModelKind
from slipstream.ui.draft_picker import DraftEntry
from slipstream.ui.wrapping import SEPARATOR

_KINDS = {
    ModelKind.CHAT: "draft model",
    ModelKind.EAGLE3: "EAGLE-3 head",
    ModelKind.MTP: "MTP heads",
}


def draft_entries(judged: Sequence[JudgedFile]) -> tuple[DraftEntry, ...]:
    """An entry for each file, in order; a split model is one."""
    entries: dict[str, DraftEntry] = {}
    for file in judged:
        entry = draft_entry(file)
        entries.setdefault(entry.key, entry)
    return tuple(entries.values())


def draft_entry(judged: JudgedFile) -> DraftEntry:
    """The file as the picker shows it; one that cannot draft says why.

    It goes by the file's name, as in the chip and in notices: heads rarely name themselves.
    """
    judgement, model = judged.judgement, judged.model
    path, available = judgement.path, judgement.compatible
    reason = "" if available else judgement.words
    if model is None:
        return DraftEntry(str(path), path.stem, available=available, reason=reason)
    facts = (model.quantisation, format_size(model.size_bytes), _KINDS.get(model.kind, ""))
    return DraftEntry(
        key=str(model.path if model.is_split else path),
        name=split_stem(model.path.stem),
        caption=SEPARATOR.join(fact for fact in facts if fact),
        available=available,
        reason=reason,
    )


def is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, also by a link."""
    try:
        return first == second or os.path.samefile(first, second)
    except (OSError, ValueError):
        return False
