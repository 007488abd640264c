"""What a model file is for, in words for people."""

from __future__ import annotations

from enum import StrEnum

from slipstream.engine.file_role import FileRole, file_role
from slipstream.engine.gguf import Header


class ModelKind(StrEnum):
    """The engine's roles of files; only CHAT answers on its own."""

    CHAT = FileRole.CHAT.value
    EAGLE3 = FileRole.EAGLE3.value
    MTP = FileRole.MTP.value
    MMPROJ = FileRole.MMPROJ.value
    ADAPTER = FileRole.ADAPTER.value
    EMBEDDING = FileRole.EMBEDDING.value
    VOCABULARY = FileRole.VOCABULARY.value
    OTHER = FileRole.OTHER.value

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


def model_kind(header: Header) -> ModelKind:
    """The kind of the model whose parts' tensors `header` holds (`ModelParts.whole`)."""
    return ModelKind(file_role(header).value)
