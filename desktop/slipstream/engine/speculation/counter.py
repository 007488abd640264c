"""Counts what speculation does during one answer, by llama.cpp's definitions."""

from __future__ import annotations

from collections import Counter, defaultdict

from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.speculation.drafter import DrafterKind


class SpeculationCounter:
    """A round is a target pass that verifies at least one drafted token; others are plain."""

    def __init__(self) -> None:
        self.draft_seconds = 0.0  # all the drafter's own steps
        self.verify_seconds = 0.0  # target passes
        self.sample_seconds = 0.0
        self._rounds = 0
        self._plain = 0
        self._drafted = 0
        self._verified = 0
        self._accepted = 0
        self._accepted_at: list[int] = []
        self._by_drafter: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def passed(self, drafted: int, verified: int, accepted: int, kind: DrafterKind) -> None:
        """A target pass ended: of `drafted` tokens it saw `verified`, and `accepted` stand.

        `kind` tells who drafted them.
        """
        if not verified:
            self._plain += 1
            return
        self._rounds += 1
        self._drafted += drafted
        self._verified += verified
        self._accepted += accepted
        self._accepted_at += [0] * (verified - len(self._accepted_at))
        self._by_drafter[kind].update(
            rounds=1, drafted=drafted, verified=verified, accepted=accepted
        )
        for position in range(accepted):
            self._accepted_at[position] += 1

    def statistics(self) -> SpeculationStatistics:
        """The figures as they stand."""
        return SpeculationStatistics(
            rounds=self._rounds,
            plain_passes=self._plain,
            drafted=self._drafted,
            verified=self._verified,
            accepted=self._accepted,
            accepted_at=tuple(self._accepted_at),
            draft_seconds=self.draft_seconds,
            verify_seconds=self.verify_seconds,
            sample_seconds=self.sample_seconds,
            by_drafter={str(kind): dict(counts) for kind, counts in self._by_drafter.items()}
            if len(self._by_drafter) > 1
            else {},
        )
