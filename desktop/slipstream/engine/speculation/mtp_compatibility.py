"""Whether MTP heads fit a target, told from both headers.

Knows nothing of running models.
"""

from __future__ import annotations

from slipstream.engine.file_role import GEMMA_ASSISTANT, FileRole, file_role, held_mtp_layers
from slipstream.engine.gguf import Header
from slipstream.engine.speculation.hyperparameters import (
    architecture_name,
    shown,
    state_size,
    tensor_shape,
)

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

CHAINED = frozenset({"hy_v3", "mimo2", "step35"})
"""Those that take several heads; the graphs of the others assert that there is one."""


def mtp_obstacle(head: Header, target: Header) -> str | None:
    """Why these MTP heads cannot draft for this target; None where they can.

    Both are the same header where the heads are built into the target. Source: llama.cpp,
    `common_speculative_impl_draft_mtp` in common/speculative.cpp.
    """
    is_assistant = head.architecture == GEMMA_ASSISTANT
    if not is_assistant and head.architecture not in MTP_GRAPHS:
        named = architecture_name(head)
        return f"This version cannot run MTP heads of the architecture {named}."
    made_for = "gemma4" if is_assistant else head.architecture
    if made_for != target.architecture:
        return (
            f"The heads are made for the architecture {made_for}, "
            f"and the target has {architecture_name(target)}."
        )
    if is_assistant:
        return "Heads that share the memory of their target cannot be used yet."
    return _count_obstacle(head) or _width_obstacle(head, target)


def builtin_mtp(target: Header) -> int:
    """How many MTP heads built into a chat model can draft for it; 0 for other files.

    The header is one of all parts (`ModelParts.whole`).
    """
    if file_role(target) is not FileRole.CHAT or mtp_obstacle(target, target) is not None:
        return 0
    return held_mtp_layers(target)


def _count_obstacle(head: Header) -> str | None:
    declared = head.integer(f"{head.architecture}.nextn_predict_layers") or 0
    held = held_mtp_layers(head)
    if held == 0:
        return "The file holds no MTP layer."
    if declared != held:
        return f"The file declares {declared:,} MTP layers and holds {held}."
    if declared > 1 and head.architecture not in CHAINED:
        return f"llama.cpp runs one MTP layer of this architecture, and the file has {declared}."
    return None


def _width_obstacle(head: Header, target: Header) -> str | None:
    if tensor_shape(head, "token_embd.weight") is None:
        return "The heads come without token embeddings."
    ours, theirs = state_size(target), state_size(head)
    if ours is None or ours != theirs:
        return (
            f"The heads read hidden states of width {shown(theirs)}, "
            f"and the target's have {shown(ours)}."
        )
    return None
