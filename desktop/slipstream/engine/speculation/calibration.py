"""Measures what target passes and draft steps cost, in a bounded time, leaving no trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from slipstream.engine.speculation.cost_model import CostProfile

SECONDS = 0.7
"""How long measuring may take, but for the first pass of each kind."""

_ROWS = (1, 2, 4, 3, 5, 8, 6, 9, 12, 16, 24, 32)  # the most telling first
_ALWAYS = 3  # of these are measured however long they take
_REPEATS = 3


class Measurable(Protocol):
    """What is measured: a session whose context is at rest."""

    def measure_pass(self, rows: int) -> float | None:
        """Seconds of a pass over so many rows; None where it cannot be taken back."""


def measure_costs(
    session: Measurable,
    longest: int,
    step_seconds: dict[str, float],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> CostProfile:
    """Measure passes for drafts of up to `longest` tokens; `step_seconds` by kind is taken over.

    What the time does not suffice for is left out and interpolated later.
    """
    started = clock()
    passes: dict[int, float] = {}
    session.measure_pass(1)  # the first one sets things up
    for number, rows in enumerate(_ROWS):
        if rows > longest + 1:
            continue
        if number >= _ALWAYS and clock() - started > SECONDS:
            break
        seen = []
        for _ in range(_REPEATS):
            seconds = session.measure_pass(rows)
            if seconds is None:
                break
            seen.append(seconds)
            if clock() - started > SECONDS:
                break
        if seen:
            passes[rows] = min(seen)  # what disturbs a pass only ever makes it longer
    return CostProfile(passes, {kind: seconds for kind, seconds in step_seconds.items() if seconds})
