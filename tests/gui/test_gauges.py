"""The gauges: right words for every state, few repaints, a size that never moves."""

from __future__ import annotations

import itertools
import time

import pytest
from PySide6.QtCore import QEvent, QObject
from pytestqt.qtbot import QtBot

from slipstream.ui.gauges.context_meter import ContextMeter, usage_in_words
from slipstream.ui.gauges.sparkline import RateHistory
from slipstream.ui.gauges.throughput import ThroughputGauge, rate_in_words, seconds_in_words
from slipstream.ui.theme import SPACE_S


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class PaintCounter(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gauge(qtbot: QtBot, clock: Clock) -> ThroughputGauge:
    result = ThroughputGauge(clock=clock)
    qtbot.addWidget(result)
    result.resize(280, result.sizeHint().height())
    with qtbot.waitExposed(result):
        result.show()
    return result


def test_nothing_measured_shows_dashes(gauge: ThroughputGauge) -> None:
    assert gauge.objectName() == "throughput_gauge"
    assert (gauge.figure, gauge.caption, gauge.aside) == ("–", "tok/s", "")
    assert gauge.line == "Measured with the first answer"
    assert gauge.accessibleDescription().startswith("not measured yet.")


def test_live_numbers(gauge: ThroughputGauge) -> None:
    gauge.set_prefill(310.4)
    gauge.set_first_token(0.42)
    gauge.set_rate(41.8, 40.21)
    assert (gauge.figure, gauge.caption, gauge.aside) == ("41.8", "tok/s", "average 40.2")
    assert gauge.line == "Prompt 310 tok/s · first token 0.42 s"


def test_after_the_answer_the_figure_is_its_average(gauge: ThroughputGauge) -> None:
    gauge.set_rate(41.8, 40.2)
    gauge.set_idle()
    assert (gauge.figure, gauge.caption, gauge.aside) == ("40.2", "tok/s, last answer", "")


def test_figure_and_unit_stand_together_before_the_first_answer(gauge: ThroughputGauge) -> None:
    picture = gauge.grab().toImage()
    ground = picture.pixel(picture.width() - 1, 0)
    columns = [
        x for x in range(picture.width()) if any(picture.pixel(x, y) != ground for y in range(36))
    ]
    assert max(b - a for a, b in itertools.pairwise(columns)) <= 2 * SPACE_S


def test_no_rate_before_two_tokens(gauge: ThroughputGauge) -> None:
    gauge.set_rate(None, None)
    assert gauge.line == "Prompt – · first token –"
    assert (gauge.figure, len(gauge.history)) == ("–", 0)


def test_reset_forgets_everything(gauge: ThroughputGauge) -> None:
    gauge.set_rate(41.8, 40.2)
    gauge.set_prefill(300)
    gauge.reset()
    assert (gauge.figure, gauge.line) == ("–", "Measured with the first answer")
    assert len(gauge.history) == 0


def test_description_follows_the_numbers(gauge: ThroughputGauge, qtbot: QtBot) -> None:
    gauge.set_rate(41.8, 40.2)
    gauge.set_first_token(0.5)
    qtbot.waitUntil(lambda: "first token 0.50 s" in gauge.accessibleDescription())
    assert gauge.accessibleDescription().startswith("41.8 tok/s.")
    assert gauge.accessibleName() == "Speed"


def test_size_does_not_depend_on_the_numbers(gauge: ThroughputGauge) -> None:
    before = (gauge.sizeHint(), gauge.minimumSizeHint())
    gauge.set_rate(12345.6, 98765.4)
    gauge.set_prefill(123456)
    gauge.set_first_token(1234)
    assert (gauge.sizeHint(), gauge.minimumSizeHint()) == before


def test_burst_of_updates_is_painted_at_most_ten_times_a_second(
    gauge: ThroughputGauge, clock: Clock, qtbot: QtBot
) -> None:
    qtbot.waitUntil(lambda: gauge.idle)
    counter = PaintCounter()
    gauge.installEventFilter(counter)
    start = time.monotonic()
    for step in range(200):  # a second of five-millisecond rounds
        clock.now += 0.005
        gauge.set_rate(30 + step % 7, 30)
        qtbot.wait(4)
    qtbot.waitUntil(lambda: gauge.idle)
    gauge.removeEventFilter(counter)
    assert 2 <= counter.count <= (time.monotonic() - start) * 10 + 1
    assert len(gauge.history) == pytest.approx(4, abs=1)


def test_updates_within_one_interval_are_one_repaint(qtbot: QtBot, clock: Clock) -> None:
    gauge = ThroughputGauge(clock=clock, interval_ms=300)
    qtbot.addWidget(gauge)
    with qtbot.waitExposed(gauge):
        gauge.show()
    shown: list[str] = []
    gauge._limit.due.connect(lambda: shown.append(gauge.figure))
    for step in range(200):
        gauge.set_rate(float(step), None)
    assert shown == ["0.0"]  # at once
    qtbot.waitUntil(lambda: gauge.idle)
    assert shown == ["0.0", "199"]  # and once more, with the newest


def test_timer_stops_when_nothing_comes(gauge: ThroughputGauge, qtbot: QtBot) -> None:
    gauge.set_rate(1.0, 1.0)
    assert not gauge.idle
    qtbot.waitUntil(lambda: gauge.idle)
    counter = PaintCounter()
    gauge.installEventFilter(counter)
    qtbot.wait(250)
    gauge.removeEventFilter(counter)
    assert counter.count == 0


@pytest.mark.parametrize(
    ("rate", "words"),
    [(None, "–"), (0.0, "0.0"), (9.64, "9.6"), (99.94, "99.9"), (99.96, "100"), (310.4, "310")],
)
def test_rates_in_words(rate: float | None, words: str) -> None:
    assert rate_in_words(rate) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.42, "0.42 s"), (9.999, "10.0 s"), (12.34, "12.3 s"), (128, "128 s")]
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


