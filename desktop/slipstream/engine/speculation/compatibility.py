"""Whether a file can draft for a target, told from both files before anything is loaded.

Every rule is one that llama.cpp enforces with an error or an abort, or silently breaks by; the
sources stand beside them. Knows nothing of running models.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from slipstream.engine.file_role import FileRole, file_role, held_mtp_layers
from slipstream.engine.gguf import Header, file_name, printable
from slipstream.engine.model_parts import ModelParts, load_obstacle, read_parts
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.eagle3_compatibility import (
    eagle3_facts,
    eagle3_obstacle,
    target_layers,
)
from slipstream.engine.speculation.hyperparameters import (
    architecture_name,
    hidden_size,
    state_size,
    trunk_layers,
)
from slipstream.engine.speculation.mtp_compatibility import mtp_obstacle
from slipstream.engine.speculation.vocabulary import (
    TokenDifference,
    VocabularyTraits,
    first_difference,
    marker_obstacle,
    size_obstacle,
    token_texts_obstacle,
    type_obstacle,
    vocabulary_traits,
)

CACHED_VERDICTS = 512

_DRAFTERS = {
    FileRole.CHAT: DrafterKind.DRAFT_MODEL,
    FileRole.EAGLE3: DrafterKind.EAGLE3,
    FileRole.MTP: DrafterKind.MTP,
}


@dataclass(frozen=True, slots=True)
class DraftVerdict:
    """Whether a file can draft for a target.

    `kind` is how it would draft, None for a file that cannot. `reason` is a sentence in either
    case; `warnings` are sentences that speak against a pair that works. `details` are JSON values:
    per file its role, size and traits, the first differing token, what a head asks of its target.
    """

    kind: DrafterKind | None
    compatible: bool
    reason: str
    warnings: tuple[str, ...]
    details: Mapping[str, object]


def judge_draft(target: Path, draft: Path) -> DraftVerdict:
    """Judge the pair from headers and, where these agree, token lists; loads nothing.

    Takes milliseconds, up to a second for the first look at very large vocabularies; remembered
    while no file changes. Only the running target can tell how much it can take back: that is left
    to the drafters. Raises ModelFileError for a file that cannot be read.
    """
    return _verdicts.judge(Path(target).absolute(), Path(draft).absolute())


def draft_kind(header: Header) -> DrafterKind | None:
    """How the file would draft; None for one that cannot, such as an adapter."""
    return _DRAFTERS.get(file_role(header))


def _judge(target: ModelParts, draft: ModelParts) -> DraftVerdict:
    kind = draft_kind(draft.whole)
    ours, theirs = vocabulary_traits(target.whole), vocabulary_traits(draft.whole)
    difference: TokenDifference | None = None
    warnings: tuple[str, ...] = ()
    reason = _kind_obstacle(target, draft) or _head_obstacle(kind, draft, target)
    reason = reason or _traits_obstacle(kind, ours, theirs)
    if reason is None:
        difference = first_difference(target.first, draft.first)
        if difference is not None:
            reason = (
                f"Token {difference.id} is “{difference.target}” in the target "
                f"and “{difference.draft}” in the draft."
            )
    compatible = reason is None
    if reason is None:
        reason = _praise(kind, target, draft, ours, theirs)
        warnings = _warnings(kind, target, draft, ours, theirs)
    details: dict[str, object] = {
        "target": _facts(target, ours),
        "draft": _facts(draft, theirs),
        "first_difference": asdict(difference) if difference else None,
    }
    if kind is DrafterKind.EAGLE3:
        details["eagle3"] = eagle3_facts(draft.whole)
    return DraftVerdict(kind, compatible, reason, warnings, MappingProxyType(details))


def _kind_obstacle(target: ModelParts, draft: ModelParts) -> str | None:
    """Why one of the two files cannot play its part at all."""
    role = file_role(target.whole)
    if role is not FileRole.CHAT:
        return f"“{file_name(target.first)}” is {role.words}, not a target."
    role = file_role(draft.whole)
    if draft_kind(draft.whole) is None:
        return f"“{file_name(draft.first)}” is {role.words}, not a draft."
    for model in (target, draft):
        fault = load_obstacle(model) or token_texts_obstacle(model.whole)
        if fault is not None:
            return f"“{file_name(model.first)}” {fault}."
    return None


def _head_obstacle(kind: DrafterKind | None, head: ModelParts, target: ModelParts) -> str | None:
    if kind is DrafterKind.EAGLE3:
        return eagle3_obstacle(head, target.whole)
    return mtp_obstacle(head.whole, target.whole) if kind is DrafterKind.MTP else None


def _traits_obstacle(
    kind: DrafterKind | None, target: VocabularyTraits, draft: VocabularyTraits
) -> str | None:
    reason = type_obstacle(target, draft)
    # heads are fed the target's tokens and tokenise nothing: their markers do no harm
    if reason is None and kind is DrafterKind.DRAFT_MODEL:
        reason = marker_obstacle(target, draft)
    return reason or size_obstacle(target, draft)


def _praise(
    kind: DrafterKind | None,
    target: ModelParts,
    draft: ModelParts,
    ours: VocabularyTraits,
    theirs: VocabularyTraits,
) -> str:
    if _is_same(target, draft):
        return "The draft is the target itself: of use as a self-test."
    if kind is DrafterKind.EAGLE3:
        first, middle, last = target_layers(draft.whole) or (0, 0, 0)
        return f"The head fits the target's width and reads its layers {first}, {middle}, {last}."
    shared = f"{min(ours.size, theirs.size):,} tokens"
    if kind is DrafterKind.MTP:
        return f"The heads fit the target's width and share its {shared}."
    return f"The two share a vocabulary of {shared}."


def _warnings(
    kind: DrafterKind | None,
    target: ModelParts,
    draft: ModelParts,
    ours: VocabularyTraits,
    theirs: VocabularyTraits,
) -> tuple[str, ...]:
    found: list[str] = []
    if draft.whole.file_size >= target.whole.file_size:
        found.append(
            f"The draft is not smaller than the target ({draft.whole.file_size:,} and "
            f"{target.whole.file_size:,} bytes), so that drafting costs more than it saves."
        )
    if ours.size != theirs.size:
        more, fewer = ("target", "draft") if ours.size > theirs.size else ("draft", "target")
        found.append(
            f"The {more} has {abs(ours.size - theirs.size)} tokens more than the {fewer}; "
            "these are never drafted."
        )
    if kind is not DrafterKind.DRAFT_MODEL:
        marker = marker_obstacle(ours, theirs)
        found.extend([marker] if marker else [])
    return tuple(found)


def _facts(model: ModelParts, traits: VocabularyTraits) -> dict[str, object]:
    header = model.whole
    return {
        "file": file_name(model.first),
        "role": file_role(header).value,
        "architecture": architecture_name(header),
        "size_bytes": header.file_size,
        "layers": trunk_layers(header),
        "hidden_size": hidden_size(header),
        "state_size": state_size(header),
        "mtp_layers": held_mtp_layers(header),
        "tokenizer": printable(traits.model, limit=60),
        "vocabulary_type": traits.type,
        "vocabulary_size": traits.size,
        "add_bos": traits.add_bos,
        "bos_id": traits.bos,
        "add_eos": traits.add_eos,
        "eos_id": traits.eos,
    }


def _is_same(target: ModelParts, draft: ModelParts) -> bool:
    try:
        return os.path.samefile(target.first, draft.first)
    except (OSError, ValueError):
        return False


_Identity = tuple[tuple[Path, int, int], ...]


class _Verdicts:
    """Verdicts by the identity of all files of both models."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, Path], tuple[_Identity, DraftVerdict]] = OrderedDict()

    def judge(self, target: Path, draft: Path) -> DraftVerdict:
        key = (target, draft)
        with self._lock:
            known = self._known.get(key)
        if known is not None and _identity(tuple(path for path, _, _ in known[0])) == known[0]:
            with self._lock:
                if key in self._known:
                    self._known.move_to_end(key)
            return known[1]
        before = _identity((target, draft))
        ours, theirs = read_parts(target), read_parts(draft)
        paths = (*ours.paths, *theirs.paths)
        identity = _identity(paths)
        verdict = _judge(ours, theirs)
        # a file that is still being written is judged but not remembered
        settled = identity == _identity(paths)
        if before and settled and set(before) <= set(identity):
            with self._lock:
                self._known[key] = (identity, verdict)
                while len(self._known) > CACHED_VERDICTS:
                    self._known.popitem(last=False)
        return verdict


def _identity(paths: tuple[Path, ...]) -> _Identity:
    """Empty where a file cannot be asked; the reader then says why."""
    try:
        found = [(path, path.stat()) for path in paths]
    except (OSError, ValueError):
        return ()
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in found)


_verdicts = _Verdicts()
