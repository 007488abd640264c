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

from slipstream.engine.gguf import Header, file_name, printable
from slipstream.engine.model_parts import ModelParts, load_obstacle, read_parts
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.file_role import (
    GEMMA_ASSISTANT,
    MTP_GRAPHS,
    ROLES,
    builtin_mtp,
    draft_kind,
    file_role,
    held_mtp_layers,
)
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

__all__ = [
    "DraftVerdict",
    "builtin_mtp",
    "draft_kind",
    "eagle3_obstacle",
    "judge_draft",
    "mtp_obstacle",
]

CACHED_VERDICTS = 512
EAGLE3_LAYERS = 3

LAYER_INPUTS = frozenset(
    {
        "bailingmoe3",
        "deepseek4",
        "gemma4",
        "gpt-oss",
        "hunyuan-dense",
        "hunyuan_vl",
        "lfm2",
        "lfm2moe",
        "llama",
        "mimo2",
        "minimax-01",
        "minimax-m2",
        "muse-glimmer",
        "nanbeige",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen4exp",
    }
)
"""Architectures that give out the states between their layers (`t_layer_inp` in src/models)."""

LAST_STATES = MTP_GRAPHS | {"gemma4", "glm5-next", "gpt-oss", "nemotron_h"}
"""Architectures that give out the state after their last layer (`t_h_nextn` in src/models)."""

_EAGLE3_TENSORS = (
    "fc.weight",
    "output_norm.weight",
    *(
        f"blk.0.{name}.weight"
        for name in (
            "attn_norm",
            "attn_norm_2",
            "attn_q",
            "attn_k",
            "attn_v",
            "attn_output",
            "ffn_norm",
            "ffn_gate",
            "ffn_down",
            "ffn_up",
        )
    ),
)


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
    """Judge the pair from headers and, where these agree, token lists.

    Takes milliseconds, up to a second for the first look at very large vocabularies; remembered
    while no file changes. Raises ModelFileError for a file that cannot be read.
    """
    return _verdicts.judge(Path(target).absolute(), Path(draft).absolute())


def eagle3_obstacle(head: Header, target: Header) -> str | None:
    """Why this EAGLE-3 head cannot draft for this target; None where it can.

    Headers hold the tensors of all parts. Sources: llama.cpp, src/models/eagle3.cpp (load and
    graph), `common_speculative_impl_draft_eagle3` in common/speculative.cpp.
    """
    return (
        _eagle3_fault(head)
        or _layer_obstacle(head, target)
        or _width_obstacle(head, target)
        or _sharing_obstacle(head, target)
    )


def mtp_obstacle(head: Header, target: Header) -> str | None:
    """Why a separate file of MTP heads cannot draft for this target; None where it can.

    Source: llama.cpp, `common_speculative_impl_draft_mtp` in common/speculative.cpp.
    """
    made_for = "gemma4" if head.architecture == GEMMA_ASSISTANT else head.architecture
    named = _architecture(head)
    if head.architecture != GEMMA_ASSISTANT and head.architecture not in MTP_GRAPHS:
        return f"This version cannot run MTP heads of the architecture {named}."
    if made_for != target.architecture:
        return (
            f"The heads are made for the architecture {printable(made_for, limit=60)}, "
            f"and the target has {_architecture(target)}."
        )
    if head.architecture != GEMMA_ASSISTANT and not held_mtp_layers(head):
        return "The file holds no MTP layer."
    if _shape(head, "token_embd.weight") is None:
        return "The heads come without token embeddings."
    ours, theirs = _state_width(target), _state_width(head)
    if ours is None or ours != theirs:
        return (
            f"The heads read hidden states of width {_number(theirs)}, "
            f"and the target's have {_number(ours)}."
        )
    return None


