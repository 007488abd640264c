"""Measures what target passes and draft steps cost, in a bounded time, leaving no trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Protocol

from slipstream.engine.speculation.cost_model import CostProfile

SECONDS = 0.7
"""How long measuring may take, but for the first pass of each kind."""

_ROWS = (1, 2, 4, 3, 5, 8, 6, 9, 12, 16, 24, 32)  # the most telling first
_CATCH_UP_SHARE = 0.25  # of a draft step, for one of many tokens that are evaluated at once
_ALWAYS = 3  # of these are measured however long they take
_REPEATS = 4  # the first of them is a change of rows


class Measurable(Protocol):
    """What is measured: a session whose context is at rest."""

    def measure_passes(self, rows: int, count: int) -> list[float] | None:
        """Seconds of so many passes in turn, each over `rows` more tokens.

        None where they would not fit or could not be taken back.
        """


def measure_costs(
    session: Measurable,
    longest: int,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> CostProfile:
    """Measure passes for drafts of up to `longest` tokens.

    What the time does not suffice for is left out and interpolated later.
    """
    started = clock()
    passes: dict[int, float] = {}
    changes: list[float] = []
    session.measure_passes(1, 2)  # the very first one sets things up
    for number, rows in enumerate(_ROWS):
        if rows > longest + 1:
            continue
        if number >= _ALWAYS and clock() - started > SECONDS:
            break
        seconds = session.measure_passes(rows, _REPEATS)
        if seconds:
            first, *rest = seconds
            passes[rows] = min(rest)  # what disturbs a pass only ever makes it longer
            changes.append(max(0.0, first - passes[rows]))
    return CostProfile(passes, change=median(changes) if changes else 0.0)


def with_guesses(costs: CostProfile, kind: str, size: float) -> CostProfile:
    """The same, with what a draft file of `size` times the target's may cost before it is tried.

    Passes read all weights, so that they take time in proportion. A guess keeps a draft that
    could never pay from reading a long conversation just to show it.
    """
    step = costs.passes.get(1, 0.0) * size
    return replace(costs, steps={kind: step}, catch_up={kind: step * _CATCH_UP_SHARE})
