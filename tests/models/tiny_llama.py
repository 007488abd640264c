"""Tiny llama models: random weights, about 0.5 MB, loaded and run in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from models.vocabulary import Vocabulary, spm_vocabulary

Array = NDArray[np.float32]


@dataclass(frozen=True)
class LlamaShape:
    """The sizes of a tiny llama; `heads * head_size` need not equal `width`."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 16
    feed_forward: int = 96


def build_tiny_llama(
    path: Path,
    *,
    seed: int = 0,
    shape: LlamaShape | None = None,
    vocabulary: Vocabulary | None = None,
    context_length: int = 512,
    chat_template: str | None = None,
    add_bos: bool | None = None,
    add_eos: bool | None = None,
    add_space_prefix: bool | None = None,
    name: str = "Tiny llama",
    licence: str | None = None,
    markov: bool = False,
) -> Path:
    """Write a random llama to `path` and return it; flags that are None are not written.

    With `markov` the blocks add nothing to the stream (attention output and feed-forward down are
    zero), so that the next token depends on the current one alone.
    """
    shape = shape or LlamaShape()
    vocabulary = vocabulary or spm_vocabulary()
    writer = GGUFWriter(path, "llama")
    writer.add_name(name)
    if licence is not None:
        writer.add_license(licence)
    writer.add_file_type(0)
    writer.add_context_length(context_length)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(10000.0)
    vocabulary.write(writer)
    for add, flag in (
        (writer.add_add_bos_token, add_bos),
        (writer.add_add_eos_token, add_eos),
        (writer.add_add_space_prefix, add_space_prefix),
    ):
        if flag is not None:
            add(flag)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    for tensor_name, weights in _weights(shape, len(vocabulary), seed, markov).items():
        writer.add_tensor(tensor_name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def build_markov_llama(path: Path, *, seed: int = 0, chat_template: str | None = None) -> Path:
    """A `markov` llama: what follows a token is always the same, whatever came before."""
    return build_tiny_llama(path, seed=seed, chat_template=chat_template, markov=True)


def build_other_vocabulary_llama(path: Path, *, seed: int = 0, token: int = 300) -> Path:
    """The tiny llama with one `token` spelled differently: unfit as a draft for the others."""
    vocabulary = spm_vocabulary().with_token(token, "ß")
    return build_tiny_llama(path, seed=seed, vocabulary=vocabulary)


def _weights(shape: LlamaShape, vocabulary: int, seed: int, markov: bool) -> dict[str, Array]:
    """All tensors by name, in numpy's order (the reverse of ggml's)."""
    random = np.random.default_rng(seed)

    def normal(rows: int, columns: int, scale: float) -> Array:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    def output(rows: int, columns: int) -> Array:
        weights = normal(rows, columns, 0.1)
        return np.zeros_like(weights) if markov else weights

    width = shape.width
    ones = np.ones(width, dtype=np.float32)
    query, key = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    weights = {
        "token_embd.weight": normal(vocabulary, width, 1.0),
        "output_norm.weight": ones,
        "output.weight": normal(vocabulary, width, 0.5),
    }
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights |= {
            f"{block}.attn_norm.weight": ones,
            f"{block}.attn_q.weight": normal(query, width, 0.1),
            f"{block}.attn_k.weight": normal(key, width, 0.1),
            f"{block}.attn_v.weight": normal(key, width, 0.1),
            f"{block}.attn_output.weight": output(width, query),
            f"{block}.ffn_norm.weight": ones,
            f"{block}.ffn_gate.weight": normal(shape.feed_forward, width, 0.1),
            f"{block}.ffn_up.weight": normal(shape.feed_forward, width, 0.1),
            f"{block}.ffn_down.weight": output(width, shape.feed_forward),
        }
    return weights