def _eagle3_fault(head: Header) -> str | None:
    """What is wrong with the head whatever the target."""
    if head.architecture != "eagle3":
        return "The file is not an EAGLE-3 head."
    layers = _target_layers(head)
    if layers is None:
        return "The head does not say which layers of its target it reads."
    if len(layers) != EAGLE3_LAYERS:
        return f"The head reads {len(layers)} layers of its target; it must be {EAGLE3_LAYERS}."
    blocks = head.integer("eagle3.block_count")
    if blocks != 1:
        return f"The head has {_number(blocks)} layers of its own; it must be 1."
    width, target_width = head.integer("eagle3.embedding_length"), _target_width(head)
    if not width or not target_width:
        return "The head does not say how wide its hidden states and its target's are."
    key_size, value_size = _head_size(head, "key_length"), _head_size(head, "value_length")
    if key_size and value_size and key_size != value_size:
        return "The head's attention keys and values are of different sizes."
    needed = _EAGLE3_TENSORS
    if head.flag("eagle3.norm_before_fc"):
        needed = (*needed, "enc.output_norm.weight")
    missing = next((name for name in needed if _shape(head, name) is None), None)
    if missing is not None:
        return f"The head is incomplete: it has no “{missing}”."
    if _shape(head, "fc.weight") != (EAGLE3_LAYERS * target_width, width):
        return "The head's first matrix is not of the size its metadata says."
    if any(tensor.name == "d2t" and tensor.type_name != "I64" for tensor in head.tensors):
        return "The head's table of draft tokens is not stored as 64-bit whole numbers."
    return None


def _layer_obstacle(head: Header, target: Header) -> str | None:
    """A wrong layer aborts the process, or silently gives states nobody has filled."""
    architecture = target.architecture
    named = _architecture(target)
    if architecture not in LAYER_INPUTS:
        return f"llama.cpp cannot give out the hidden states of the architecture {named}."
    count = _trunk_layers(target)
    if count is None:
        return "The target does not say how many layers it has."
    layers = _target_layers(head) or ()
    beyond = [layer for layer in layers if not 0 <= layer <= count]
    if beyond:
        return f"The head reads layer {beyond[0]} of its target, which has {count} layers."
    if count in layers and architecture not in LAST_STATES:
        return (
            f"The head reads the state after the last layer ({count}), "
            f"which llama.cpp does not give out for the architecture {named}."
        )
    return None


def _width_obstacle(head: Header, target: Header) -> str | None:
    ours, expected = _width(target), _target_width(head)
    if ours == expected:
        return None
    return (
        f"The head is made for a target of width {_number(expected)}, "
        f"and this one has {_number(ours)}."
    )


def _sharing_obstacle(head: Header, target: Header) -> str | None:
    """What a head lacks it takes from the target (`ctx_other`); the sizes must then be equal."""
    embeddings, output = _shape(head, "token_embd.weight"), _shape(head, "output.weight")
    mapping = _shape(head, "d2t")
    width, target_width = head.integer("eagle3.embedding_length"), _width(target)
    ours, theirs = vocabulary_traits(target).size, vocabulary_traits(head).size
    lacking = [
        what for what, shape in (("token embeddings", embeddings), ("output", output)) if not shape
    ]
    if lacking and width != target_width:
        return (
            f"The head has no {' and no '.join(lacking)} of its own, and at width "
            f"{_number(width)} it cannot share those of a target of width {_number(target_width)}."
        )
    if embeddings is not None and (embeddings[0] != width or embeddings[1] < min(ours, theirs)):
        return "The head's token embeddings do not cover its vocabulary."
    outputs = mapping[0] if mapping else theirs
    if output is not None and output != (width, outputs):
        return "The head's output is not of the size its metadata says."
    if output is None and outputs != ours:
        return (
            f"The head shares the target's output of {ours:,} tokens, "
            f"but is made for one of {outputs:,}."
        )
    return None


def _judge(target: ModelParts, draft: ModelParts) -> DraftVerdict:
    kind = draft_kind(draft.whole)
    ours, theirs = vocabulary_traits(target.whole), vocabulary_traits(draft.whole)
    difference: TokenDifference | None = None
    warnings: tuple[str, ...] = ()
    reason = _kind_obstacle(target, draft) or _head_obstacle(kind, draft.whole, target.whole)
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
        details["eagle3"] = _eagle3_facts(draft.whole)
    return DraftVerdict(kind, compatible, reason, warnings, MappingProxyType(details))


