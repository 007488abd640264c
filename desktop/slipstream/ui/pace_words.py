"""What pacing does now, in words."""

from __future__ import annotations

from slipstream.engine.speculation.drafter import PaceStatus

_EVEN = 0.02  # gains this near to 1 are no gain


def pace_words(status: PaceStatus | None) -> str:
    """How fast drafting is beside plain decoding, or why nothing is drafted; one or two lines."""
    if status is None or (status.gain is None and status.predicted_gain is None):
        return "Speed with and without is measured with the first answer."
    if status.depth == 0 and (status.predicted_gain or 0.0) < 1.0 + _EVEN:
        return f"Not drafting now: {_why_off(status.predicted_gain)}.{_age(status)}"
    drafted = "1 token" if status.depth == 1 else f"{status.depth} tokens"
    now = f"Drafted {drafted} last" if status.depth else "Nothing to draft from just now"
    return f"{_gain(status.gain)} · {now}.{_age(status)}"


def _gain(gain: float | None) -> str:
    if gain is None:
        return "Measuring"
    if abs(gain - 1) <= _EVEN:
        return "As fast as without a draft here"
    return f"{gain:.2f}× as fast as without here"


def _why_off(predicted: float | None) -> str:
    if predicted is None:
        return "nothing was found to draft from"
    return f"it would be {min(predicted, 1.0):.2f}× as fast here"


def _age(status: PaceStatus) -> str:
    """How old the measurement is that drafting is compared with."""
    age = status.plain_age_seconds
    if age is None or age < 10:
        return ""
    if age < 90:
        return f" Plain speed measured {round(age)} s ago."
    return f" Plain speed measured {round(age / 60)} min ago."
