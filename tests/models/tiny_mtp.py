"""Tiny models with multi-token prediction heads: mimo2 (attention) and qwen35 (hybrid)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from models.vocabulary import bare_vocabulary

Array = NDArray[np.float32]

WIDTH, HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD = 64, 4, 2, 16, 96
LAYERS = 2
STATE, STATE_HEADS, STATE_GROUPS = 16, 4, 2
ROPE = 10000.0


@dataclass(frozen=True)
class MtpWeights:
    """What the heads are worth.

    With `markov` the blocks add nothing to the stream, so that the next token depends on the
    current one alone. A head that `copies` the token's embedding into its stream then knows it
    and is always right, one whose output is `negated` never, and one with other embeddings for
    its `disturbed` tokens is right for the others. One that copies the "state" drafts the pending
    token again, which the target's state foretold: right only if the states are in step.
    """

    heads: int = 1
    markov: bool = False
    copies: Literal["embedding", "state"] | None = None
    negated: bool = False
    disturbed: float = 0.0  # share of the vocabulary


def right(heads: int = 1) -> MtpWeights:
    """Every draft is right."""
    return MtpWeights(heads, markov=True, copies="embedding")


def wrong(heads: int = 1) -> MtpWeights:
    """No draft is right."""
    return MtpWeights(heads, markov=True, copies="embedding", negated=True)


def mixed(heads: int = 1) -> MtpWeights:
    """Some drafts are right."""
    return MtpWeights(heads, markov=True, copies="embedding", disturbed=0.3)


def echo(heads: int = 1) -> MtpWeights:
    """Every draft is the pending token again."""
    return MtpWeights(heads, markov=True, copies="state")


def build_mimo2(
    path: Path,
    weights: MtpWeights,
    *,
    seed: int = 0,
    only_heads: bool = False,
    part_size: int = 0,
) -> Path:
    """A mimo2 of `LAYERS` layers and the heads; `only_heads` leaves out the layers' weights.

    With a `part_size` it is split into files of so many tensors, "m-00001-of-00003.gguf" for
    "m.gguf" and so on.
    """
    model = _Writer(path, "mimo2", weights, seed, part_size)
    blocks = LAYERS + weights.heads
    model.writer.add_expert_feed_forward_length(FEED_FORWARD)  # required, though it is dense
    model.writer.add_sliding_window(64)
    model.writer.add_sliding_window_pattern([index == 1 for index in range(blocks)])
    for index in range(blocks):
        if only_heads and index < LAYERS:
            model.skip(index)
        model.ones(f"blk.{index}.attn_norm.weight", WIDTH)
        model.ones(f"blk.{index}.ffn_norm.weight", WIDTH)
        rows = (HEADS + 2 * KV_HEADS) * HEAD_SIZE
        model.normal(f"blk.{index}.attn_qkv.weight", rows, WIDTH)
        model.output(f"blk.{index}.attn_output.weight", WIDTH, HEADS * HEAD_SIZE)
        model.feed_forward(index)
    return model.finish()


def build_qwen35(path: Path, weights: MtpWeights, *, seed: int = 0) -> Path:
    """A qwen35 with one recurrent and one attention layer, and one head."""
    model = _Writer(path, "qwen35", weights, seed)
    writer = model.writer
    writer.add_rope_dimension_sections([4, 2, 2, 0])
    writer.add_ssm_conv_kernel(4)
    writer.add_ssm_inner_size(STATE * STATE_HEADS)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(STATE_HEADS)
    writer.add_ssm_group_count(STATE_GROUPS)
    writer.add_full_attention_interval(2)
    for index in range(LAYERS + 1):
        model.ones(f"blk.{index}.attn_norm.weight", WIDTH)
        model.ones(f"blk.{index}.post_attention_norm.weight", WIDTH)
        if index == 0:
            model.recurrent(index)
        else:
            model.gated_attention(index)
        model.feed_forward(index)
    return model.finish()


class _Writer:
    """Collects the tensors of one model; dimensions are numpy's, the reverse of ggml's."""

    def __init__(
        self, path: Path, architecture: str, weights: MtpWeights, seed: int, part_size: int = 0
    ) -> None:
        self.path = path
        self.writer = GGUFWriter(path, architecture, split_max_tensors=part_size)
        self.weights = weights
        self._random = np.random.default_rng(seed)
        self._skipped: set[str] = set()
        self._tensors: dict[str, Array] = {}
        writer, heads = self.writer, weights.heads
        writer.add_context_length(512)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(LAYERS + heads)
        writer.add_nextn_predict_layers(heads)
        writer.add_feed_forward_length(FEED_FORWARD)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_key_length(HEAD_SIZE)
        writer.add_value_length(HEAD_SIZE)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(HEAD_SIZE)
        writer.add_rope_freq_base(ROPE)
        vocabulary = bare_vocabulary()
        vocabulary.write(writer)
        self.vocabulary_size = len(vocabulary)
        self.normal("token_embd.weight", self.vocabulary_size, WIDTH, scale=1.0)
        self.ones("output_norm.weight", WIDTH)
        self.normal("output.weight", self.vocabulary_size, WIDTH, scale=0.5)

    def skip(self, index: int) -> None:
        """Leave out the tensors of a block."""
        self._skipped.add(f"blk.{index}.")

    def normal(self, name: str, *shape: int, scale: float = 0.1) -> None:
        self._tensors[name] = (self._random.standard_normal(shape) * scale).astype(np.float32)

    def ones(self, name: str, *shape: int) -> None:
        self._tensors[name] = np.ones(shape, dtype=np.float32)

    def output(self, name: str, *shape: int) -> None:
        """What a block adds to the stream."""
        self.normal(name, *shape)
        if self.weights.markov:
            self._tensors[name][:] = 0

    def feed_forward(self, index: int) -> None:
        self.normal(f"blk.{index}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        self.normal(f"blk.{index}.ffn_up.weight", FEED_FORWARD, WIDTH)
        self.output(f"blk.{index}.ffn_down.weight", WIDTH, FEED_FORWARD)

    def gated_attention(self, index: int) -> None:
        block = f"blk.{index}"
        self.normal(f"{block}.attn_q.weight", 2 * HEADS * HEAD_SIZE, WIDTH)
        self.normal(f"{block}.attn_k.weight", KV_HEADS * HEAD_SIZE, WIDTH)
        self.normal(f"{block}.attn_v.weight", KV_HEADS * HEAD_SIZE, WIDTH)
        self.output(f"{block}.attn_output.weight", WIDTH, HEADS * HEAD_SIZE)
        self.ones(f"{block}.attn_q_norm.weight", HEAD_SIZE)
        self.ones(f"{block}.attn_k_norm.weight", HEAD_SIZE)

    def recurrent(self, index: int) -> None:
        block, value = f"blk.{index}", STATE * STATE_HEADS
        mixed = 2 * STATE * STATE_GROUPS + value
        self.normal(f"{block}.attn_qkv.weight", mixed, WIDTH)
        self.normal(f"{block}.attn_gate.weight", value, WIDTH)
        self.normal(f"{block}.ssm_conv1d.weight", mixed, 4)
        self.normal(f"{block}.ssm_dt.bias", STATE_HEADS)
        self.normal(f"{block}.ssm_a", STATE_HEADS, scale=1.0)
        self._tensors[f"{block}.ssm_a"] = -np.abs(self._tensors[f"{block}.ssm_a"])
        self.normal(f"{block}.ssm_beta.weight", STATE_HEADS, WIDTH)
        self.normal(f"{block}.ssm_alpha.weight", STATE_HEADS, WIDTH)
        self.ones(f"{block}.ssm_norm.weight", STATE)
        self.output(f"{block}.ssm_out.weight", WIDTH, value)

    def _head(self, index: int) -> None:
        block = f"blk.{index}.nextn"
        self.ones(f"{block}.enorm.weight", WIDTH)
        self.ones(f"{block}.hnorm.weight", WIDTH)
        self.normal(f"{block}.eh_proj.weight", WIDTH, 2 * WIDTH)
        if self.weights.copies is not None:  # the embedding comes first, then the state
            halves = [np.eye(WIDTH), np.zeros((WIDTH, WIDTH))]
            ordered = halves if self.weights.copies == "embedding" else halves[::-1]
            projection = np.concatenate(ordered, axis=1).astype(np.float32)
            self._tensors[f"{block}.eh_proj.weight"] = projection
        if self.weights.negated:
            self._tensors[f"{block}.shared_head_head.weight"] = -self._tensors["output.weight"]
        if self.weights.disturbed:
            embeddings = self._tensors["token_embd.weight"].copy()
            wrong = self._random.random(len(embeddings)) < self.weights.disturbed
            embeddings[wrong] = self._random.standard_normal((int(wrong.sum()), WIDTH))
            self._tensors[f"{block}.embed_tokens.weight"] = embeddings

    def finish(self) -> Path:
        for number in range(self.weights.heads):
            self._head(LAYERS + number)
        for name, tensor in self._tensors.items():
            if not any(name.startswith(block) for block in self._skipped):
                self.writer.add_tensor(name, tensor)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.path
