"""Pace profiles as plain values, to be kept between starts for a pair of models on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from slipstream.chat.ports import MeasurementStore
from slipstream.engine.machine import file_label, machine_name
from slipstream.engine.speculation.acceptance_model import AcceptanceProfile
from slipstream.engine.speculation.cost_model import CostProfile
from slipstream.engine.speculation.paced_drafter import PaceProfile


class PaceMemory:
    """Keeps the profile of one pair; without a store it remembers nothing."""

    def __init__(self, store: MeasurementStore | None, key: str) -> None:
        self._store = store
        self._key = key

    def load(self) -> PaceProfile | None:
        """What was kept, None where there is nothing usable."""
        values = self._store.load(self._key) if self._store is not None else None
        if values is None:
            return None
        try:
            return _profile(values)
        except (TypeError, ValueError, AttributeError, LookupError):
            return None

    def save(self, profile: PaceProfile) -> None:
        """Keep this one."""
        if self._store is not None:
            self._store.save(self._key, _values(profile))


class Computed(Protocol):
    """How a session computes."""

    @property
    def n_threads(self) -> int:
        """Threads for one token at a time."""

    @property
    def n_threads_batch(self) -> int:
        """Threads for several tokens at once."""

    @property
    def flash_attention(self) -> bool:
        """Whether with flash attention."""


def pair_key(target: Path, draft: Path | None, kind: str, computed: Computed) -> str:
    """Names a pair of models, how they compute and the machine; moved files keep their name."""
    files = " + ".join(file_label(path) for path in (target, draft) if path is not None)
    threads = f"{computed.n_threads} and {computed.n_threads_batch} threads"
    attention = "flash attention" if computed.flash_attention else "plain attention"
    return f"pace: {files}, {kind}, {threads}, {attention}, {machine_name()}"


def _values(profile: PaceProfile) -> dict[str, object]:
    return {
        "passes": {str(rows): seconds for rows, seconds in profile.costs.passes.items()},
        "steps": dict(profile.costs.steps),
        "catch_up": dict(profile.costs.catch_up),
        "change": profile.costs.change,
        "acceptance": {
            kind: {
                "positions": {str(at): list(counts) for at, counts in kept.positions.items()},
                "bins": {str(at): list(counts) for at, counts in kept.bins.items()},
            }
            for kind, kept in profile.acceptance.items()
        },
    }


def _profile(values: Mapping[str, object]) -> PaceProfile:
    acceptance = cast(Mapping[str, Mapping[str, Mapping[str, list[float]]]], values["acceptance"])
    return PaceProfile(
        CostProfile(
            {int(rows): seconds for rows, seconds in _numbers(values["passes"]).items()},
            _numbers(values["steps"]),
            _numbers(values["catch_up"]),
            max(0.0, float(cast(float, values["change"]))),
        ),
        {
            kind: AcceptanceProfile(_counts(kept["positions"]), _counts(kept["bins"]))
            for kind, kept in acceptance.items()
        },
    )


def _numbers(values: object) -> dict[str, float]:
    found = {str(key): float(value) for key, value in cast(Mapping[str, float], values).items()}
    if not all(0 < seconds < 1e6 for seconds in found.values()):
        raise ValueError("a duration is out of range")
    return found


def _counts(values: Mapping[str, list[float]]) -> dict[int, tuple[float, float]]:
    found = {int(at): (float(counts[0]), float(counts[1])) for at, counts in values.items()}
    if not all(0 <= accepted <= seen < 1e6 for accepted, seen in found.values()):
        raise ValueError("a count is out of range")
    return found
