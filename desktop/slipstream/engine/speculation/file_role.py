"""Whether a file can draft, told from its metadata and tensor names.

The words for people about any file are `library.model_kind`'s, which the engine cannot know.
"""

from __future__ import annotations

import re

from slipstream.engine.gguf import Header
from slipstream.engine.speculation.drafter import DrafterKind

ROLES = {
    "chat": "a chat model",
    "eagle3": "an EAGLE-3 head",
    "mtp": "a set of MTP heads",
    "mmproj": "a projector for images or sound",
    "adapter": "a LoRA adapter",
    "embedding": "an embedding model",
    "vocabulary": "a vocabulary without a model",
    "other": "a model that does not write token by token",
}
"""The roles a file can have, each as a noun phrase."""

ENCODERS = frozenset(
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

NOT_CAUSAL = frozenset(
    {"dflash", "wavtokenizer-dec", "qwen3tts", "pockettts", "dream", "llada", "llada-moe", "rnd1"}
)
"""Architectures of llama.cpp that draft, speak or diffuse."""

MTP_GRAPHS = frozenset(
    {
        "bailingmoe3",
        "cohere2moe",
        "deepseek2",
        "deepseek32",
        "deepseek4",
        "glm-dsa",
        "glm4moe",
        "hy_v3",
        "mimo2",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "step35",
    }
)
"""Architectures whose MTP heads llama.cpp can run (`graph_mtp` in src/models; glm5-next throws)."""

GEMMA_ASSISTANT = "gemma4-assistant"
"""The architecture of Gemma 4's separate MTP heads."""

_DRAFTERS = {
    "chat": DrafterKind.DRAFT_MODEL,
    "eagle3": DrafterKind.EAGLE3,
    "mtp": DrafterKind.MTP,
}
_BLOCK = re.compile(r"blk\.(\d+)\.")


def draft_kind(header: Header) -> DrafterKind | None:
    """How the file would draft; None for one that cannot, such as an adapter."""
    return _DRAFTERS.get(file_role(header))


def file_role(header: Header) -> str:
    """One of `ROLES`, from a header that holds the tensors of all the model's parts."""
    declared = header.text("general.type")
    architecture = header.architecture
    if declared == "adapter" or "adapter.type" in header.metadata:
        return "adapter"
    if declared == "mmproj" or architecture in {"clip", "mmproj"}:
        return "mmproj"
    has_vocabulary = bool(header.array_length("tokenizer.ggml.tokens"))
    if not header.tensors:
        return "vocabulary" if has_vocabulary else "other"
    if architecture == "eagle3":
        return "eagle3"
    if architecture == GEMMA_ASSISTANT or _has_no_trunk(header):
        return "mtp"
    if declared not in {None, "model"} or architecture in NOT_CAUSAL:
        return "other"
    # 0 is "no pooling"; 1 to 3 make one vector of a text, 4 ranks texts (enum llama_pooling_type).
    if architecture in ENCODERS or (header.integer(f"{architecture}.pooling_type") or 0) > 0:
        return "embedding"
    has_embeddings = any(tensor.name.startswith("token_embd") for tensor in header.tensors)
    return "chat" if has_vocabulary and has_embeddings else "other"


def builtin_mtp(target: Header) -> int:
    """How many MTP heads built into a chat model llama.cpp can draft with; 0 for other files."""
    usable = target.architecture in MTP_GRAPHS and file_role(target) == "chat"
    return held_mtp_layers(target) if usable else 0


def held_mtp_layers(header: Header) -> int:
    """The MTP layers whose weights are really there.

    `nextn_predict_layers` is counted within `block_count`; upstream recognises the heads by their
    `nextn.eh_proj` tensor.
    """
    declared = header.integer(f"{header.architecture}.nextn_predict_layers") or 0
    held = sum(".nextn.eh_proj.weight" in tensor.name for tensor in header.tensors)
    return max(0, min(declared, held))


def _has_no_trunk(header: Header) -> bool:
    layers = held_mtp_layers(header)
    if not layers:
        return False
    blocks = header.integer(f"{header.architecture}.block_count") or 0
    held = {int(match[1]) for tensor in header.tensors if (match := _BLOCK.match(tensor.name))}
    return bool(held) and min(held) >= blocks - layers
