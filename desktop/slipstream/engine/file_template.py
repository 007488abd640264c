"""The chat template of a model file, found without loading the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slipstream.chat.records import Message, Role
from slipstream.engine.chat_template import ChatTemplate, Turn, choose_template
from slipstream.engine.gguf import read_header, read_strings
from slipstream.engine.speculation.vocabulary import vocabulary_traits

TEMPLATE_KEY = "tokenizer.chat_template"


def turns_of(messages: Sequence[Message], system_prompt: str) -> tuple[Turn, ...]:
    """A conversation as a template sees it, the system prompt (if any) first."""
    system = (Turn(Role.SYSTEM, system_prompt),) if system_prompt.strip() else ()
    return (*system, *(Turn(m.role, m.text, m.reasoning) for m in messages))


def template_of_file(path: Path, override: str | None, override_name: str) -> ChatTemplate:
    """The template a model file would be used with.

    Raises `ModelFileError` for an unusable file, `TemplateError` for an unusable override.
    """
    header = read_header(path)
    metadata = header.metadata
    tokens = read_strings(path, "tokenizer.ggml.tokens")
    known = frozenset(tokens)
    traits = vocabulary_traits(header)

    def text_of(token: int | None) -> str:
        return tokens[token] if token is not None and 0 <= token < len(tokens) else ""

    embedded = metadata.get(TEMPLATE_KEY)
    return choose_template(
        embedded if isinstance(embedded, str) else None,
        override,
        override_name=override_name,
        bos_token=text_of(traits.bos),
        eos_token=text_of(traits.eos),
        architecture=str(metadata.get("general.architecture", "")),
        has_token=known.__contains__,
    )
