"""Finds how many threads serve a model best on this machine, by passes of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from slipstream.engine.processor_share import ProcessorShare

SECONDS = 0.4
"""How long measuring may take, but for the first passes of each number of threads."""

_TURNS = 3
_PASSES = 4  # the first of each is not counted: threads start, graphs are built
_BATCH_ROWS = 16
_BATCH_PASSES = 2
_CLEARLY = 0.97  # of the time of the usual number: less is not noise


class Measurable(Protocol):
    """What is measured: a session whose context is at rest."""

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute with so many threads from the next pass on."""

    def measure_passes(self, rows: int, count: int) -> list[float] | None:
        """Seconds of so many passes in turn, each over `rows` more tokens."""


def thread_candidates(physical: int, usable: int) -> tuple[int, ...]:
    """Numbers of threads worth trying, the usual one first.

    That is one per physical core. Fewer may be as fast where memory is what limits, and leave the
    window room; one per logical core is faster on a few machines.
    """
    physical = max(1, min(physical, usable))
    tried = (physical, physical // 2, physical - 1, usable)
    return tuple(dict.fromkeys(count for count in tried if count >= 1))


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """The best numbers of threads for one token at a time and for many at once.

    `reliable` is False where other programs needed the processor meanwhile, and nothing is known.
    """

    n_threads: int
    n_threads_batch: int
    reliable: bool = True


def measure_threads(
    session: Measurable,
    candidates: Sequence[int],
    attention: Callable[[int], float | None],
    go_on: Callable[[], bool] = lambda: True,
    *,
    clock: Callable[[], float] = time.perf_counter,
    cpu: Callable[[], float] = time.process_time,
) -> ThreadChoice:
    """Time passes with each number of threads in turn.

    `attention` tells what a conversation adds to a pass over one token, in seconds, with so many
    threads, or None where that is not known: the passes measured here have none before them. The
    first candidate stands unless another is clearly faster. Leaves the session with the result
    set; gives up early, and then the first candidate stands, when `go_on` says no.
    """
    usual = candidates[0]
    started = clock()
    share = ProcessorShare(clock, cpu)
    single: dict[int, float] = {}
    batch: dict[int, float] = {}
    if len(candidates) > 1:
        for turn in range(_TURNS):
            for times, rows, count in ((single, 1, _PASSES), (batch, _BATCH_ROWS, _BATCH_PASSES)):
                for threads in candidates:
                    spent = clock() - started
                    if not go_on() or (spent > SECONDS and (turn or times is batch)):
                        continue
                    session.set_threads(threads, threads)
                    with share.of(threads):
                        seconds = session.measure_passes(rows, count)
                    if seconds:
                        best = min(seconds[1:])
                        times[threads] = min(best, times.get(threads, best))
    added = [attention(threads) for threads in single] if go_on() else []
    known = [seconds for seconds in added if seconds is not None]
    choice = ThreadChoice(usual, usual, reliable=False)
    if go_on() and share.undisturbed and len(known) in (0, len(single)):
        whole = dict(single)
        for threads, extra in zip(single, known, strict=False):
            whole[threads] += extra
        choice = ThreadChoice(_best(whole, usual), _best(batch, usual))
    session.set_threads(choice.n_threads, choice.n_threads_batch)
    return choice


def _best(times: dict[int, float], usual: int) -> int:
    """The fastest, where it is so clearly; else the usual one."""
    if usual not in times:
        return usual
    fastest = min(times, key=lambda threads: times[threads])
    return fastest if times[fastest] < _CLEARLY * times[usual] else usual
