"""What a model file is for, told from its metadata and the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from slipstream.engine.gguf import Header, TensorInfo


class ModelKind(StrEnum):
    """The roles a file can have; only CHAT answers on its own."""

    CHAT = "chat"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    MMPROJ = "mmproj"
    ADAPTER = "adapter"
    EMBEDDING = "embedding"
    VOCABULARY = "vocabulary"
    OTHER = "other"

    @property
    def description(self) -> str:
        """The role as a noun phrase with its article."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS: dict[ModelKind, str] = {
    ModelKind.CHAT: "a chat model",
    ModelKind.EAGLE3: "an EAGLE-3 head, which drafts for another model",
    ModelKind.MTP: "a set of MTP heads, which draft for another model",
    ModelKind.MMPROJ: "a projector, which lets another model see or hear",
    ModelKind.ADAPTER: "a LoRA adapter, which changes another model",
    ModelKind.EMBEDDING: "an embedding model, which measures texts and does not write any",
    ModelKind.VOCABULARY: "a vocabulary without a model",
    ModelKind.OTHER: "a model of a kind that does not chat",
}

_ENCODERS = frozenset(
    {
        "bert",
        "modern-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "jina-bert-v2",
        "jina-bert-v3",
        "eurobert",
        "gemma-embedding",
        "llama-embed",
        "t5encoder",
    }
)

_NOT_CHAT = frozenset(
    {"dflash", "wavtokenizer-dec", "qwen3tts", "pockettts", "dream", "llada", "llada-moe", "rnd1"}
)
"""Architectures of llama.cpp that draft, speak or diffuse instead of writing token by token."""

_BLOCK = re.compile(r"blk\.(\d+)\.")


def model_kind(header: Header, tensors: tuple[TensorInfo, ...]) -> ModelKind:
    """The kind of the model that `header` (of the first part) and all its `tensors` describe."""
    declared = header.text("general.type")
    architecture = header.architecture
    if declared == "adapter" or "adapter.type" in header.metadata:
        return ModelKind.ADAPTER
    if declared == "mmproj" or architecture in {"clip", "mmproj"}:
        return ModelKind.MMPROJ
    has_vocabulary = bool(header.array_length("tokenizer.ggml.tokens"))
    if not tensors:
        return ModelKind.VOCABULARY if has_vocabulary else ModelKind.OTHER
    if architecture == "eagle3":
        return ModelKind.EAGLE3
    if architecture == "gemma4-assistant" or _only_mtp(header, tensors):
        return ModelKind.MTP
    if declared not in {None, "model"} or architecture in _NOT_CHAT:
        return ModelKind.OTHER
    # 0 is "no pooling"; 1 to 3 make one vector of a text, 4 ranks texts (enum llama_pooling_type).
    if architecture in _ENCODERS or (header.integer(f"{architecture}.pooling_type") or 0) > 0:
        return ModelKind.EMBEDDING
    has_embeddings = any(tensor.name.startswith("token_embd") for tensor in tensors)
    return ModelKind.CHAT if has_vocabulary and has_embeddings else ModelKind.OTHER


def mtp_layers(header: Header, tensors: Iterable[TensorInfo]) -> int:
    """How many MTP (NextN) layers the file really holds; 0 where the key is there but no weights.

    `nextn_predict_layers` is counted within `block_count`; upstream recognises the heads by their
    `nextn.eh_proj` tensor.
    """
    declared = header.integer(f"{header.architecture}.nextn_predict_layers") or 0
    if declared <= 0:
        return 0
    held = sum(".nextn.eh_proj.weight" in tensor.name for tensor in tensors)
    return min(declared, held)


def _only_mtp(header: Header, tensors: tuple[TensorInfo, ...]) -> bool:
    """True for a file exported with the MTP layers alone: no block of the trunk is in it."""
    layers = mtp_layers(header, tensors)
    blocks = header.integer(f"{header.architecture}.block_count") or 0
    if not layers:
        return False
    held = {int(match[1]) for tensor in tensors if (match := _BLOCK.match(tensor.name))}
    return bool(held) and min(held) >= blocks - layers
