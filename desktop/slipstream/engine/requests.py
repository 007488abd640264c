"""What can be asked of a target model. Plain values; importable without llama.cpp or Jinja."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from slipstream.chat.records import Message, SpeculationStatistics
from slipstream.engine.cache_type import CacheType
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings
from slipstream.engine.speculation.verify_rule import VerifyRule

if TYPE_CHECKING:
    from slipstream.engine.template_variables import TemplateVariable


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Which model to load and how. Sizes in tokens; 0 and None let the app choose.

    Threads and attention are then what measures best on this machine.
    """

    path: Path
    n_ctx: int = 0
    n_batch: int = 0
    n_threads: int = 0  # for one token at a time
    n_threads_batch: int = 0  # for several at once; 0: as many as for one, if that was chosen
    flash_attention: bool | None = None
    chat_template: str | None = None  # Jinja source, or a built-in's name, in place of the file's
    chat_template_name: str = "the chosen template"


class Pace(StrEnum):
    """How far a drafter drafts."""

    AUTO = "auto"  # as far as it pays, by what passes and drafts cost on this machine
    FIXED = "fixed"  # always up to the longest draft


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """How to draft. A `path` without a `kind` means the kind recognised from the file.

    Neither kind nor path: the app chooses, built-in MTP heads before prompt lookup alone.
    `looks_up`: under the auto pace the text itself is asked first, and only then the drafter.
    """

    kind: DrafterKind | None = DrafterKind.NONE
    path: Path | None = None
    settings: DraftSettings = field(default_factory=DraftSettings)
    n_threads: int = 0
    n_gpu_layers: int | None = None  # of a draft file; None lets llama.cpp choose
    cache_type: CacheType = CacheType.F16  # of a draft model's own KV cache
    pace: Pace = Pace.AUTO
    looks_up: bool = False


@dataclass(frozen=True, slots=True)
class DraftFacts:
    """How the target drafts now; `path` is None for what needs no file."""

    kind: DrafterKind
    path: Path | None = None
    looks_up: bool = False  # whether the text itself is asked first


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
    verify: VerifyRule = VerifyRule.AUTO


@dataclass(frozen=True, slots=True)
class LosslessnessRequest:
    """Answer this conversation with the draft and without, at most `max_tokens` each time."""

    answer: AnswerRequest
    max_tokens: int


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """A way to draft as it was measured: its `key` is a kind that needs no file, or a path.

    `gain` is how many times as fast it was as plain decoding; None where it could not be used,
    and then `obstacle` tells why.
    """

    key: str
    gain: float | None
    tokens_per_second: float
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may come next, with the target's probability for it, from 0 to 1."""

    token: int
    text: str
    probability: float


ROUNDING = 0.02
"""Up to which difference in probability the order of two candidates is a matter of rounding."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two answers to one prompt part: after `position` tokens they share."""

    position: int
    with_draft: Candidate
    without_draft: Candidate

    @property
    def is_rounding(self) -> bool:
        """Whether the target finds both so equally likely that rounding decides between them.

        Passes over one token and over several add the same numbers up in another order.
        """
        difference = self.with_draft.probability - self.without_draft.probability
        return abs(difference) <= ROUNDING


@dataclass(frozen=True, slots=True)
class LosslessnessReport:
    """One prompt answered at temperature 0 with the draft and without; tokens per second each."""

    with_draft: tuple[int, ...]
    without_draft: tuple[int, ...]
    speculation: SpeculationStatistics
    with_draft_rate: float | None
    without_draft_rate: float | None
    divergence: Divergence | None

    @property
    def is_identical(self) -> bool:
        """Whether the two answers are the same, token by token."""
        return self.with_draft == self.without_draft


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """A loaded target as it really runs."""

    path: Path
    n_ctx: int
    n_ctx_train: int
    n_batch: int
    n_threads: int  # for one token at a time
    n_threads_batch: int  # for several at once
    flash_attention: bool
    template_name: str
    template_variables: tuple[TemplateVariable, ...]
    notes: tuple[str, ...]  # what the person should know, e.g. a fallback template
    has_mtp: bool = False  # whether it has heads of its own to draft with
