"""The token list that mirrors a KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from slipstream.engine.llama import ContextState


def shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens two lists share."""
    limit = min(len(one), len(other))
    for index in range(limit):
        if one[index] != other[index]:
            return index
    return limit


class CacheMemory(Protocol):
    """What a token cache needs of a context."""

    def trim(self, length: int) -> bool:
        """Forget all positions from `length` on; False if that is impossible."""

    def can_trim(self, length: int) -> bool:
        """Whether `trim` is possible."""

    def clear(self) -> None:
        """Forget everything."""

    def length(self) -> int:
        """How many positions are held."""

    def restore(self, state: ContextState) -> bool:
        """Hold what was saved and nothing else; False, and then nothing, if that fails."""


class TokenCache:
    """Knows which token stands at each position of a context's KV cache.

    Invariant between rounds: `len(tokens) == memory.length()`, and the pending token (sampled,
    not yet evaluated) is never in it.
    """

    def __init__(self, memory: CacheMemory) -> None:
        self._memory = memory
        self.tokens: list[int] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def common_prefix(self, tokens: Sequence[int]) -> int:
        """How many leading tokens the cache shares with these."""
        return shared_prefix(self.tokens, tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Note tokens that were just evaluated."""
        self.tokens.extend(tokens)

    def trim(self, length: int) -> int:
        """Keep at most the first `length` tokens; returns how many were kept.

        Memory that cannot forget a part (recurrent models) is cleared instead: 0 are kept.
        """
        if length >= len(self.tokens) == self._memory.length():
            return len(self.tokens)
        if length <= 0 or not self._memory.trim(length):
            self.clear()
            return 0
        del self.tokens[length:]
        return len(self.tokens)

    def kept_of(self, tokens: Sequence[int]) -> int:
        """How many of these tokens the cache would keep, were it trimmed to go on with them.

        The last one is never kept: it is evaluated for its logits.
        """
        shared = min(self.common_prefix(tokens), len(tokens) - 1)
        return shared if self._memory.can_trim(shared) else 0

    def clear(self) -> None:
        """Forget everything."""
        self._memory.clear()
        self.tokens.clear()

    def restore(self, tokens: Sequence[int], state: ContextState) -> bool:
        """Hold these tokens, whose state was saved; False, and then nothing, if that fails."""
        self.tokens.clear()
        if not self._memory.restore(state) or self._memory.length() != len(tokens):
            self.clear()
            return False
        self.tokens.extend(tokens)
        return True

    def recover(self) -> None:
        """After a decode that failed midway: keep what both sides agree was evaluated."""
        self.trim(min(len(self.tokens), self._memory.length()))
