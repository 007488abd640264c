"""States of a context kept in memory, so that going back to a chat does not evaluate it again.

Decides what is saved, restored and dropped; knows nothing of what the tokens mean, so that a chat
is whatever shares its beginning. llama.cpp's server does the same with `--cache-ram`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import psutil  # type: ignore[import-untyped]

from slipstream.engine.cache import CacheMemory, TokenCache, shared_prefix
from slipstream.engine.llama import ContextState
from slipstream.engine.speculation.drafter import Drafter, DrafterState

log = logging.getLogger(__name__)

_T = TypeVar("_T")

MAX_BYTES = 1 << 30
MEMORY_SHARE = 0.1
"""Of the memory that is free or taken by the states themselves, the most they may take."""

MAX_ENTRIES = 4
LEAST_GAIN = 64
"""Tokens below which neither saving nor restoring is worth a thought."""

SAME_CHAT_TOKENS = 8
"""At most so many tokens end a prompt only to open the answer, e.g. "<|im_start|>assistant"."""

ASSUMED_COPY_RATE = 0.5e9
"""Bytes per second where nothing of a size was copied yet."""

_MEASURED_BYTES = 1 << 20
_MEASURED_TOKENS = 32
"""From which size on a time says something about a rate."""


class StateMemory(CacheMemory, Protocol):
    """What a prompt cache needs of a context."""

    @property
    def needs_whole_state(self) -> bool:
        """Whether a state serves only prompts that begin with all of its tokens."""

    def state_size(self) -> int:
        """How many bytes `save` would copy."""

    def save(self) -> ContextState | None:
        """A copy of everything held, None where that is impossible."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredPrompt:
    """The tokens a context held, its state, and the drafter's own where it has one.

    Of what the drafter had followed, the first `unchanged` tokens still stood.
    """

    tokens: tuple[int, ...]
    state: ContextState
    drafter: DrafterState | None
    unchanged: int

    @property
    def size(self) -> int:
        """Bytes of both states."""
        return self.state.nbytes + (self.drafter.size if self.drafter else 0)


def memory_budget(held: int) -> int:
    """The most bytes to keep, of which `held` are taken already."""
    return min(MAX_BYTES, int(MEMORY_SHARE * (psutil.virtual_memory().available + held)))


