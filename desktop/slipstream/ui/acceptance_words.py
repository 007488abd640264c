"""How far a draft was right, in words: shared by the gauge and the line under an answer."""

from __future__ import annotations

from collections.abc import Sequence

from slipstream.chat.records import SpeculationStatistics


def share_in_words(part: float, whole: float) -> str:
    """“62 %”; only none is 0 % and only all is 100 %. A dash for a part of nothing."""
    if whole <= 0:
        return "–"
    percent = round(100 * part / whole)
    if 0 < part < whole:
        percent = min(max(percent, 1), 99)
    return f"{percent} %"


def shares_in_words(parts: Sequence[float]) -> list[str]:
    """The parts of their sum, as “62 %”, that add up to 100 %; dashes for parts of nothing.

    Largest remainder, but only none is 0 % and only all is 100 %.
    """
    whole = sum(parts)
    if whole <= 0:
        return [share_in_words(part, whole) for part in parts]
    exact = [100 * part / whole for part in parts]
    shown = [max(int(share), 1) if share > 0 else 0 for share in exact]
    numbers = range(len(parts))
    while sum(shown) < 100:
        shown[max(numbers, key=lambda at: exact[at] - shown[at])] += 1
    while sum(shown) > 100:
        most = min((at for at in numbers if shown[at] > 1), key=lambda at: exact[at] - shown[at])
        shown[most] -= 1
    return [f"{share} %" for share in shown]


def length_in_words(statistics: SpeculationStatistics) -> str:
    """The mean accepted length: “2.1 tokens per round”; empty without rounds."""
    length = statistics.mean_accepted_length
    return "" if length is None else f"{length:.1f} tokens per round"
