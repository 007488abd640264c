"""What a generation session tells its consumer, one event per prefill chunk and per round."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from slipstream.chat.records import FinishReason, GenerationStatistics, SpeculationStatistics
from slipstream.engine.speculation.drafter import DrafterKind, PaceStatus
from slipstream.engine.speculation.verify_rule import VerifyRule
from slipstream.errors import UserError


class TextKind(StrEnum):
    """Which part of an answer a piece of text belongs to."""

    ANSWER = "answer"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A run of text of one kind; never empty, always whole characters.

    `accepted`: all of it came from drafted tokens the target accepted. A character spelled by
    several tokens counts as the last one's.
    """

    kind: TextKind
    text: str
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """A chunk of the prompt was evaluated: `done` of `total` tokens, `cached` of them for free."""

    done: int
    total: int
    cached: int
    seconds: float
    tokens_per_second: float | None


@dataclass(frozen=True, slots=True)
class TextRun:
    """One decoding round: the ids it emitted and the text that became safe to show.

    `pieces` may be empty (a character or a stop string is still incomplete). `accepted_flags` has
    one boolean per id: True where the id came from the drafter. `tokens_per_second` covers the
    answer so far, `current_tokens_per_second` about the last second; None before two tokens.
    """

    token_ids: tuple[int, ...]
    accepted_flags: tuple[bool, ...]
    drafted: int
    pieces: tuple[TextPiece, ...]
    generated_tokens: int
    context_tokens: int
    seconds: float
    tokens_per_second: float | None
    current_tokens_per_second: float | None
    time_to_first_token_seconds: float | None = None
    speculation: SpeculationStatistics = field(default_factory=SpeculationStatistics)
    pace: PaceStatus | None = None  # of a drafter that paces itself


@dataclass(frozen=True, slots=True)
class DraftingStopped:
    """The drafter failed and is closed; the answer goes on without it."""

    error: UserError


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer ended. `pieces` was held back and is now known to be safe."""

    reason: FinishReason
    seed: int
    statistics: GenerationStatistics
    pieces: tuple[TextPiece, ...] = ()
    stop_string: str = ""
    error: UserError | None = None  # what failed, where the reason is "error"
    drafter: DrafterKind = DrafterKind.NONE  # who drafted when the answer began
    verify: VerifyRule = VerifyRule.COMPARE  # the rule in force
    verify_note: str = ""  # why it is not the one that was asked for
    speculation: SpeculationStatistics = field(default_factory=SpeculationStatistics)
    pace: PaceStatus | None = None


Event = PrefillProgress | TextRun | DraftingStopped | Finished
