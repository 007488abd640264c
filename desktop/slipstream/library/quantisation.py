"""How a model file's weights are stored, in the short names people know ("Q4_K_M")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from slipstream.engine.ggml_types import GGML_TYPES
from slipstream.engine.gguf import TensorInfo

_GUESSED = 1024

_FILE_TYPES: dict[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4",
    39: "NVFP4",
    40: "Q1_0",
    41: "Q2_0",
}
"""`enum llama_ftype` (llama.cpp, include/llama.h) in the names llama-quantize takes."""

QUANTISATION_NAMES = frozenset(_FILE_TYPES.values()) | {t.name for t in GGML_TYPES.values()}


def quantisation_name(file_type: int | None, tensors: Iterable[TensorInfo]) -> str:
    """The name for `general.file_type`; without it, the type most weights have; "" for no weights.

    Vectors (norms, biases) stay in F32 in every quantisation and are counted only where there is
    nothing else.
    """
    weights: Counter[str] = Counter()
    vectors: Counter[str] = Counter()
    for tensor in tensors:
        group = weights if len(tensor.dimensions) > 1 else vectors
        group[tensor.type_name] += tensor.elements
    counted = weights or vectors
    if not counted:
        return ""
    named = _FILE_TYPES.get(file_type & ~_GUESSED) if file_type is not None else None
    return named or counted.most_common(1)[0][0]
