"""What target passes and draft steps cost on this machine, measured and kept up to date."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

_REMEMBERED = 9  # observations a figure is the median of
_FOLLOW = 0.1  # how fast the common factor follows
_MOST = 0.6  # and how fast at most, where it was long without a correction
_FEW = 4  # passes after which a plain one still tells what a change of rows costs
_OUTLIER = 4.0  # a pass that was interrupted by another program says nothing of its cost


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Costs as they are kept for a pair of models on a machine, all in seconds.

    `passes` maps the rows of a target pass to its duration, `steps` the way to draft to one draft
    step, `catch_up` the same to evaluating one more token of the conversation. `change` is what a
    pass takes longer whose rows differ from the pass before: llama.cpp then builds its graph anew.
    """

    passes: Mapping[int, float] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    catch_up: Mapping[str, float] = field(default_factory=dict)
    change: float = 0.0


class Figure:
    """A duration in seconds: the median of the latest observations."""

    def __init__(self, first: float) -> None:
        self._seen = deque([first], maxlen=_REMEMBERED)
        self.value = first

    def add(self, seconds: float) -> None:
        """Take an observation in."""
        self._seen.append(seconds)
        self.value = median(self._seen)


class CostModel:
    """Durations of target passes by rows, and of draft steps, as they are now.

    Passes slow down together as the context grows or the machine gets busy, so all follow one
    factor, which every pass corrects; each number of rows but one corrects a figure of its own.
    """

    def __init__(self, profile: CostProfile) -> None:
        self._passes = {rows: Figure(seconds) for rows, seconds in profile.passes.items()}
        self._steps = {kind: Figure(seconds) for kind, seconds in profile.steps.items()}
        self._catch_up = {kind: Figure(seconds) for kind, seconds in profile.catch_up.items()}
        self._change = Figure(profile.change)
        self._latest = 1  # rows of the pass before
        self._since_plain = 0  # passes since one over one row
        self._factor = 1.0
        self._table: list[float] = []  # by rows, until a figure changes

    @property
    def is_known(self) -> bool:
        """Whether the cost of a plain pass is known, without which nothing can be compared."""
        return 1 in self._passes

    @property
    def latest_rows(self) -> int:
        """Rows of the pass before."""
        return self._latest

    @property
    def change_seconds(self) -> float:
        """How much longer a pass takes whose rows differ from the pass before."""
        return self._factor * self._change.value

    def pass_seconds(self, rows: int) -> float:
        """A target pass over as many rows as the one before; in proportion between known ones."""
        return self._factor * self._measured_pass(rows)

    def next_pass_seconds(self, rows: int) -> float:
        """The next pass, over so many rows."""
        return self.pass_seconds(rows) + self.change_seconds * (rows != self._latest)

    def step_seconds(self, kind: str) -> float:
        """One draft step; 0 for what drafts without a model or is not measured."""
        figure = self._steps.get(kind)
        return figure.value if figure else 0.0

    def catch_up_seconds(self, kind: str) -> float:
        """For a drafter to evaluate one more token of the conversation, many at a time."""
        figure = self._catch_up.get(kind)
        return figure.value if figure else 0.0

    def observe_pass(self, rows: int, seconds: float) -> None:
        """A target pass over so many rows took so long."""
        changed, self._latest = rows != self._latest, rows
        if seconds <= 0:
            return
        if not self._passes:
            self._passes[rows] = Figure(seconds)
            self._table = []
            return
        change = self.change_seconds if changed else 0.0
        ratio = seconds / (self.pass_seconds(rows) + change)
        if not 1 / _OUTLIER < ratio < _OUTLIER:
            return
        if rows == 1 and 1 in self._passes:
            self._observe_plain(ratio, seconds, changed=changed)
            return
        self._table = []
        self._since_plain += 1
        self._factor *= ratio**_FOLLOW
        own = seconds / self._factor - (self._change.value if changed else 0.0)
        if own > 0:
            self._passes.setdefault(rows, Figure(own)).add(own)

    def _observe_plain(self, ratio: float, seconds: float, *, changed: bool) -> None:
        """The figure of one row stays as it is, so that the factor means something.

        The longer no plain pass was seen, the more this one tells.
        """
        self._factor *= ratio ** min(_MOST, _FOLLOW * (1 + self._since_plain))
        if changed and self._since_plain <= _FEW:  # else it may as well be the factor
            self._change.add(max(0.0, seconds / self._factor - self._passes[1].value))
        self._since_plain = 0

    def observe_step(self, kind: str, seconds: float) -> None:
        """A draft step of this kind took so long."""
        _observe(self._steps, kind, seconds)

    def observe_catch_up(self, kind: str, seconds: float) -> None:
        """Evaluating one token of the conversation took the drafter so long."""
        _observe(self._catch_up, kind, seconds)

    def profile(self) -> CostProfile:
        """The figures as they stand, to be kept."""
        return CostProfile(
            {rows: self.pass_seconds(rows) for rows in sorted(self._passes)},
            {kind: figure.value for kind, figure in self._steps.items()},
            {kind: figure.value for kind, figure in self._catch_up.items()},
            self.change_seconds,
        )

    def _measured_pass(self, rows: int) -> float:
        while len(self._table) <= rows:
            self._table.append(self._interpolated(len(self._table)))
        return self._table[rows]

    def _interpolated(self, rows: int) -> float:
        known = sorted(self._passes)
        if not known:
            return 0.0
        at = bisect_left(known, rows)
        if at == 0 or (at < len(known) and known[at] == rows):
            return self._passes[known[at]].value
        low = known[at - 1]
        below = self._passes[low].value
        if at < len(known):
            high = known[at]
            return below + (self._passes[high].value - below) * (rows - low) / (high - low)
        # beyond what was measured: by the slope of all that is known
        first = known[0]
        rise = max(0.0, below - self._passes[first].value)
        slope = rise / (low - first) if low > first else below / 2
        return below + slope * (rows - low)


def _observe(figures: dict[str, Figure], kind: str, seconds: float) -> None:
    if seconds <= 0:
        return
    if kind in figures:
        figures[kind].add(seconds)
    else:
        figures[kind] = Figure(seconds)
