"""What can be asked of a target model. Plain values; importable without llama.cpp or Jinja."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slipstream.chat.records import Message
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings

if TYPE_CHECKING:
    from slipstream.engine.template_variables import TemplateVariable


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Which model to load and how. Sizes in tokens; 0 and None let the app choose."""

    path: Path
    n_ctx: int = 0
    n_batch: int = 0
    n_threads: int = 0
    chat_template: str | None = None  # Jinja source, or a built-in's name, in place of the file's
    chat_template_name: str = "the chosen template"


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """How to draft. A `path` without a `kind` means the kind recognised from the file.

    Neither kind nor path: the app chooses, built-in MTP heads before prompt lookup.
    """

    kind: DrafterKind | None = DrafterKind.NONE
    path: Path | None = None
    settings: DraftSettings = field(default_factory=DraftSettings)
    n_threads: int = 0


@dataclass(frozen=True, slots=True)
class DraftFacts:
    """How the target drafts now; `path` is None for what needs no file."""

    kind: DrafterKind
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class DraftJudgement:
    """Whether a file can draft for the loaded target, and what it is or why not, in words."""

    path: Path
    compatible: bool
    words: str


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """The conversation to answer; its last message is the user's."""

    messages: tuple[Message, ...]
    system_prompt: str = ""
    settings: SamplerSettings = field(default_factory=SamplerSettings)
    template_variables: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """A loaded target as it really runs."""

    path: Path
    n_ctx: int
    n_ctx_train: int
    n_batch: int
    n_threads: int
    template_name: str
    template_variables: tuple[TemplateVariable, ...]
    notes: tuple[str, ...]  # what the person should know, e.g. a fallback template
    has_mtp: bool = False  # whether it has heads of its own to draft with
