"""Drafts from the text itself: what followed the same tokens when they occurred before."""

from __future__ import annotations

from collections.abc import Sequence

from slipstream.engine.speculation.drafter import Draft, Drafter, DrafterKind, DraftSettings
from slipstream.engine.speculation.guide import DraftGuide

SHORTEST_MATCH, LONGEST_MATCH = 3, 8
"""Lengths in tokens of the n-grams that are looked for, the longest first."""

_MOST_PLACES = 64  # the latest ones where the shortest match occurred; longer ones are looked for
_NOWHERE = -1
_Key = tuple[int, ...]


class NgramIndex:
    """Where the end of a growing token list occurred before.

    Appending and removing a token take constant time: one n-gram, the shortest that counts, is
    looked up, and each place remembers the one before it that followed the same.
    """

    def __init__(self, shortest: int = SHORTEST_MATCH, longest: int = LONGEST_MATCH) -> None:
        self.tokens: list[int] = []
        self._shortest, self._longest = shortest, longest
        self._latest: dict[_Key, int] = {}  # n-gram → where what followed it last begins
        self._before: list[int] = []  # for each token the place that was the latest until then

    def append(self, token: int) -> None:
        """Add a token; the n-gram before it is now followed by something."""
        position, before = len(self.tokens), _NOWHERE
        if position >= self._shortest:
            key = tuple(self.tokens[-self._shortest :])
            before = self._latest.get(key, _NOWHERE)
            self._latest[key] = position
        self._before.append(before)
        self.tokens.append(token)

    def truncate(self, length: int) -> None:
        """Forget the tokens from `length` on."""
        while len(self.tokens) > length:
            self.tokens.pop()
            before = self._before.pop()
            if len(self.tokens) >= self._shortest:
                key = tuple(self.tokens[-self._shortest :])
                if before == _NOWHERE:
                    del self._latest[key]
                else:
                    self._latest[key] = before

    def continuation(self, limit: int) -> tuple[tuple[int, ...], int]:
        """At most `limit` tokens that followed the longest match of the end of the list.

        Also the match's own length, 0 where there is none and nothing follows. Of several matches
        of one length the most recent counts. A match that reaches the end goes on with its own
        copy, as a repeating text does.
        """
        if len(self.tokens) < self._shortest:
            return (), 0
        place = self._latest.get(tuple(self.tokens[-self._shortest :]), _NOWHERE)
        start = longest = 0
        for _ in range(_MOST_PLACES):
            if place == _NOWHERE or longest == self._longest:
                break
            size = self._matched(place)
            if size > longest:
                start, longest = place, size
            place = self._before[place]
        if not longest:
            return (), 0
        copied = self.tokens[start : start + limit]
        period = len(self.tokens) - start
        while len(copied) < limit:
            copied.append(copied[len(copied) - period])
        return tuple(copied), longest

    def _matched(self, place: int) -> int:
        """How many tokens before this place equal those at the end."""
        tokens, end = self.tokens, len(self.tokens)
        size, most = self._shortest, min(self._longest, place)
        while size < most and tokens[place - 1 - size] == tokens[end - 1 - size]:
            size += 1
        return size


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
