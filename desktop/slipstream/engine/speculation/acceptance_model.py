"""How likely a drafted token is to be accepted, by its position and by the draft's confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BINS = 10
_KEPT = 0.98  # of the weight of what was seen before, at each new observation of its kind
_KEPT_RECENT = 0.85  # the same within an answer, whose text may be easier or harder than others
_USUAL_WEIGHT = 4.0  # how many observations of this answer the earlier ones count for
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
    """Accepted and seen, older observations counting less; of all answers, and of this one."""

    __slots__ = ("accepted", "recent_accepted", "recent_seen", "seen")

    def __init__(self, accepted: float = 0.0, seen: float = 0.0) -> None:
        self.accepted = accepted
        self.seen = seen
        self.forget_answer()

    def forget_answer(self) -> None:
        self.recent_accepted = self.recent_seen = 0.0

    def add(self, accepted: bool) -> None:
        self.accepted = _KEPT * self.accepted + accepted
        self.seen = _KEPT * self.seen + 1
        self.recent_accepted = _KEPT_RECENT * self.recent_accepted + accepted
        self.recent_seen = _KEPT_RECENT * self.recent_seen + 1

    def rate(self, prior: float, weight: float) -> float:
        return (self.accepted + prior * weight) / (self.seen + weight)

    def rate_here(self, prior: float, weight: float) -> float:
        usual = self.rate(prior, weight)
        return (self.recent_accepted + usual * _USUAL_WEIGHT) / (self.recent_seen + _USUAL_WEIGHT)


class AcceptanceModel:
    """What one way of drafting can expect; starts optimistic, so that it is tried at all.

    All probabilities are conditional: of the token, given that those before it were accepted.
    Where drafts are as good as the text allows and the drafter does not know how good that is (one
    that copies), `by_answer` has the latest observations of an answer count for more.
    """

    def __init__(
        self, profile: AcceptanceProfile | None = None, *, by_answer: bool = False
    ) -> None:
        self._rate = _Counts.rate_here if by_answer else _Counts.rate
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
        return self._by_position(position + 1)[-1]

    def _by_position(self, count: int) -> list[float]:
        rates, rate, weight = [], _FIRST, _PRIOR_WEIGHT
        for position in range(count):
            counts = self._positions.get(position)
            rate = self._rate(counts, rate, weight) if counts else rate
            weight = _TRANSFER
            rates.append(rate)
        return rates

    def chances(self, confidences: Sequence[float]) -> list[float]:
        """For each token of a draft the chance that it and all before it are accepted."""
        # drafts that are copied have one confidence throughout
        own = {confidence: self.at_confidence(confidence) for confidence in set(confidences)}
        chances: list[float] = []
        chance = 1.0
        for confidence, rate in zip(confidences, self._by_position(len(confidences)), strict=True):
            chance *= (own[confidence] + rate) / 2 if chances else own[confidence]
            chances.append(chance)
        return chances

    def at_best(self, position: int) -> float:
        """What the token at this position may well turn out to have, after all that was seen.

        An upper bound of confidence; what was never seen may be nearly certain.
        """
        counts = self._positions.get(position) or _Counts()
        rate, seen = self.at_position(position), counts.seen + _PRIOR_WEIGHT
        return min(_NEARLY_CERTAIN, rate + _DOUBT * math.sqrt(rate * (1 - rate) / seen))

    def at_worst(self, position: int, confidence: float) -> float:
        """What the token may well turn out to have only: a lower bound, by both signs."""
        here = self._positions.get(position) or _Counts()
        alike = self._bins.get(_bin(confidence)) or _Counts()
        bounds = [
            rate - _DOUBT * math.sqrt(rate * (1 - rate) / (counts.seen + _PRIOR_WEIGHT))
            for rate, counts in (
                (self.at_position(position), here),
                (self.at_confidence(confidence), alike),
            )
        ]
        return max(0.0, bounds[1] if position == 0 else sum(bounds) / 2)

    def begin_answer(self) -> None:
        """Another text begins: it is taken for one like all before."""
        for counts in (*self._positions.values(), *self._bins.values()):
            counts.forget_answer()

    def fade(self, tokens: int = 1) -> None:
        """Trust the counts a little less: so many tokens were written without drafting."""
        kept = _FADED**tokens
        for counts in (*self._positions.values(), *self._bins.values()):
            counts.accepted *= kept
            counts.seen *= kept

    def at_confidence(self, confidence: float) -> float:
        """For a token the drafter is so sure of, from 0 to 1."""
        index = _bin(confidence)
        prior = _OPTIMISM * (index + 0.5) / BINS + (1 - _OPTIMISM) * self.at_position(0)
        counts = self._bins.get(index)
        return self._rate(counts, prior, _PRIOR_WEIGHT) if counts else prior

    def observe(self, confidences: Sequence[float], accepted: int) -> None:
        """Of a draft with these confidences the first `accepted` tokens stand.

        The token after those was refused; nothing is known of the ones behind it.
        """
        for index, confidence in enumerate(confidences[: accepted + 1]):
            self.observe_token(index, confidence, index < accepted)

    def observe_token(self, position: int, confidence: float, stands: bool) -> None:
        """The token at this position of a draft stands or not; those before it do."""
        self._positions.setdefault(position, _Counts()).add(stands)
        self._bins.setdefault(_bin(confidence), _Counts()).add(stands)

    def profile(self) -> AcceptanceProfile:
        """The counts as they stand, to be kept."""
        return AcceptanceProfile(
            {at: (counts.accepted, counts.seen) for at, counts in self._positions.items()},
            {at: (counts.accepted, counts.seen) for at, counts in self._bins.items()},
        )


def _bin(confidence: float) -> int:
    return min(BINS - 1, max(0, int(confidence * BINS)))
