from __future__ import annotations

import pytest

from slipstream.engine.stopwatch import Stopwatch


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_prefill_counts_only_what_was_evaluated(clock: Clock) -> None:
    watch = Stopwatch(clock, prompt_tokens=100, cached=40)
    clock.now += 2
    assert watch.prefilled(70) == 15.0
    clock.now += 2
    assert watch.prefilled(100) == 15.0
    numbers = watch.statistics(100)
    assert numbers.prefill_seconds == 4.0
    assert numbers.prefill_tokens_per_second == 15.0
    assert (numbers.prompt_tokens, numbers.cached_prompt_tokens) == (100, 40)


def test_decode_runs_from_the_first_to_the_last_token(clock: Clock) -> None:
    watch = Stopwatch(clock, 10, 0)
    clock.now += 3
    watch.prefilled(10)
    clock.now += 1
    watch.sampled(1)
    assert watch.average_rate() is None
    clock.now += 2
    watch.sampled(3)
    clock.now += 2
    watch.sampled(1)
    numbers = watch.statistics(15)
    assert numbers.time_to_first_token_seconds == 4.0
    assert numbers.decode_seconds == 4.0
    assert numbers.generated_tokens == 5
    assert numbers.decode_tokens_per_second == watch.average_rate() == 1.0
    assert numbers.context_tokens == 15


def test_the_current_rate_looks_back_about_a_second(clock: Clock) -> None:
    watch = Stopwatch(clock, 1, 0)
    for _ in range(20):  # 10 tokens a second
        clock.now += 0.1
        watch.sampled(1)
    assert watch.current_rate() == pytest.approx(10.0)
    for _ in range(30):  # then 50
        clock.now += 0.02
        watch.sampled(1)
    assert 10 < watch.current_rate() < 50  # type: ignore[operator]
    for _ in range(60):
        clock.now += 0.02
        watch.sampled(1)
    assert watch.current_rate() == pytest.approx(50.0)


def test_nothing_divides_by_zero(clock: Clock) -> None:
    watch = Stopwatch(clock, 0, 0)
    assert watch.prefilled(0) is None
    watch.sampled(1)
    watch.sampled(1)
    assert watch.average_rate() is None
    assert watch.current_rate() is None
    numbers = watch.statistics(0)
    assert numbers.decode_tokens_per_second is None
    assert numbers.prefill_tokens_per_second is None


def test_reasoning_is_timed_from_its_first_round_to_its_last(clock: Clock) -> None:
    watch = Stopwatch(clock, 1, 0)
    for tokens, still in ((1, True), (2, True), (1, False), (0, False)):
        clock.now += 1
        watch.sampled(2)
        watch.reasoned(tokens, still=still)
    numbers = watch.statistics(9)
    assert numbers.reasoning_tokens == 4
    assert numbers.reasoning_seconds == 2.0
