"""The token list that mirrors a KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CacheMemory(Protocol):
    """What a token cache needs of a context."""

    def trim(self, length: int) -> bool:
        """Forget all positions from `length` on; False if that is impossible."""

    def clear(self) -> None:
        """Forget everything."""

    def length(self) -> int:
        """How many positions are held."""


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
        limit = min(len(self.tokens), len(tokens))
        for index in range(limit):
            if self.tokens[index] != tokens[index]:
                return index
        return limit

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
            self._memory.clear()
            self.tokens.clear()
            return 0
        del self.tokens[length:]
        return len(self.tokens)

    def recover(self) -> None:
        """After a decode that failed midway: keep what both sides agree was evaluated."""
        self.trim(min(len(self.tokens), self._memory.length()))
