"""Whether an EAGLE-3 head fits a target, told from both files.

Knows nothing of running models. Sources: llama.cpp, src/models/eagle3.cpp (load and graph) and
`common_speculative_impl_draft_eagle3` in common/speculative.cpp.
"""

from __future__ import annotations

from slipstream.engine.gguf import Header
from slipstream.engine.model_parts import ModelParts, read_int64s
from slipstream.engine.speculation.hyperparameters import (
    architecture_name,
    hidden_size,
    shown,
    tensor_shape,
    trunk_layers,
)
from slipstream.engine.speculation.mtp_compatibility import MTP_GRAPHS
from slipstream.engine.speculation.vocabulary import vocabulary_traits

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


def eagle3_obstacle(head: ModelParts, target: Header) -> str | None:
    """Why this EAGLE-3 head cannot draft for this target; None where it can.

    The target's header is one of all parts (`ModelParts.whole`). Reads the head's table of draft
    tokens, where it has one and the headers agree; raises GgufError where that fails.
    """
    whole = head.whole
    return (
        _head_fault(whole)
        or _layer_obstacle(whole, target)
        or _width_obstacle(whole, target)
        or _sharing_obstacle(whole, target)
        or _mapping_obstacle(head, target)
    )


def eagle3_facts(head: Header) -> dict[str, object]:
    """What the head asks of its target and what it brings, as JSON values."""
    layers = target_layers(head)
    mapping = tensor_shape(head, "d2t")
    return {
        "layer_ids": None if layers is None else list(layers),
        "target_hidden_size": _target_width(head),
        "own_embeddings": tensor_shape(head, "token_embd.weight") is not None,
        "own_output": tensor_shape(head, "output.weight") is not None,
        "draft_vocabulary_size": mapping[0] if mapping else vocabulary_traits(head).size,
    }


def target_layers(head: Header) -> tuple[int, ...] | None:
    """The target's layers whose inputs the head reads; None where it does not say."""
    value = head.metadata.get("eagle3.target_layers")
    if not isinstance(value, tuple):
        return None
    layers = tuple(
        layer for layer in value if isinstance(layer, int) and not isinstance(layer, bool)
    )
    return layers if len(layers) == len(value) else None


def _target_width(head: Header) -> int | None:
    return head.integer("eagle3.target_hidden_size")


def _head_fault(head: Header) -> str | None:
    """What is wrong with the head whatever the target."""
    if head.architecture != "eagle3":
        return "The file is not an EAGLE-3 head."
    layers = target_layers(head)
    if layers is None:
        return "The head does not say which layers of its target it reads."
    if len(layers) != EAGLE3_LAYERS:
        return f"The head reads {len(layers)} layers of its target; it must be {EAGLE3_LAYERS}."
    blocks = head.integer("eagle3.block_count")
    if blocks != 1:
        return f"The head has {shown(blocks)} layers of its own; it must be 1."
    width, target_width = head.integer("eagle3.embedding_length"), _target_width(head)
    if not width or not target_width:
        return "The head does not say how wide its hidden states and its target's are."
    key_size, value_size = _head_size(head, "key_length"), _head_size(head, "value_length")
    if key_size and value_size and key_size != value_size:
        return "The head's attention keys and values are of different sizes."
    needed = _EAGLE3_TENSORS
    if head.flag("eagle3.norm_before_fc"):
        needed = (*needed, "enc.output_norm.weight")
    missing = next((name for name in needed if tensor_shape(head, name) is None), None)
    if missing is not None:
        return f"The head is incomplete: it has no “{missing}”."
    if tensor_shape(head, "fc.weight") != (EAGLE3_LAYERS * target_width, width):
        return "The head's first matrix is not of the size its metadata says."
    mapping = tensor_shape(head, "d2t")
    is_list = any(one.name == "d2t" and one.type_name == "I64" for one in head.tensors)
    if mapping is not None and (mapping[1:] != (1,) or not is_list):
        return "The head's table of draft tokens is not a list of 64-bit whole numbers."
    return None


def _layer_obstacle(head: Header, target: Header) -> str | None:
    """A wrong layer aborts the process, or silently gives states nobody has filled."""
    architecture = target.architecture
    named = architecture_name(target)
    if architecture not in LAYER_INPUTS:
        return f"llama.cpp cannot give out the hidden states of the architecture {named}."
    count = trunk_layers(target)
    if count is None:
        return "The target does not say how many layers it has."
    layers = target_layers(head) or ()
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
    ours, expected = hidden_size(target), _target_width(head)
    if ours == expected:
        return None
    return (
        f"The head is made for a target of width {shown(expected)}, and this one has {shown(ours)}."
    )


def _sharing_obstacle(head: Header, target: Header) -> str | None:
    """What a head lacks it takes from the target (`ctx_other`); the sizes must then be equal."""
    embeddings, output = (
        tensor_shape(head, "token_embd.weight"),
        tensor_shape(head, "output.weight"),
    )
    mapping = tensor_shape(head, "d2t")
    width, target_width = head.integer("eagle3.embedding_length"), hidden_size(target)
    ours, theirs = vocabulary_traits(target).size, vocabulary_traits(head).size
    lacking = [
        what for what, shape in (("token embeddings", embeddings), ("output", output)) if not shape
    ]
    if lacking and width != target_width:
        return (
            f"The head has no {' and no '.join(lacking)} of its own, and at width "
            f"{shown(width)} it cannot share those of a target of width {shown(target_width)}."
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


def _mapping_obstacle(head: ModelParts, target: Header) -> str | None:
    """`d2t` names the target's token of each draft token, once each.

    A GGUF file holds the ids themselves, not the offsets of the head it was converted from
    (conversion/llama.py). An id the head's vocabulary lacks aborts the process.
    """
    ours, theirs = vocabulary_traits(target).size, vocabulary_traits(head.whole).size
    mapping = tensor_shape(head.whole, "d2t")
    if mapping is None:
        return None
    if mapping[0] > theirs:
        return f"The head drafts {mapping[0]:,} tokens, and its vocabulary has {theirs:,}."
    seen: set[int] = set()
    for token in read_int64s(head, "d2t"):
        for whose, size in (("the target", ours), ("its vocabulary", theirs)):
            if not 0 <= token < size:
                return f"The head drafts token {token:,}, and {whose} has {size:,} tokens."
        if token in seen:
            return f"The head's table of draft tokens names token {token:,} twice."
        seen.add(token)
    return None


def _head_size(head: Header, key: str) -> int | None:
    given = head.integer(f"eagle3.attention.{key}")
    if given is not None:
        return given
    width, count = (
        head.integer("eagle3.embedding_length"),
        head.integer("eagle3.attention.head_count"),
    )
    return width // count if width and count else None
