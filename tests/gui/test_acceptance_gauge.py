"""The acceptance gauge and the line under an answer: right figures, each with its denominator."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint
from pytestqt.qtbot import QtBot

from slipstream.chat.records import SpeculationStatistics
from slipstream.ui.acceptance_words import share_in_words, shares_in_words
from slipstream.ui.gauges.acceptance import AcceptanceGauge
from slipstream.ui.transcript.wording import speculation_words

FIGURES = SpeculationStatistics(
    rounds=97,
    plain_passes=6,
    drafted=194,
    verified=194,
    accepted=107,
    accepted_at=(70, 37),
    draft_seconds=0.8,
    verify_seconds=3.0,
    sample_seconds=0.2,
)
PLAIN = str.maketrans({"\u00a0": " "})


class PaintCounter(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


@pytest.fixture
def gauge(qtbot: QtBot) -> AcceptanceGauge:
    result = AcceptanceGauge(interval_ms=100)
    qtbot.addWidget(result)
    result.resize(254, result.sizeHint().height())
    with qtbot.waitExposed(result):
        result.show()
    return result


def test_before_the_first_round_it_says_so(gauge: AcceptanceGauge) -> None:
    assert gauge.objectName() == "acceptance_gauge"
    assert gauge.empty
    assert gauge.accessibleName() == "Acceptance"
    assert gauge.accessibleDescription() == "Nothing was drafted yet."
    gauge.show_figures(SpeculationStatistics(plain_passes=3, draft_seconds=0.1, verify_seconds=1))
    assert gauge.empty
    assert gauge.explanation_at(QPoint(10, 10)).startswith("Nothing was drafted yet.")


def test_figures(gauge: AcceptanceGauge) -> None:
    gauge.show_figures(FIGURES)
    assert not gauge.empty
    assert (gauge.rate, gauge.aside) == ("55 %", "2.1 tokens per round")
    assert gauge.bars == pytest.approx((70 / 97, 37 / 97))
    assert [(part.name, part.seconds) for part in gauge.time_split] == [
        ("drafting", 0.8),
        ("verifying", 3.0),
        ("sampling", 0.2),
    ]


def test_every_figure_names_its_denominator(gauge: AcceptanceGauge) -> None:
    gauge.show_figures(FIGURES)
    lines = gauge.explanation.split("\n")
    assert lines[:5] == [
        "accepted 107 of 194 verified tokens",
        "1 + accepted / rounds = 1 + 107 / 97 = 2.10; the 1 is the target's own token",
        "position 1: accepted in 70 of 97 rounds",
        "position 2: accepted in 37 of 97 rounds",
        "drafting: 0.80 s of 4.00 s (20 %); proposing tokens",
    ]
    assert lines[5].startswith("verifying: 3.00 s of 4.00 s (75 %)")
    assert lines[6].startswith("sampling: 0.20 s of 4.00 s (5 %)")


def test_tooltip_explains_what_the_pointer_is_on(gauge: AcceptanceGauge) -> None:
    gauge.show_figures(FIGURES)
    gauge.resize(gauge.width(), gauge.sizeHint().height())
    at = gauge.explanation_at
    assert at(QPoint(10, 10)) == gauge.rate_explanation
    assert at(QPoint(240, 10)) == gauge.length_explanation
    assert at(QPoint(60, 60)) == "position 1: accepted in 70 of 97 rounds"
    assert at(QPoint(54 + 25 + 12, 60)) == "position 2: accepted in 37 of 97 rounds"
    assert at(QPoint(240, 60)).count("\n") == 1  # beside the bars: all of them
    heights = range(80, gauge.height())
    bar = [at(QPoint(60, y)) for y in heights]
    assert any(words.startswith("drafting: 0.80 s") for words in bar)
    bar = [at(QPoint(150, y)) for y in heights]
    assert any(words.startswith("verifying: 3.00 s") for words in bar)


def test_description_follows_the_figures(gauge: AcceptanceGauge, qtbot: QtBot) -> None:
    gauge.show_figures(FIGURES)
    words = gauge.accessibleDescription()
    assert words.startswith("55 % accepted, 2.1 tokens per round. accepted 107 of 194 verified")
    assert "position 2: accepted in 37 of 97 rounds" in words
    assert "position 2: accepted in 37 of 97 rounds" in gauge.toolTip()
    gauge.reset()
    qtbot.waitUntil(lambda: gauge.accessibleDescription() == "Nothing was drafted yet.")
    assert gauge.empty


def test_more_positions_than_eight_share_the_width(gauge: AcceptanceGauge) -> None:
    deep = SpeculationStatistics(
        rounds=10, drafted=200, verified=200, accepted=100, accepted_at=tuple(range(20, 0, -1))
    )
    gauge.show_figures(deep)
    assert len(gauge.bars) == 20
    assert gauge.explanation_at(QPoint(253, 60)).startswith("position 20: accepted in 1 of 10")


def test_without_figures_it_is_a_line_of_words(gauge: AcceptanceGauge) -> None:
    gauge.reset()
    assert gauge.sizeHint().height() <= 20
    gauge.show_figures(FIGURES)
    assert gauge.sizeHint().height() >= 100
    gauge.reset()
    assert gauge.sizeHint().height() <= 20


def test_room_is_there_before_the_first_figures_of_an_answer(gauge: AcceptanceGauge) -> None:
    gauge.set_answering(True)
    before = (gauge.sizeHint(), gauge.minimumSizeHint())
    assert before[1].width() <= 248
    many = SpeculationStatistics(
        rounds=10**6,
        drafted=10**8,
        verified=10**8,
        accepted=10**8,
        accepted_at=(10**6,) * 32,
        draft_seconds=1e5,
    )
    for figures in (FIGURES, many, SpeculationStatistics(), FIGURES):
        gauge.show_figures(figures)
        gauge.grab()
        assert (gauge.sizeHint(), gauge.minimumSizeHint()) == before
    gauge.set_answering(False)
    assert (gauge.sizeHint(), gauge.minimumSizeHint()) == before


def test_burst_of_rounds_is_painted_at_most_ten_times_a_second(
    gauge: AcceptanceGauge, qtbot: QtBot
) -> None:
    counter = PaintCounter()
    gauge.installEventFilter(counter)
    start = time.monotonic()
    for rounds in range(1, 100):
        gauge.show_figures(
            SpeculationStatistics(rounds=rounds, drafted=rounds, verified=rounds, accepted=rounds)
        )
        qtbot.wait(4)
    qtbot.waitUntil(lambda: gauge.idle)
    gauge.removeEventFilter(counter)
    assert 2 <= counter.count <= (time.monotonic() - start) * 10 + 1


def test_same_figures_ask_for_no_repaint(gauge: AcceptanceGauge, qtbot: QtBot) -> None:
    gauge.show_figures(FIGURES)
    qtbot.waitUntil(lambda: gauge.idle)
    gauge.show_figures(FIGURES)
    assert gauge.idle


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        *((0, 0, "–"), (0, 194, "0 %"), (1, 1000, "1 %"), (120, 194, "62 %")),
        *((999, 1000, "99 %"), (1000, 1000, "100 %")),
    ],
)
def test_only_none_is_zero_and_only_all_is_a_hundred(part: int, whole: int, words: str) -> None:
    assert share_in_words(part, whole) == words


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((0.8, 3.0, 0.2), ["20 %", "75 %", "5 %"]),
        ((1.255, 1.255, 0.49), ["42 %", "42 %", "16 %"]),  # each rounded: 42 + 42 + 16
        ((10.6, 84.7, 4.7), ["10 %", "85 %", "5 %"]),  # each rounded: 11 + 85 + 5
        ((1.0, 1.0, 1.0), ["34 %", "33 %", "33 %"]),
        ((0.001, 9.0, 0.002), ["1 %", "98 %", "1 %"]),  # only none is nothing
        ((0.0, 3.0, 0.0), ["0 %", "100 %", "0 %"]),
        ((0.0, 0.0, 0.0), ["–", "–", "–"]),
    ],
)
def test_shares_add_up_to_a_hundred(parts: tuple[float, ...], words: list[str]) -> None:
    assert shares_in_words(parts) == words


def test_time_in_the_tooltip_adds_up(gauge: AcceptanceGauge) -> None:
    gauge.show_figures(
        replace(FIGURES, draft_seconds=10.6, verify_seconds=84.7, sample_seconds=4.7)
    )
    shares = [line.split("(")[1].split(" %")[0] for line in gauge.explanation.split("\n")[-3:]]
    assert shares == ["10", "85", "5"]


# ---- the line under an answer -----------------------------------------------------------------


def test_words_under_an_answer() -> None:
    words = speculation_words(FIGURES).translate(PLAIN)
    assert words == "55 % of 194 drafted accepted · 2.1 tokens per round"


def test_no_words_where_nothing_was_drafted() -> None:
    assert speculation_words(SpeculationStatistics(plain_passes=50)) == ""


def test_rate_is_of_verified_tokens_where_not_all_were() -> None:
    cut = SpeculationStatistics(rounds=10, drafted=40, verified=38, accepted=19)
    words = speculation_words(cut).translate(PLAIN)
    assert words == "50 % of 38 verified accepted · 2.9 tokens per round"