class PromptCache:
    """Keeps a few states of one context, the least recently used going first.

    All states together never exceed `budget(bytes held)`; only while two chats are exchanged the
    one that goes back into the context may be there as well.
    """

    def __init__(
        self,
        memory: StateMemory,
        live: TokenCache,
        *,
        budget: Callable[[int], int] = memory_budget,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = memory
        self._live = live
        self._budget = budget
        self._clock = clock
        self._entries: list[StoredPrompt] = []  # the most recently used last
        self._prompt_length = 0  # of the latest prompt
        self._copy_rate = ASSUMED_COPY_RATE
        self._token_seconds: float | None = None  # to evaluate one prompt token

    @property
    def entries(self) -> tuple[StoredPrompt, ...]:
        """What is kept, the least recently used first."""
        return tuple(self._entries)

    @property
    def size(self) -> int:
        """Bytes of all states kept."""
        return sum(entry.size for entry in self._entries)

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()

    def forget_drafter(self) -> None:
        """Another drafter follows from now on, which cannot read the states of the one before."""
        self._entries = [
            StoredPrompt(entry.tokens, entry.state, None, 0) for entry in self._entries
        ]

    def evaluated(self, tokens: int, seconds: float) -> None:
        """So many prompt tokens took so long: what a restored state saves."""
        if tokens >= _MEASURED_TOKENS:
            self._token_seconds = seconds / tokens

    def recall(self, prompt: Sequence[int], drafter: Drafter, unchanged: int) -> int:
        """Before a prompt is evaluated: save what would be lost, restore what fits it better.

        Of what the drafter has followed, the first `unchanged` tokens stand; returns how many do
        afterwards. A state that cannot be restored leaves nothing in the context.
        """
        kept = self._live.kept_of(prompt)
        best = self._best(prompt, drafter)
        if best is not None and not self._pays(self._usable(best, prompt) - kept, best.size, 1):
            best = None
        if best is not None:
            self._touch(best)  # so that it is not the first to go
        if self._is_other_chat(prompt):
            self._save(len(self._live) - kept, drafter, unchanged)
        self._prompt_length = len(prompt)
        return unchanged if best is None else self._restore(best, drafter, unchanged)

    def _is_other_chat(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt differs from the latest one before that one's answer was opened.

        Otherwise only an answer is dropped, or its reasoning, turn after turn; saving that would
        soon drive out the other chats.
        """
        end = min(self._prompt_length, len(self._live))
        return self._live.common_prefix(prompt) < end - SAME_CHAT_TOKENS

    def _usable(self, entry: StoredPrompt, prompt: Sequence[int]) -> int:
        """How many tokens of the prompt need not be evaluated after a restore."""
        usable = min(shared_prefix(entry.tokens, prompt), len(prompt) - 1)
        if self._memory.needs_whole_state and usable < len(entry.tokens):
            return 0
        return usable

    def _best(self, prompt: Sequence[int], drafter: Drafter) -> StoredPrompt | None:
        """The entry that saves most; one without the drafter's part does not serve a head."""
        return max(
            (entry for entry in self._entries if entry.drafter or not drafter.needs_all_tokens),
            key=lambda entry: self._usable(entry, prompt),
            default=None,
        )

    def _pays(self, tokens: int, size: int, copies: int) -> bool:
        """Whether evaluating the tokens would take longer than copying so many bytes."""
        if tokens < LEAST_GAIN:
            return False
        if self._token_seconds is None:
            return True
        return tokens * self._token_seconds > copies * size / self._copy_rate

    def _touch(self, entry: StoredPrompt) -> None:
        self._entries.remove(entry)
        self._entries.append(entry)

    def _save(self, lost: int, drafter: Drafter, unchanged: int) -> None:
        """Keep what the context holds, where it is worth it and not kept already."""
        tokens = tuple(self._live.tokens)
        whole = self._memory.needs_whole_state
        for entry in self._entries:
            known = entry.tokens == tokens if whole else entry.tokens[: len(tokens)] == tokens
            if known and (entry.drafter or not drafter.needs_all_tokens):
                self._touch(entry)
                return
        size = self._memory.state_size()
        budget = self._budget(self.size)
        if size > budget or not self._pays(lost, size, 2):  # there and back again
            return
        self._entries = [e for e in self._entries if e.tokens != tokens[: len(e.tokens)]]
        self._make_room(budget - size)
        drafters = drafter.save(budget - self.size - size)
        if drafters is None and drafter.needs_all_tokens:
            return
        state = self._timed(self._memory.save, size)
        if state is not None:
            self._entries.append(StoredPrompt(tokens, state, drafters, unchanged))

    def _make_room(self, most_bytes: int) -> None:
        """Drop the least recently used until one more entry fits."""
        while self._entries and (len(self._entries) >= MAX_ENTRIES or self.size > most_bytes):
            del self._entries[0]

    def _restore(self, entry: StoredPrompt, drafter: Drafter, unchanged: int) -> int:
        before = tuple(self._live.tokens)
        tokens, state = entry.tokens, entry.state
        if not self._timed(lambda: self._live.restore(tokens, state), state.nbytes):
            log.warning("a saved state of %d tokens could not be restored", len(tokens))
            self._entries = [other for other in self._entries if other is not entry]
            return 0
        if entry.drafter is None:
            return min(unchanged, shared_prefix(before, tokens))
        drafter.restore(entry.drafter)
        return entry.unchanged

    def _timed(self, copy: Callable[[], _T], size: int) -> _T:
        """Copy so many bytes and note how fast that went."""
        begun = self._clock()
        result = copy()
        seconds = self._clock() - begun
        if size >= _MEASURED_BYTES and seconds > 0:
            self._copy_rate = size / seconds
        return result
