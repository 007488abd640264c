"""Tiny EAGLE-3 heads and the four-layer llama they draft for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from numpy.typing import NDArray

from models.tiny_llama import LlamaShape, build_tiny_llama
from models.vocabulary import bare_vocabulary

Array = NDArray[np.float32]

TARGET_LAYERS = 4
HEADS, HEAD_SIZE, FEED_FORWARD = 4, 16, 96
RIGHT_WIDTH = 80
"""Width of a head that is always right: a dimension more than its target, and then even."""


def build_target(path: Path, *, markov: bool, width: int = 64) -> Path:
    """A llama of four layers; with `markov` the next token depends on the current one alone."""
    shape = LlamaShape(layers=TARGET_LAYERS, width=width)
    return build_tiny_llama(path, shape=shape, vocabulary=bare_vocabulary(), markov=markov)


@dataclass(frozen=True)
class HeadShape:
    """How a head is made.

    `own_embeddings` and `own_output` say what it does not share with its target; `reduced` is the
    size of a draft vocabulary of its own (d2t), None for the target's, whose ids are wrong by
    `misled`. `drafts` is what it makes
    of a markov target: "random"; "right", always (`right_head`), and "wrong", the same with its
    output negated; "mixed" (attention prefers where the current token stood, not always); "echo",
    the pending token again, which the target's state foretold: right only if the states are in
    step.
    """

    drafts: Literal["random", "right", "wrong", "mixed", "echo"] = "random"
    own_embeddings: bool = False
    own_output: bool = True
    reduced: int | None = None
    misled: int = 0
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    layers: tuple[int, ...] = (0, 2, 3)
    target_width: int = 64
    width: int = 64


def build_eagle3(path: Path, target: Path, shape: HeadShape, *, seed: int = 5) -> Path:
    """Write a head for the target file, whose embeddings and output it may copy."""
    random = np.random.default_rng(seed)
    theirs = {tensor.name: np.array(tensor.data) for tensor in GGUFReader(target).tensors}
    vocabulary = bare_vocabulary()
    width = shape.width

    def normal(rows: int, columns: int, scale: float = 0.1) -> Array:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    query = HEADS * HEAD_SIZE
    ones = np.ones(width, dtype=np.float32)
    tensors: dict[str, Array] = {
        "fc.weight": normal(width, len(shape.layers) * shape.target_width),
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_norm_2.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.attn_q.weight": normal(query, 2 * width),
        "blk.0.attn_k.weight": normal(query, 2 * width),
        "blk.0.attn_v.weight": normal(query, 2 * width),
        "blk.0.attn_output.weight": normal(width, query),
        "blk.0.ffn_gate.weight": normal(FEED_FORWARD, width),
        "blk.0.ffn_up.weight": normal(FEED_FORWARD, width),
        "blk.0.ffn_down.weight": normal(width, FEED_FORWARD),
    }
    if shape.norm_before_fc:
        tensors["enc.output_norm.weight"] = np.ones(
            len(shape.layers) * shape.target_width, dtype=np.float32
        )
    if shape.own_embeddings:
        tensors["token_embd.weight"] = (
            theirs["token_embd.weight"]
            if width == shape.target_width
            else normal(len(vocabulary), width, 1.0)
        )
    rope_size, rope_base = HEAD_SIZE, 10000.0
    if shape.drafts in ("right", "wrong"):
        assert (shape.width, shape.target_width) == (RIGHT_WIDTH, 64)
        _attend_to_the_current_token(tensors, theirs["token_embd.weight"])
        rope_base = 10.0
    elif shape.drafts == "mixed":
        _attend_to_equal_tokens(tensors, random)
        rope_size = 2
    elif shape.drafts == "echo":
        tensors["fc.weight"] = np.concatenate([np.zeros((64, 128)), np.eye(64)], axis=1)
        for name in ("blk.0.attn_output.weight", "blk.0.ffn_down.weight"):
            tensors[name] = np.zeros_like(tensors[name])
    tokens = np.arange(len(vocabulary))
    if shape.reduced is not None:
        tokens = np.sort(random.permutation(tokens)[: shape.reduced])
    if shape.own_output:
        if width < shape.target_width:
            tensors["output.weight"] = normal(len(tokens), width, 0.5)
        else:
            sign = -1 if shape.drafts == "wrong" else 1
            padding = np.zeros((len(tokens), width - shape.target_width))
            output = np.concatenate([sign * theirs["output.weight"][tokens], padding], axis=1)
            tensors["output.weight"] = output

    writer = GGUFWriter(path, "eagle3")
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HEAD_SIZE)
    writer.add_value_length(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(rope_size)
    writer.add_rope_freq_base(rope_base)
    writer.add_array("eagle3.target_layers", list(shape.layers))
    writer.add_uint32("eagle3.target_hidden_size", shape.target_width)
    writer.add_bool("eagle3.norm_before_residual", shape.norm_before_residual)
    writer.add_bool("eagle3.norm_before_fc", shape.norm_before_fc)
    vocabulary.write(writer)
    for name, tensor in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor, dtype=np.float32))
    if shape.reduced is not None:
        ids = (tokens + shape.misled).astype(np.int64)
        writer.add_tensor("d2t", ids, raw_dtype=GGMLQuantizationType.I64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def right_head(*, wrong: bool = False, reduced: int | None = None) -> HeadShape:
    """A head for a markov target that is always right (or never): wider than it, sharing nothing.

    Its stream is the current token's embedding, found by position.
    """
    return HeadShape(
        drafts="wrong" if wrong else "right",
        own_embeddings=True,
        reduced=reduced,
        norm_before_residual=True,
        width=RIGHT_WIDTH,
    )


def _attend_to_the_current_token(tensors: dict[str, Array], embeddings: Array) -> None:
    """Keys and queries are one constant, so that rotation alone decides: the nearest wins."""
    width, inner = RIGHT_WIDTH, 64
    own = np.zeros((len(embeddings), width))
    own[:, :inner] = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    own[:, inner] = 1.0
    match = np.zeros((inner, 2 * width))
    match[::2, inner] = 10.0
    value = np.zeros((inner, 2 * width))
    value[:, :inner] = np.eye(inner)
    back = np.zeros((width, inner))
    back[:inner] = np.eye(inner)
    tensors |= {
        "token_embd.weight": own,
        "blk.0.attn_norm_2.weight": np.zeros(width),
        "blk.0.attn_q.weight": match,
        "blk.0.attn_k.weight": match,
        "blk.0.attn_v.weight": value,
        "blk.0.attn_output.weight": back,
        "blk.0.ffn_down.weight": np.zeros_like(tensors["blk.0.ffn_down.weight"]),
    }


def _attend_to_equal_tokens(tensors: dict[str, Array], random: np.random.Generator) -> None:
    """Equal keys and queries, made of the token: it attends to itself, or to a louder one."""
    width = 64
    match = np.zeros((width, 2 * width))
    for head in range(HEADS):
        rows = slice(head * HEAD_SIZE + 2, (head + 1) * HEAD_SIZE)  # those without rotation
        match[rows, :width] = random.standard_normal((HEAD_SIZE - 2, width)) * 12
    tensors |= {
        "fc.weight": np.zeros_like(tensors["fc.weight"]),
        "blk.0.attn_norm_2.weight": np.zeros(width),
        "blk.0.attn_q.weight": match,
        "blk.0.attn_k.weight": match,
        "blk.0.attn_v.weight": np.concatenate([np.eye(width), np.zeros((width, width))], axis=1),
        "blk.0.attn_output.weight": np.eye(width),
        "blk.0.ffn_down.weight": np.zeros_like(tensors["blk.0.ffn_down.weight"]),
    }
