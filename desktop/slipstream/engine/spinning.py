"""How long llama.cpp's threads spin while they wait for each other, where OpenMP decides it.

llama.cpp's threads meet at a barrier after each of the several hundred nodes of a graph. GNU
OpenMP (libgomp) lets the one that came first spin for 300,000 rounds of the processor's pause
instruction before it sleeps: some milliseconds, as long as a scheduler's time slice. As soon as
another program needs a core, two threads share one, and the one that waits keeps from running the
one it waits for, at each node anew.

Spinning as long as it takes to sleep and be woken is long enough for the waits of an undisturbed
pass, and short enough to hand the core over. Measured with SmolLM2-135M Q4_1 and two threads on a
Xeon with two cores (tokens per second of decoding, medians of 6 to 14 alternating runs; one thread
decodes 57 either way):

    rounds               300,000 (default)   5,000    3,000    2,000    1,000    100
    microseconds                     2,900      48       29       19       10      1
    idle                              95.5    95.4     94.4     94.5     94.2     32
    one core busy                  2.2 - 9      22       25       28       36     42

The pause instruction takes 10 to 140 cycles, by the processor. 2,000 rounds are 7 to 95
microseconds, which is well within what serves both cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SPIN_ROUNDS = 2_000

_COUNT = "GOMP_SPINCOUNT"
_POLICY = "OMP_WAIT_POLICY"


@contextmanager
def short_spinning() -> Iterator[None]:
    """Within it, a libgomp that is loaded spins for `SPIN_ROUNDS`; a user's own choice stands.

    libgomp reads its environment once, while it is loaded; that of our own children stays as it
    was. Other OpenMP libraries ignore it.
    """
    if _COUNT in os.environ or _POLICY in os.environ:
        yield
        return
    os.environ[_COUNT] = str(SPIN_ROUNDS)
    try:
        yield
    finally:
        os.environ.pop(_COUNT, None)
