"""What a model file is for, told from its metadata and the names of its tensors."""

from __future__ import annotations

import re
from enum import StrEnum

from slipstream.engine.gguf import Header


class FileRole(StrEnum):
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
    def words(self) -> str:
        """The role as a noun phrase with its article."""
        return _WORDS[self]


_WORDS = {
    FileRole.CHAT: "a chat model",
    FileRole.EAGLE3: "an EAGLE-3 head",
    FileRole.MTP: "a set of MTP heads",
    FileRole.MMPROJ: "a projector for images or sound",
    FileRole.ADAPTER: "a LoRA adapter",
    FileRole.EMBEDDING: "an embedding model",
    FileRole.VOCABULARY: "a vocabulary without a model",
    FileRole.OTHER: "a model that does not write token by token",
}

GEMMA_ASSISTANT = "gemma4-assistant"
"""The architecture of Gemma 4's separate MTP heads."""

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

_NOT_CAUSAL = frozenset(
    {"dflash", "wavtokenizer-dec", "qwen3tts", "pockettts", "dream", "llada", "llada-moe", "rnd1"}
)
"""Architectures of llama.cpp that draft, speak or diffuse."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
_MTP_PROBE = re.compile(r"blk\.(\d+)\.nextn\.eh_proj\.weight")


def file_role(header: Header) -> FileRole:
    """The role of the model whose parts' tensors `header` holds (`ModelParts.whole`)."""
    declared = header.text("general.type")
    architecture = header.architecture
    if declared == "adapter" or "adapter.type" in header.metadata:
        return FileRole.ADAPTER
    if declared == "mmproj" or architecture in {"clip", "mmproj"}:
        return FileRole.MMPROJ
    has_vocabulary = bool(header.array_length("tokenizer.ggml.tokens"))
    if not header.tensors:
        return FileRole.VOCABULARY if has_vocabulary else FileRole.OTHER
    if architecture == "eagle3":
        return FileRole.EAGLE3
    if architecture == GEMMA_ASSISTANT or _has_no_trunk(header):
        return FileRole.MTP
    if declared not in {None, "model"} or architecture in _NOT_CAUSAL:
        return FileRole.OTHER
    # 0 is "no pooling"; 1 to 3 make one vector of a text, 4 ranks texts (enum llama_pooling_type).
    if architecture in _ENCODERS or (header.integer(f"{architecture}.pooling_type") or 0) > 0:
        return FileRole.EMBEDDING
    has_embeddings = any(tensor.name.startswith("token_embd") for tensor in header.tensors)
    return FileRole.CHAT if has_vocabulary and has_embeddings else FileRole.OTHER


def held_mtp_layers(header: Header) -> int:
    """How many of the MTP (NextN) layers that the file declares are there; all parts' tensors.

    They are the last `nextn_predict_layers` of `block_count`; llama.cpp recognises one by its
    `nextn.eh_proj` (`mtp_probe` in src/models).
    """
    first, end = _mtp_blocks(header)
    blocks = [match[1] for one in header.tensors if (match := _MTP_PROBE.fullmatch(one.name))]
    return sum(first <= int(block) < end for block in blocks)


def _mtp_blocks(header: Header) -> tuple[int, int]:
    """The first block that is an MTP layer, and the end; equal where there is none."""
    architecture = header.architecture
    end = header.integer(f"{architecture}.block_count") or 0
    declared = header.integer(f"{architecture}.nextn_predict_layers") or 0
    return end - max(0, declared), end


def _has_no_trunk(header: Header) -> bool:
    """True for a file exported with the MTP layers alone: no block of the trunk is in it."""
    if not held_mtp_layers(header):
        return False
    first, _ = _mtp_blocks(header)
    blocks = [match[1] for one in header.tensors if (match := _BLOCK.match(one.name))]
    return min(map(int, blocks)) >= first
