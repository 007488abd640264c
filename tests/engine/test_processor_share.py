"""A share is what the threads got of what they could have had."""

from __future__ import annotations

import pytest

from slipstream.engine.processor_share import ProcessorShare


@pytest.mark.parametrize(
    ("got", "threads", "expected"),
    [(1.9, 2, True), (1.0, 2, False), (1.0, 1, True), (0.0, 1, False), (1.7, 2, True)],
)
def test_less_than_most_of_it_counts_as_disturbed(got: float, threads: int, expected: bool) -> None:
    clock, cpu = iter([10.0, 11.0, 20.0, 21.0]), iter([5.0, 5.0 + got, 9.0, 9.0 + got])
    share = ProcessorShare(lambda: next(clock), lambda: next(cpu))
    for _ in range(2):
        with share.of(threads):
            pass
    assert share.undisturbed is expected


def test_nothing_measured_is_not_disturbed() -> None:
    assert ProcessorShare().undisturbed
