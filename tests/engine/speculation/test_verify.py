from __future__ import annotations

import pytest

from slipstream.engine.speculation.drafter import Draft
from slipstream.engine.speculation.verify import Verdict, verify

END = 99


@pytest.mark.parametrize(
    ("draft", "own", "expected"),
    [
        ((), [5], Verdict((5,), 0, ended=False)),
        ((), [END], Verdict((END,), 0, ended=True)),
        ((1, 2), [1, 2, 3], Verdict((1, 2, 3), 2, ended=False)),  # all accepted and a bonus
        ((1, 2), [1, 7], Verdict((1, 7), 1, ended=False)),  # a correction
        ((1, 2), [7], Verdict((7,), 0, ended=False)),
        ((1, END, 4), [1, END], Verdict((1, END), 2, ended=True)),  # nothing kept past the end
        ((1, 2), [END], Verdict((END,), 0, ended=True)),
    ],
)
def test_verdicts(draft: tuple[int, ...], own: list[int], expected: Verdict) -> None:
    drawn: list[int] = []

    def sample(row: int) -> int:
        drawn.append(row)
        return own[row]

    assert verify(Draft(draft), sample, lambda token: token == END) == expected
    assert drawn == list(range(len(own))), "one draw per emitted token, in order"
