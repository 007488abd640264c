"""Tells whether the processor was ours while something was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_UNDISTURBED = 0.8  # of what the threads could have had; 0.95 and more is usual, 0.5 with one rival


class ProcessorShare:
    """Adds up the processor time that computing threads got, and what they could have had.

    `clock` and `cpu` count seconds: of the wall, and of all this process's threads.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock, self._cpu = clock, cpu
        self._got = self._possible = 0.0

    @contextmanager
    def of(self, n_threads: int) -> Iterator[None]:
        """What runs inside computes with so many threads."""
        clock, cpu = self._clock(), self._cpu()
        yield
        self._got += self._cpu() - cpu
        self._possible += n_threads * (self._clock() - clock)

    @property
    def undisturbed(self) -> bool:
        """Whether other programs left the threads nearly all of their time."""
        return self._got >= _UNDISTURBED * self._possible
