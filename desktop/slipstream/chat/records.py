"""What a conversation consists of: frozen records that cross every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """Who a message is from, in the words chat templates use."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"  # a stop string was found
    EOG = "eog"  # the model sampled an end-of-generation token
    LENGTH = "length"  # max_tokens was reached
    CONTEXT = "context"  # the context window is full
    CANCELLED = "cancelled"  # the user pressed Stop
    ERROR = "error"  # the engine failed midway


@dataclass(frozen=True, slots=True)
class GenerationStatistics:
    """The numbers of one answer. Seconds from a monotonic clock, tokens counted by id.

    `decode_seconds` runs from the first to the last generated token, so a rate needs two tokens;
    rates are None where there is nothing to divide.
    """

    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0  # already in the KV cache, not evaluated again
    generated_tokens: int = 0  # every sampled id, a final end-of-generation id included
    context_tokens: int = 0  # in the KV cache when the answer ended
    prefill_seconds: float = 0.0
    time_to_first_token_seconds: float | None = None
    decode_seconds: float = 0.0
    reasoning_seconds: float = 0.0
    reasoning_tokens: int = 0
    evaluated_prompt_tokens: int | None = None  # in `prefill_seconds`; None: all but the cached

    @property
    def prefill_tokens_per_second(self) -> float | None:
        """Evaluated prompt tokens per second of prefill; None when nothing was evaluated."""
        evaluated = self.evaluated_prompt_tokens
        if evaluated is None:
            evaluated = self.prompt_tokens - self.cached_prompt_tokens
        if evaluated <= 0 or self.prefill_seconds <= 0:
            return None
        return evaluated / self.prefill_seconds

    @property
    def decode_tokens_per_second(self) -> float | None:
        """Generated tokens after the first, per second between the first and the last."""
        if self.generated_tokens < 2 or self.decode_seconds <= 0:
            return None
        return (self.generated_tokens - 1) / self.decode_seconds


@dataclass(frozen=True, slots=True)
class SpeculationStatistics:
    """What drafting did for one answer, by llama.cpp's definitions.

    A round is a target pass with at least one drafted token; passes without are plain. Of the
    `drafted` tokens `verified` were submitted to the target, and of those `accepted` stand.
    `accepted_at[i]` counts the rounds in which the token at position i of the draft was accepted.
    """

    rounds: int = 0
    plain_passes: int = 0
    drafted: int = 0
    verified: int = 0
    accepted: int = 0
    accepted_at: tuple[int, ...] = ()
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0  # target passes after the prefill, plain ones included
    sample_seconds: float = 0.0
    by_drafter: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rounds, drafted, verified and accepted of each way to draft, where several took part."""

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of verified tokens; None where nothing was verified."""
        return self.accepted / self.verified if self.verified else None

    @property
    def mean_accepted_length(self) -> float | None:
        """Tokens per round, the target's own included: 1 + accepted / rounds."""
        return 1 + self.accepted / self.rounds if self.rounds else None

    @property
    def acceptance_by_position(self) -> tuple[float, ...]:
        """For each position of a draft, the share of rounds in which it was accepted."""
        return tuple(count / self.rounds for count in self.accepted_at) if self.rounds else ()


Spans = tuple[tuple[int, int], ...]
"""Stretches of a text, each from its first character to the one after its last, in order."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """How an answer came to be: enough to read its numbers and to ask for it again."""

    model_name: str
    model_path: str
    finish_reason: FinishReason
    seed: int
    statistics: GenerationStatistics
    stop_string: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)  # SamplerSettings by field name
    drafter: str = "none"  # the way of drafting, in the command line's words
    draft_path: str = ""
    verify: str = "compare"  # the rule in force; what "reject" wrote, no seed brings back
    speculation: SpeculationStatistics = field(default_factory=SpeculationStatistics)
    accepted_text: Spans = ()  # what of the message's text came from accepted draft tokens
    accepted_reasoning: Spans = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `reasoning` and `answer` are an assistant's only; times are aware UTC."""

    id: str
    role: Role
    text: str
    created_at: datetime
    reasoning: str = ""
    answer: AnswerRecord | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation with its turns in order; the system prompt stands apart from the turns."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    system_prompt: str = ""
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A chat as the sidebar lists it."""

    id: str
    title: str
    updated_at: datetime