def _kind_obstacle(target: ModelParts, draft: ModelParts) -> str | None:
    """Why one of the two files cannot play its part at all."""
    role = file_role(target.whole)
    if role != "chat":
        return f"“{file_name(target.first)}” is {ROLES[role]}, not a target."
    role = file_role(draft.whole)
    if draft_kind(draft.whole) is None:
        return f"“{file_name(draft.first)}” is {ROLES[role]}, not a draft."
    for model in (target, draft):
        fault = load_obstacle(model) or token_texts_obstacle(model.whole)
        if fault is not None:
            return f"“{file_name(model.first)}” {fault}."
    return None


def _head_obstacle(kind: DrafterKind | None, head: Header, target: Header) -> str | None:
    if kind is DrafterKind.EAGLE3:
        return eagle3_obstacle(head, target)
    return mtp_obstacle(head, target) if kind is DrafterKind.MTP else None


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
        first, middle, last = _target_layers(draft.whole) or (0, 0, 0)
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
        "role": file_role(header),
        "architecture": _architecture(header),
        "size_bytes": header.file_size,
        "layers": _trunk_layers(header),
        "hidden_size": _width(header),
        "state_size": _state_width(header),
        "mtp_layers": held_mtp_layers(header),
        "tokenizer": printable(traits.model, limit=60),
        "vocabulary_type": traits.type,
        "vocabulary_size": traits.size,
        "add_bos": traits.add_bos,
        "bos_id": traits.bos,
        "add_eos": traits.add_eos,
        "eos_id": traits.eos,
    }


def _eagle3_facts(head: Header) -> dict[str, object]:
    layers = _target_layers(head)
    mapping = _shape(head, "d2t")
    return {
        "layer_ids": None if layers is None else list(layers),
        "target_hidden_size": _target_width(head),
        "own_embeddings": _shape(head, "token_embd.weight") is not None,
        "own_output": _shape(head, "output.weight") is not None,
        "draft_vocabulary_size": mapping[0] if mapping else vocabulary_traits(head).size,
    }


def _is_same(target: ModelParts, draft: ModelParts) -> bool:
    try:
        return os.path.samefile(target.first, draft.first)
    except (OSError, ValueError):
        return False


def _target_layers(head: Header) -> tuple[int, ...] | None:
    value = head.metadata.get("eagle3.target_layers")
    if not isinstance(value, tuple):
        return None
    layers = tuple(
        layer for layer in value if isinstance(layer, int) and not isinstance(layer, bool)
    )
    return layers if len(layers) == len(value) else None


def _target_width(head: Header) -> int | None:
    return head.integer("eagle3.target_hidden_size")


def _width(header: Header) -> int | None:
    return header.integer(f"{header.architecture}.embedding_length")


def _state_width(header: Header) -> int | None:
    """`llama_model_n_embd_out`: the width of the states the heads read."""
    return header.integer(f"{header.architecture}.embedding_length_out") or _width(header)


def _trunk_layers(header: Header) -> int | None:
    """`llama_model_n_layer`: MTP layers are counted in `block_count` and do not belong to it."""
    count = header.integer(f"{header.architecture}.block_count")
    if count is None:
        return None
    trunk = count - (header.integer(f"{header.architecture}.nextn_predict_layers") or 0)
    return trunk if trunk >= 0 else None


def _head_size(head: Header, key: str) -> int | None:
    given = head.integer(f"eagle3.attention.{key}")
    if given is not None:
        return given
    width, count = (
        head.integer("eagle3.embedding_length"),
        head.integer("eagle3.attention.head_count"),
    )
    return width // count if width and count else None


def _shape(header: Header, name: str) -> tuple[int, ...] | None:
    """A tensor's dimensions, row length first, at least two of them; None where it lacks."""
    for tensor in header.tensors:
        if tensor.name == name:
            missing = 2 - len(tensor.dimensions)
            return (*tensor.dimensions, *(1 for _ in range(missing)))
    return None


def _architecture(header: Header) -> str:
    return printable(header.architecture, limit=60) or "(none)"


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


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
