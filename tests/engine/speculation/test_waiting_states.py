"""States wait in order, and what is taken back waits no longer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slipstream.engine.speculation.waiting_states import WaitingStates

WIDTH = 3


def states_of(tokens: list[int]) -> np.ndarray:
    return np.array([[token] * WIDTH for token in tokens], dtype=np.float32).reshape(-1, WIDTH)


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.lists(st.integers(0, 99), min_size=1, max_size=5)),
        max_size=12,
    )
)
def test_any_order_of_steps_keeps_tokens_and_states_together(
    steps: list[tuple[int, list[int]]],
) -> None:
    waiting = WaitingStates()
    start, expected = 0, []  # what a plain list would hold
    for number, (position, tokens) in enumerate(steps):
        if number % 3 == 2:
            waiting.truncate(position)
            expected = expected[: max(0, position - start)]
            continue
        waiting.append(position, tokens, states_of(tokens))
        kept = expected[: max(0, position - start)]
        if not kept or start + len(kept) != position:
            start, kept = position, []
        expected = [*kept, *tokens]
        assert waiting.tokens == expected
        assert (waiting.start, waiting.end) == (start, start + len(expected))
        assert np.array_equal(waiting.rows(), states_of(expected))
        assert waiting.size == len(expected) * WIDTH * 4
        assert waiting.covers(start)
        assert not waiting.covers(start - 1)
        assert not waiting.covers(waiting.end)


def test_nothing_is_left_after_clearing() -> None:
    waiting = WaitingStates()
    waiting.append(4, [1, 2], states_of([1, 2]))
    waiting.clear()
    assert waiting.tokens == []
    assert waiting.size == 0
    assert not waiting.covers(4)
