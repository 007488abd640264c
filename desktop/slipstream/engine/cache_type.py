"""How keys and values are stored in a KV cache. Importable without llama.cpp."""

from __future__ import annotations

from enum import StrEnum


class CacheType(StrEnum):
    """Types llama.cpp can store keys and values in; the smaller ones trade accuracy for memory."""

    F32 = "f32"
    F16 = "f16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"
