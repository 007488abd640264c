"""An EAGLE-3 head in the starter model's size, with random weights: for measuring, not drafting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

WIDTH, HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD = 576, 9, 3, 64, 1536
LAYERS = (2, 15, 27)
DRAFT_VOCABULARY = 8192


def build_starter_eagle3(path: Path, starter: Path, *, seed: int = 11) -> Path:
    """Write a head of about 11 MB in Q8_0 that shares the starter's embeddings.

    Its draft vocabulary are the starter's first tokens.
    """
    random = np.random.default_rng(seed)
    query, keys = HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE
    shapes = {
        "fc.weight": (WIDTH, len(LAYERS) * WIDTH),
        "blk.0.attn_q.weight": (query, 2 * WIDTH),
        "blk.0.attn_k.weight": (keys, 2 * WIDTH),
        "blk.0.attn_v.weight": (keys, 2 * WIDTH),
        "blk.0.attn_output.weight": (WIDTH, query),
        "blk.0.ffn_gate.weight": (FEED_FORWARD, WIDTH),
        "blk.0.ffn_up.weight": (FEED_FORWARD, WIDTH),
        "blk.0.ffn_down.weight": (WIDTH, FEED_FORWARD),
        "output.weight": (DRAFT_VOCABULARY, WIDTH),
    }
    norms = (
        "output_norm.weight",
        "blk.0.attn_norm.weight",
        "blk.0.attn_norm_2.weight",
        "blk.0.ffn_norm.weight",
    )
    writer = GGUFWriter(path, "eagle3")
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_SIZE)
    writer.add_value_length(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_rope_freq_base(100_000.0)
    writer.add_array("eagle3.target_layers", list(LAYERS))
    writer.add_uint32("eagle3.target_hidden_size", WIDTH)
    writer.add_bool("eagle3.norm_before_residual", False)
    _copy_tokenizer(writer, starter)
    for name in norms:
        writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))
    for name, (rows, columns) in shapes.items():
        weights = (random.standard_normal((rows, columns)) * 0.05).astype(np.float32)
        packed = quants.quantize(weights, GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, packed, raw_dtype=GGMLQuantizationType.Q8_0)
    ids = np.arange(DRAFT_VOCABULARY, dtype=np.int64)
    writer.add_tensor("d2t", ids, raw_dtype=GGMLQuantizationType.I64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _copy_tokenizer(writer: GGUFWriter, starter: Path) -> None:
    for name, field in GGUFReader(starter).fields.items():
        if not name.startswith("tokenizer."):
            continue
        value = field.contents()
        if field.types[0] is GGUFValueType.ARRAY:
            writer.add_array(name, value)
        else:
            writer.add_key_value(name, value, field.types[0])