# ---- the last minute --------------------------------------------------------------------------


def test_history_keeps_a_minute() -> None:
    history = RateHistory()
    for second in range(200):
        history.add(float(second), 10.0)
    (line,) = history.lines()
    assert (line[0][0], line[-1][0], len(line)) == (60.0, 0.0, 61)


def test_history_merges_what_is_too_close_to_see() -> None:
    history = RateHistory()
    for step in range(1000):
        history.add(step * 0.01, float(step))
    assert len(history) == pytest.approx(40, abs=3)
    assert next(iter(history.lines()))[-1] == (0.0, 999.0)  # the newest is always there


def test_pause_breaks_the_line() -> None:
    history = RateHistory()
    history.add(0.0, 5.0)
    history.pause()
    history.pause()
    history.add(10.0, 6.0)
    assert list(history.lines()) == [[(10.0, 5.0)], [(0.0, 6.0)]]


@pytest.mark.parametrize(
    ("highest", "ceiling"), [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (41.8, 50.0), (101.0, 200.0)]
)
def test_scale_ends_at_a_round_number(highest: float, ceiling: float) -> None:
    history = RateHistory()
    history.add(0.0, highest)
    assert history.ceiling == pytest.approx(ceiling)


# ---- the context meter ------------------------------------------------------------------------


@pytest.fixture
def meter(qtbot: QtBot) -> ContextMeter:
    result = ContextMeter(interval_ms=10)
    qtbot.addWidget(result)
    result.show()
    return result


@pytest.mark.parametrize(
    ("used", "capacity", "words"),
    [
        (0, 0, "– tokens"),
        (0, 8192, "0 / 8k tokens"),
        (1023, 8192, "1023 / 8k tokens"),
        (1234, 8192, "1.2k / 8k tokens"),
        (8191, 8192, "7.9k / 8k tokens"),
        (2500, 4000, "2.5k / 4k tokens"),
        (110_000, 131_072, "107k / 128k tokens"),
    ],
)
def test_usage_in_words(used: int, capacity: int, words: str) -> None:
    assert usage_in_words(used, capacity) == words


@pytest.mark.parametrize(
    ("used", "warning"),
    [(0, ""), (849, ""), (850, "nearly full"), (999, "nearly full"), (1000, "context full")],
)
def test_warning_begins_at_85_percent(meter: ContextMeter, used: int, warning: str) -> None:
    meter.set_usage(used, 1000)
    assert meter.warning == warning


def test_tooltip_has_the_exact_numbers(meter: ContextMeter, qtbot: QtBot) -> None:
    meter.set_usage(7400, 8192)
    qtbot.waitUntil(lambda: "7,400 of 8,192" in meter.toolTip())
    assert "792 are free" in meter.toolTip()
    assert meter.accessibleDescription().endswith("nearly full")
    assert (meter.objectName(), meter.accessibleName()) == ("context_meter", "Context")


def test_no_model_is_said(meter: ContextMeter) -> None:
    assert (meter.text, meter.share, meter.warning) == ("– tokens", 0.0, "")
    assert "No model" in meter.toolTip()
