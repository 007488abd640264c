"""What proposes tokens: the interface every drafter follows, and the one that proposes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from slipstream.errors import UsageError

if TYPE_CHECKING:
    from slipstream.engine.speculation.guide import DraftGuide


class DrafterKind(StrEnum):
    """The ways to draft, in the words of the command line."""

    NONE = "none"
    DRAFT_MODEL = "draft-model"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    PROMPT_LOOKUP = "prompt-lookup"


@dataclass(frozen=True, slots=True)
class DraftSettings:
    """How much to draft. Raises `UsageError` naming the setting for a bad value.

    Drafting stops at `n_draft_max` tokens, or before a token the drafter gives a probability
    below `p_min` (over its ten likeliest, as llama.cpp does); drafts shorter than `n_draft_min`
    are not verified at all.
    """

    n_draft_max: int = 4
    n_draft_min: int = 0
    p_min: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.n_draft_max <= MAX_DRAFT:
            raise UsageError(
                f"The longest draft cannot be {self.n_draft_max} tokens.",
                f"draft-max must lie between 1 and {MAX_DRAFT}.",
                "Choose a value in that range.",
            )
        if not 0 <= self.n_draft_min <= self.n_draft_max:
            raise UsageError(
                f"The shortest draft cannot be {self.n_draft_min} tokens.",
                f"draft-min must lie between 0 and draft-max, {self.n_draft_max}.",
                "Choose a value in that range.",
            )
        if not 0.0 <= self.p_min <= 1.0:
            raise UsageError(
                f"The least draft probability cannot be {self.p_min:g}.",
                "p-min must lie between 0 and 1.",
                "Choose a value in that range.",
            )


LONGEST_PACED = 16
"""The longest draft under the auto pace where nobody chose another."""

MAX_DRAFT = 32
"""The longest draft; a batch to verify is one token longer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the pending one, and who proposed them.

    `kind` is None where that is the drafter itself, and another where it asked somebody else.
    `confidences` has for each token how sure the drafter is of it, from 0 to 1. `cut` more were
    drafted behind them and are not worth verifying.
    """

    tokens: tuple[int, ...] = ()
    kind: DrafterKind | None = None
    confidences: tuple[float, ...] = ()
    cut: int = 0


@dataclass(frozen=True, slots=True)
class TargetPass:
    """What a target pass after the prefill cost and brought.

    It evaluated `rows` tokens in `seconds`: the pending one and `rows - 1` drafted ones, of which
    `accepted` stand. `tokens` were emitted; sampling them took `sample_seconds`.
    """

    rows: int
    seconds: float
    sample_seconds: float
    accepted: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PaceStatus:
    """What a drafter that paces itself does now.

    `depth` tokens were drafted last. `gain` is how many times as fast recent rounds were as plain
    ones, `predicted_gain` what drafting is expected to give; `plain_age_seconds` is how long ago
    a plain round was measured last. None where nothing was measured yet.
    """

    depth: int
    gain: float | None
    predicted_gain: float | None
    plain_age_seconds: float | None


class DrafterState:
    """What a drafter has followed, saved; only the drafter that made it can read it."""

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return 0


class Drafter:
    """Follows the target token by token and proposes what may come next; by itself nothing.

    The session calls `begin` once per answer,
    `process` after every decode of the target (prefill chunks included), `draft` before, and
    `accept` and `observe` after every verification, `close` once. Any of them may raise
    `UserError`: the session then goes on without the drafter.
    """

    @property
    def kind(self) -> DrafterKind:
        """The way it drafts."""
        return DrafterKind.NONE

    def behind(self, length: int) -> int:
        """How many of a conversation's `length` tokens must be evaluated before it can draft."""
        return 0

    def status(self) -> PaceStatus | None:
        """How it paces itself; None for one that always drafts as far as it may."""
        return None

    def configure(self, settings: DraftSettings) -> None:
        """Draft by these settings from the next draft on; nothing is loaded anew."""

    def begin(self, cached: int, unchanged: int) -> int:
        """A new answer starts, and the target's cache holds the first `cached` prompt tokens.

        Of what the drafter has followed only the first `unchanged` tokens still stand: at most
        `cached`, and fewer where the target has gone on without it since. Forgets everything
        further on and returns how many of the cached tokens need not be seen again; the target
        evaluates the rest once more, so that `process` sees it.
        """
        return cached

    @property
    def needs_all_tokens(self) -> bool:
        """Whether the target must evaluate in its sight whatever it has not followed."""
        return False

    def save(self, most_bytes: int) -> DrafterState | None:
        """What `restore` needs to come back to this point; None: nothing, or more than that.

        Called between answers. A drafter may well save nothing: it then catches up by itself, or
        (`needs_all_tokens`) has the target do so.
        """
        return None

    def restore(self, state: DrafterState) -> None:
        """Between answers: have followed what it had when it saved this, and nothing else.

        Where that fails it has followed nothing. `begin` comes before anything is drafted.
        """

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """The target has just evaluated these tokens at consecutive positions."""

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        """At most `limit` (1 or more) tokens to follow `history`, whose last one is pending.

        Everything in `history` but the pending token has gone through `process`.
        """
        return Draft()

    def accept(self, count: int) -> None:
        """The first `count` tokens of the latest draft stand, the rest is forgotten.

        Called after every verification, with 0 also where nothing was drafted.
        """

    def observe(self, target_pass: TargetPass) -> None:
        """What the latest target pass cost and brought; not called for prefill chunks."""

    def close(self) -> None:
        """Free what the drafter holds. Calling it twice is harmless."""


class NullDrafter(Drafter):
    """Proposes nothing: plain decoding is speculation with empty drafts."""
