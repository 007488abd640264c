"""How likely a drafted token is to be accepted, by its position and by the draft's confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BINS = 10
_KEPT = 0.98  # of the weight of what was seen before, at each new observation of its kind
_PRIOR_WEIGHT = 3.0
_OPTIMISM = 0.7  # of the confidence, before anything was seen
_FIRST = 0.75  # acceptance by position before anything was seen
_DOUBT = 1.5  # standard deviations to an upper bound
_NEARLY_CERTAIN = 0.97
_FADED = 1 - 1 / 512
_TRANSFER = 4.0  # how many observations the position before counts for


@dataclass(frozen=True, slots=True)
class AcceptanceProfile:
    """Weighted counts, (accepted, seen), by draft position from 0 and by confidence bin."""

    positions: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    bins: Mapping[int, tuple[float, float]] = field(default_factory=dict)


class _Counts:
    """Accepted and seen, older observations counting less."""

    def __init__(self, accepted: float = 0.0, seen: float = 0.0) -> None:
        self.accepted = accepted
        self.seen = seen

    def add(self, accepted: bool) -> None:
        self.accepted = _KEPT * self.accepted + accepted
        self.seen = _KEPT * self.seen + 1

    def rate(self, prior: float, weight: float) -> float:
        return (self.accepted + prior * weight) / (self.seen + weight)


class AcceptanceModel:
    """What one way of drafting can expect; starts optimistic, so that it is tried at all.

    All probabilities are conditional: of the token, given that those before it were accepted.
    """

    def __init__(self, profile: AcceptanceProfile | None = None) -> None:
        profile = profile or AcceptanceProfile()
        self._positions = {at: _Counts(*counts) for at, counts in profile.positions.items()}
        self._bins = {at: _Counts(*counts) for at, counts in profile.bins.items()}

    @property
    def seen(self) -> float:
        """Weight of the first position's observations."""
        counts = self._positions.get(0)
        return counts.seen if counts else 0.0

    def at_position(self, position: int) -> float:
        """For the token at this position of a draft, from 0.

        Positions seldom reached lean on the ones before them.
        """
        rate, weight = _FIRST, _PRIOR_WEIGHT
        for index in range(position + 1):
            counts = self._positions.get(index)
            rate = counts.rate(rate, weight) if counts else rate
            weight = _TRANSFER
        return rate

    def at_best(self, position: int) -> float:
        """What the token at this position may well turn out to have, after all that was seen.

        An upper bound of confidence; what was never seen may be nearly certain.
        """
        counts = self._positions.get(position) or _Counts()
        rate, seen = self.at_position(position), counts.seen + _PRIOR_WEIGHT
        return min(_NEARLY_CERTAIN, rate + _DOUBT * math.sqrt(rate * (1 - rate) / seen))

    def fade(self) -> None:
        """Trust the counts a little less: a token was written without drafting."""
        for counts in (*self._positions.values(), *self._bins.values()):
            counts.accepted *= _FADED
            counts.seen *= _FADED

    def at_confidence(self, confidence: float) -> float:
        """For a token the drafter is so sure of, from 0 to 1."""
        index = _bin(confidence)
        prior = _OPTIMISM * (index + 0.5) / BINS + (1 - _OPTIMISM) * self.at_position(0)
        counts = self._bins.get(index)
        return counts.rate(prior, _PRIOR_WEIGHT) if counts else prior

    def observe(self, confidences: Sequence[float], accepted: int) -> None:
        """Of a draft with these confidences the first `accepted` tokens stand.

        The token after those was refused; nothing is known of the ones behind it.
        """
        for index, confidence in enumerate(confidences[: accepted + 1]):
            stands = index < accepted
            self._positions.setdefault(index, _Counts()).add(stands)
            self._bins.setdefault(_bin(confidence), _Counts()).add(stands)

    def profile(self) -> AcceptanceProfile:
        """The counts as they stand, to be kept."""
        return AcceptanceProfile(
            {at: (counts.accepted, counts.seen) for at, counts in self._positions.items()},
            {at: (counts.accepted, counts.seen) for at, counts in self._bins.items()},
        )


def _bin(confidence: float) -> int:
    return min(BINS - 1, max(0, int(confidence * BINS)))
