from __future__ import annotations

from slipstream.engine.cache import TokenCache


class Memory:
    """A memory of `positions` tokens that can forget its tail, or not."""

    def __init__(self, *, can_trim: bool = True) -> None:
        self.positions = 0
        self.can_trim = can_trim

    def trim(self, length: int) -> bool:
        if self.can_trim:
            self.positions = min(self.positions, length)
        return self.can_trim

    def clear(self) -> None:
        self.positions = 0

    def length(self) -> int:
        return self.positions


def filled(memory: Memory, *tokens: int) -> TokenCache:
    cache = TokenCache(memory)
    memory.positions = len(tokens)
    cache.extend(tokens)
    return cache


def test_common_prefix() -> None:
    cache = filled(Memory(), 1, 2, 3)
    assert cache.common_prefix([1, 2, 4, 5]) == 2
    assert cache.common_prefix([1, 2, 3, 4]) == 3
    assert cache.common_prefix([]) == 0


def test_trim_keeps_the_memory_in_step() -> None:
    memory = Memory()
    cache = filled(memory, 1, 2, 3)
    assert cache.trim(2) == 2
    assert (cache.tokens, memory.positions) == ([1, 2], 2)


def test_trim_to_more_than_there_is_changes_nothing() -> None:
    memory = Memory()
    cache = filled(memory, 1, 2, 3)
    assert cache.trim(9) == 3
    assert (cache.tokens, memory.positions) == ([1, 2, 3], 3)


def test_memory_that_cannot_forget_a_part_is_cleared() -> None:
    memory = Memory(can_trim=False)
    cache = filled(memory, 1, 2, 3)
    assert cache.trim(2) == 0
    assert (cache.tokens, memory.positions) == ([], 0)


def test_recover_drops_what_only_the_memory_has() -> None:
    memory = Memory()
    cache = filled(memory, 1, 2, 3)
    memory.positions = 5
    cache.recover()
    assert (cache.tokens, memory.positions) == ([1, 2, 3], 3)


def test_recover_drops_what_only_the_list_has() -> None:
    memory = Memory()
    cache = filled(memory, 1, 2, 3)
    memory.positions = 2
    cache.recover()
    assert (cache.tokens, memory.positions) == ([1, 2], 2)
