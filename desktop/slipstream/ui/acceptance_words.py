"""How far a draft was right, in words: shared by the gauge and the line under an answer."""

from __future__ import annotations

from slipstream.chat.records import SpeculationStatistics


def share_in_words(part: float, whole: float) -> str:
    """“62 %”; only none is 0 % and only all is 100 %. A dash for a part of nothing."""
    if whole <= 0:
        return "–"
    percent = round(100 * part / whole)
    if 0 < part < whole:
        percent = min(max(percent, 1), 99)
    return f"{percent} %"


def length_in_words(statistics: SpeculationStatistics) -> str:
    """The mean accepted length: “2.1 tokens per round”; empty without rounds."""
    length = statistics.mean_accepted_length
    return "" if length is None else f"{length:.1f} tokens per round"
