"""Drafts from the text itself: what followed the same tokens when they occurred before."""

from __future__ import annotations

from collections.abc import Sequence

from slipstream.engine.speculation.drafter import Draft, Drafter, DrafterKind, DraftSettings
from slipstream.engine.speculation.guide import DraftGuide

SHORTEST_MATCH, LONGEST_MATCH = 3, 8
"""Lengths in tokens of the n-grams that are looked for, the longest first."""

_Key = tuple[int, ...]


class NgramIndex:
    """Where each n-gram of a growing token list was last followed by something.

    Appending and removing a token take constant time: each remembers what it replaced.
    """

    def __init__(self, shortest: int = SHORTEST_MATCH, longest: int = LONGEST_MATCH) -> None:
        self.tokens: list[int] = []
        self._sizes = range(longest, shortest - 1, -1)
        self._next: dict[_Key, int] = {}  # n-gram → where what followed it begins
        self._replaced: list[list[tuple[_Key, int | None]]] = []  # one entry per token

    def append(self, token: int) -> None:
        """Add a token; the n-grams before it are now followed by something."""
        position = len(self.tokens)
        replaced: list[tuple[_Key, int | None]] = []
        for size in self._sizes:
            if size <= position:
                key = tuple(self.tokens[position - size :])
                replaced.append((key, self._next.get(key)))
                self._next[key] = position
        self._replaced.append(replaced)
        self.tokens.append(token)

    def truncate(self, length: int) -> None:
        """Forget the tokens from `length` on."""
        while len(self.tokens) > length:
            self.tokens.pop()
            for key, before in self._replaced.pop():
                if before is None:
                    del self._next[key]
                else:
                    self._next[key] = before

    def continuation(self, limit: int) -> tuple[tuple[int, ...], int]:
        """At most `limit` tokens that followed the longest match of the end of the list.

        Also the match's own length, 0 where there is none and nothing follows. Of several matches
        of one length the most recent counts. A match that reaches the end goes on with its own
        copy, as a repeating text does.
        """
        for size in self._sizes:
            if size > len(self.tokens):
                continue
            start = self._next.get(tuple(self.tokens[-size:]))
            if start is not None:
                copied = self.tokens[start : start + limit]
                period = len(self.tokens) - start
                while len(copied) < limit:
                    copied.append(copied[len(copied) - period])
                return tuple(copied), size
        return (), 0


class PromptLookupDrafter(Drafter):
    """Works for every target and needs no file; its index follows the conversation."""

    def __init__(self, settings: DraftSettings | None = None) -> None:
        self._settings = settings or DraftSettings()
        self._index = NgramIndex()

    @property
    def kind(self) -> DrafterKind:
        """Prompt lookup."""
        return DrafterKind.PROMPT_LOOKUP

    def configure(self, settings: DraftSettings) -> None:
        """Take other settings."""
        self._settings = settings

    def begin(self, cached: int, unchanged: int) -> int:
        """Forget what does not stand any more; what is missing comes with the history."""
        self._index.truncate(unchanged)
        return cached

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        """What followed the end of the history before."""
        for token in history[len(self._index.tokens) :]:
            self._index.append(token)
        tokens, size = self._index.continuation(min(limit, self._settings.n_draft_max))
        if len(tokens) < self._settings.n_draft_min:
            return Draft()
        return Draft(tokens, self.kind, (size / (LONGEST_MATCH + 1),) * len(tokens))
