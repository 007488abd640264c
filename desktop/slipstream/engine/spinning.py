"""How long llama.cpp's threads spin while they wait for each other, where OpenMP decides it.

llama.cpp's threads meet at a barrier after each of the several hundred nodes of a graph. GNU
OpenMP (libgomp) lets the one that came first spin for 300,000 rounds of the processor's pause
instruction before it sleeps: some milliseconds, as long as a scheduler's time slice. As soon as
another program needs a core, two threads share one, and the one that waits keeps from running the
one it waits for, at each node anew.

Between two passes the threads wait for the token to be drawn and passed on, some 150 microseconds.
Those that sleep by then have to be woken for the next pass, which costs 1 to 2 % of it. Spinning a
little longer than that costs nothing on a quiet machine, and still hands the core over soon.
Measured with SmolLM2-135M and two threads on two cores (tokens per second of decoding, medians of 5
to 14 alternating runs):

    rounds                        300,000 (default)  20,000  12,000  6,000  5,000  2,000    100
    Xeon, Q4_1, quiet                          95.5                          95.4   94.4     32
    Xeon, Q4_1, one core busy               2.2 - 9                            22     25     42
    EPYC (Zen 5), F16, quiet                    140     140     139    137           137
    EPYC, Q4_1, one core busy                    54      17      18     24            33

The pause instruction takes 10 to 140 cycles, by the processor, and what is best beside a busy
program depends on the system's scheduler as well. 12,000 rounds keep full speed where nothing else
is to be done. A window is something else: painting what was written needs a core, and the decode
speed with it, as a share of that without, was 0.96 with 2,000 rounds and 0.93 with 12,000 (Q4_1,
EPYC, 6 paired runs each), which outweighs the waking.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

ALONE, BESIDE_WINDOW = 12_000, 2_000
"""Rounds without a window and with one."""

_rounds = ALONE

_COUNT = "GOMP_SPINCOUNT"
_POLICY = "OMP_WAIT_POLICY"


def expect_window() -> None:
    """Spin as beside a window; to be called before llama.cpp is loaded."""
    global _rounds
    _rounds = BESIDE_WINDOW


@contextmanager
def short_spinning() -> Iterator[None]:
    """A libgomp that is loaded within it spins less than by itself; a user's own choice stands.

    libgomp reads its environment once, while it is loaded; that of our own children stays as it
    was. Other OpenMP libraries ignore it.
    """
    if _COUNT in os.environ or _POLICY in os.environ:
        yield
        return
    os.environ[_COUNT] = str(_rounds)
    try:
        yield
    finally:
        os.environ.pop(_COUNT, None)
