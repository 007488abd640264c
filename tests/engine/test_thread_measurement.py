"""The number of threads is the one that measures best, and measuring ends."""

from __future__ import annotations

import pytest

from slipstream.engine.thread_measurement import (
    SECONDS,
    ThreadChoice,
    measure_threads,
    thread_candidates,
)


class Machine:
    """Passes that take what a table says; its clock is moved by them alone."""

    def __init__(self, single: dict[int, float], batch: dict[int, float]) -> None:
        self.now = 0.0
        self.spent = 0.0  # processor time
        self.share = 1.0  # of it that our threads get
        self.threads = (0, 0)
        self.busy = False
        self._single, self._batch = single, batch

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        self.threads = (n_threads, n_threads_batch)

    def measure_passes(self, rows: int, count: int) -> list[float] | None:
        if self.busy:
            return None
        seconds = self._single[self.threads[0]] if rows == 1 else self._batch[self.threads[1]]
        taken = [10 * seconds, *[seconds] * (count - 1)]  # the first one sets things up
        self.now += sum(taken)
        self.spent += self.share * self.threads[0] * sum(taken)
        return taken

    def cpu(self) -> float:
        return self.spent

    def clock(self) -> float:
        return self.now


def measured(machine: Machine, attention: dict[int, float] | None = None) -> tuple[int, int]:
    choice = choice_of(machine, attention)
    assert choice.reliable
    return choice.n_threads, choice.n_threads_batch


def choice_of(machine: Machine, attention: dict[int, float] | None = None) -> ThreadChoice:
    candidates = tuple(machine._single)
    costs = attention or dict.fromkeys(candidates, 0.0)
    choice = measure_threads(
        machine, candidates, costs.__getitem__, clock=machine.clock, cpu=machine.cpu
    )
    assert machine.threads == (choice.n_threads, choice.n_threads_batch)
    return choice


@pytest.mark.parametrize(
    ("physical", "usable", "expected"),
    [
        (1, 1, (1,)),
        (2, 2, (2, 1)),
        (4, 8, (4, 2, 3, 8)),
        (8, 4, (4, 2, 3)),  # a container with fewer cores than the machine
        (0, 1, (1,)),
    ],
)
def test_candidates_begin_with_the_physical_cores(
    physical: int, usable: int, expected: tuple[int, ...]
) -> None:
    assert thread_candidates(physical, usable) == expected


def test_each_kind_of_pass_gets_the_threads_that_serve_it_best() -> None:
    machine = Machine({4: 0.0010, 2: 0.0008, 8: 0.0012}, {4: 0.005, 2: 0.009, 8: 0.004})
    assert measured(machine) == (2, 8)


def test_a_difference_within_the_noise_changes_nothing() -> None:
    machine = Machine({2: 0.0100, 1: 0.0099}, {2: 0.05, 1: 0.0495})
    assert measured(machine) == (2, 2)


def test_a_conversation_counts_as_well() -> None:
    """Short passes were faster with one thread, but not with 500 tokens before them."""
    machine = Machine({2: 0.0042, 1: 0.0038}, {2: 0.03, 1: 0.05})
    assert measured(machine, {2: 0.0009, 1: 0.0017}) == (2, 2)


def test_measuring_a_slow_model_ends_soon_and_keeps_what_was_not_measured() -> None:
    machine = Machine({8: 0.5, 4: 0.4, 2: 0.9}, {8: 9.0, 4: 1.0, 2: 1.0})
    assert measured(machine) == (4, 8)
    first_passes = 13 * (0.5 + 0.4 + 0.9)  # one of each, the first of which counts tenfold
    assert machine.now <= first_passes + SECONDS


def test_nothing_is_measured_where_there_is_no_choice() -> None:
    machine = Machine({1: 0.01}, {1: 0.05})
    assert measured(machine) == (1, 1)
    assert machine.now == 0


def test_a_session_that_cannot_be_measured_keeps_the_usual_threads() -> None:
    machine = Machine({4: 0.010, 2: 0.008}, {4: 0.05, 2: 0.04})
    machine.busy = True
    assert measured(machine) == (4, 4)


def test_what_was_measured_beside_a_busy_program_is_not_believed() -> None:
    machine = Machine({2: 0.010, 1: 0.005}, {2: 0.05, 1: 0.04})
    machine.share = 0.5
    assert choice_of(machine) == ThreadChoice(2, 2, reliable=False)


def test_attention_known_for_some_numbers_only_tells_nothing() -> None:
    machine = Machine({2: 0.0042, 1: 0.0038}, {2: 0.03, 1: 0.05})
    choice = measure_threads(
        machine, (2, 1), {2: 0.0009, 1: None}.get, clock=machine.clock, cpu=machine.cpu
    )
    assert choice == ThreadChoice(2, 2, reliable=False)


def test_attention_known_for_none_is_left_out() -> None:
    machine = Machine({2: 0.0042, 1: 0.0038}, {2: 0.03, 1: 0.05})
    choice = measure_threads(
        machine, (2, 1), lambda threads: None, clock=machine.clock, cpu=machine.cpu
    )
    assert choice == ThreadChoice(1, 2)


def test_measuring_can_be_given_up() -> None:
    machine = Machine({2: 0.0042, 1: 0.0038}, {2: 0.03, 1: 0.05})
    choice = measure_threads(
        machine, (2, 1), lambda threads: 0.0, lambda: False, clock=machine.clock, cpu=machine.cpu
    )
    assert choice == ThreadChoice(2, 2, reliable=False)
    assert machine.now == 0
