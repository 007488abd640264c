"""Pearson's test of counts against probabilities, without a statistics package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

_Outcome = TypeVar("_Outcome")
LEAST_EXPECTED = 5.0
"""Outcomes expected fewer times are counted together, as is usual for this test."""


def p_value(counts: Mapping[_Outcome, int], expected: Mapping[_Outcome, float]) -> float:
    """How often counts from these probabilities would lie at least as far from them.

    By Wilson and Hilferty's approximation, good to about 0.001. 0 for an outcome that cannot be.
    """
    if counts.keys() - expected.keys():
        return 0.0
    total = sum(counts.values())
    cells: list[tuple[float, float]] = []  # counted and expected
    rare_counted, rare_expected = 0.0, 0.0
    for outcome, probability in expected.items():
        counted, wanted = float(counts.get(outcome, 0)), total * probability
        if wanted < LEAST_EXPECTED:
            rare_counted, rare_expected = rare_counted + counted, rare_expected + wanted
        else:
            cells.append((counted, wanted))
    if rare_expected:
        cells.append((rare_counted, rare_expected))
    statistic = sum((counted - wanted) ** 2 / wanted for counted, wanted in cells)
    freedom = len(cells) - 1
    spread = 2 / (9 * freedom)
    deviation = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(deviation / math.sqrt(2))
