"""What proposes tokens: the protocol every drafter follows, and the one that proposes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the pending one."""

    tokens: tuple[int, ...] = ()


class Drafter(Protocol):
    """Follows the target token by token and proposes what may come next.

    The session calls `begin` once per answer, `process` after every decode of the target (prefill
    chunks included), `draft` before and `accept` after every verification, `close` once.
    """

    def begin(self, cached: int) -> None:
        """A new answer starts; the first `cached` tokens of its prompt stay in the cache."""

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """The target has just evaluated these tokens at consecutive positions."""

    def draft(self, history: Sequence[int], limit: int) -> Draft:
        """At most `limit` tokens to follow `history`, whose last token is the pending one."""

    def accept(self, count: int) -> None:
        """The first `count` tokens of the latest draft were accepted, the rest was not."""

    def close(self) -> None:
        """Free what the drafter holds. Calling it twice is harmless."""


class NullDrafter:
    """Proposes nothing: plain decoding is speculation with empty drafts."""

    def begin(self, cached: int) -> None:
        """Nothing to prepare."""

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """Nothing to follow."""

    def draft(self, history: Sequence[int], limit: int) -> Draft:
        """The empty draft."""
        return Draft()

    def accept(self, count: int) -> None:
        """Nothing to learn."""

    def close(self) -> None:
        """Nothing to free."""
