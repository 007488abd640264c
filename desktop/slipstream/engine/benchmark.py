"""Compares ways to draft with plain decoding, by paired and interleaved runs of the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from slipstream.chat.ports import MeasurementStore
from slipstream.chat.records import FinishReason, Message, Role, SpeculationStatistics
from slipstream.engine.events import Finished, TextRun
from slipstream.engine.requests import AnswerRequest, DraftRequest, Pace
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import (
    LONGEST_PACED,
    Drafter,
    DrafterKind,
    DraftSettings,
    NullDrafter,
)
from slipstream.engine.speculation.factory import open_drafter
from slipstream.engine.target import Target
from slipstream.errors import UserError

PLAIN = "plain"
FIXED_DEPTHS = (1, 2, 4, 8)
FEWEST_TOKENS = 16
"""Shorter answers are left out: their speed is that of a few rounds."""

_PASSAGE = (
    "The old lighthouse stood at the end of the pier. Every evening its keeper climbed the ninety "
    "steps and lit the lamp. Ships far out at sea saw the light and turned away from the rocks. "
    "In winter the storms were so strong that the keeper could not leave for weeks, and the "
    "fishermen brought him bread and oil whenever the sea was calm."
)
_CODE = (
    "def total(items):\n    result = 0\n    for item in items:\n"
    "        result = result + item.price * item.count\n    return result\n\n\n"
    "def average(items):\n    if not items:\n        return 0\n"
    "    return total(items) / len(items)\n"
)

TASKS: Mapping[str, str] = {
    "explain": "Explain in a few sentences how a rainbow comes about.",
    "code": "Write a Python function that tells whether a word is a palindrome, with a docstring.",
    "rewrite": f"Repeat the following text exactly, word for word:\n\n{_PASSAGE}",
    "copy": f"{_PASSAGE}\n\n{_PASSAGE}\n\nWrite this text once more.",
    "edit": f"Rename the function total to sum_of in this code and print all of it:\n\n{_CODE}",
    "summarise": f"Summarise the following text in two sentences:\n\n{_PASSAGE}",
    "list": "List ten common fruits, one a line, with their colours.",
    "story": "Tell a short story about a fox who learns to swim.",
}
"""What people ask of a model, from free text to text that is mostly copied."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to decode; `request` is None for plain decoding."""

    name: str
    request: DraftRequest | None

    @property
    def is_auto(self) -> bool:
        """Whether it drafts only as far as it pays."""
        return self.request is not None and self.request.pace is Pace.AUTO

    @property
    def source(self) -> tuple[object, ...] | None:
        """What drafts, at whatever pace; None for plain decoding."""
        return None if self.request is None else (self.request.kind, self.request.path)


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its speed in tokens per second, and what drafting did."""

    variant: str
    task: str
    temperature: float
    repeat: int
    tokens_per_second: float
    tokens: int
    speculation: SpeculationStatistics
    depths: Mapping[int, int]  # rounds by the number of tokens drafted


@dataclass(frozen=True, slots=True)
class Comparison:
    """A variant beside plain decoding, over runs of the same task, temperature and repeat.

    `ratio` is the median of the paired ratios, `low` and `high` their quartiles; None where no
    pair has both speeds.
    """

    variant: str
    tokens_per_second: float
    ratio: float | None
    low: float | None
    high: float | None
    acceptance_rate: float | None
    mean_accepted_length: float | None
    depths: Mapping[int, int]


def variants_for(
    drafts: Sequence[Path], *, has_mtp: bool, depths: Sequence[int] = FIXED_DEPTHS
) -> tuple[Variant, ...]:
    """Plain decoding, then every way to draft at fixed depths and under the auto pace."""
    sources: list[tuple[str, DrafterKind | None, Path | None]] = [
        ("prompt-lookup", DrafterKind.PROMPT_LOOKUP, None)
    ]
    if has_mtp:
        sources.append(("mtp", DrafterKind.MTP, None))
    sources += [(path.stem, None, path) for path in drafts]
    made = [Variant(PLAIN, None)]
    for name, kind, path in sources:
        for depth in depths:
            settings = DraftSettings(n_draft_max=depth)
            request = DraftRequest(kind, path, settings, pace=Pace.FIXED)
            made.append(Variant(f"{name} depth {depth}", request))
        settings = DraftSettings(n_draft_max=LONGEST_PACED)
        looks_up = kind is not DrafterKind.PROMPT_LOOKUP
        request = DraftRequest(kind, path, settings, pace=Pace.AUTO, looks_up=looks_up)
        made.append(Variant(f"{name} auto", request))
    return tuple(made)


@dataclass
class Benchmark:
    """Runs every variant on every task, `repeats` times, in turn.

    Interleaving spreads what else the machine does evenly over the variants; each ratio is taken
    between neighbours. Drafters stay open in between, one per source.
    """

    target: Target
    variants: Sequence[Variant]
    tasks: Mapping[str, str] = field(default_factory=lambda: TASKS)
    temperatures: Sequence[float] = (0.0,)
    repeats: int = 3
    max_tokens: int = 96
    measurements: MeasurementStore | None = None

    @property
    def total(self) -> int:
        """How many answers there will be."""
        return len(self.variants) * len(self.tasks) * len(self.temperatures) * self.repeats

    def run(self, skipped: dict[str, UserError]) -> Iterator[Run]:
        """Yield each run as it ends; cancelling the session ends them.

        Variants that cannot be used are noted in `skipped` by name before the first run; the
        others go on. The session has no drafter afterwards.
        """
        session = self.target.session
        drafters: dict[str, Drafter] = {}
        session.set_drafter(NullDrafter())
        try:
            for variant in self.variants:
                try:
                    drafters[variant.name] = self._opened(variant, drafters)
                except UserError as error:
                    skipped[variant.name] = error
            yield from self._rounds(drafters)
        finally:
            session.exchange_drafter(NullDrafter())
            for drafter in set(drafters.values()):
                drafter.close()

    def _opened(self, variant: Variant, drafters: Mapping[str, Drafter]) -> Drafter:
        """The variant's drafter; one source at several fixed depths is opened once."""
        request = variant.request
        if request is None:
            return NullDrafter()
        for other in self.variants:
            same = other.request is not None and other.name in drafters
            if same and _source(other.request) == _source(request) and request.pace is Pace.FIXED:
                return drafters[other.name]
        return open_drafter(request, self.target.model, self.target.session, self.measurements)

    def _rounds(self, drafters: Mapping[str, Drafter]) -> Iterator[Run]:
        turn = 0
        for repeat in range(self.repeats):
            for task, text in self.tasks.items():
                for temperature in self.temperatures:
                    order = [variant for variant in self.variants if variant.name in drafters]
                    turn += 1
                    shift = turn % len(order)
                    for variant in (*order[shift:], *order[:shift]):
                        drafter = drafters[variant.name]
                        run = self._answer(variant, drafter, task, text, temperature, repeat)
                        if run is None:
                            return
                        yield run

    def _answer(
        self,
        variant: Variant,
        drafter: Drafter,
        task: str,
        text: str,
        temperature: float,
        repeat: int,
    ) -> Run | None:
        """One answer; None when it was cancelled."""
        session = self.target.session
        session.exchange_drafter(drafter)
        if variant.request is not None:
            drafter.configure(variant.request.settings)
        prepared = self.target.prepare(
            AnswerRequest(
                (Message("", Role.USER, text, datetime.now(UTC)),),
                settings=SamplerSettings(
                    temperature=temperature, max_tokens=self.max_tokens, seed=repeat
                ),
            )
        )
        depths: Counter[int] = Counter()
        finished = None
        for event in session.generate(prepared.request):
            if isinstance(event, TextRun):
                depths[event.drafted] += 1
            elif isinstance(event, Finished):
                finished = event
        assert finished is not None
        if finished.reason is FinishReason.CANCELLED:
            return None
        if finished.error is not None:
            raise finished.error
        rate = finished.statistics.decode_tokens_per_second or 0.0
        tokens = finished.statistics.generated_tokens
        return Run(
            variant.name, task, temperature, repeat, rate, tokens, finished.speculation, depths
        )


def _source(request: DraftRequest | None) -> tuple[object, ...] | None:
    return None if request is None else (request.kind, request.path, request.pace)


def compare(runs: Sequence[Run], variant: str, task: str | None = None) -> Comparison:
    """The variant's runs, of one task or of all, beside plain decoding's."""
    told = [run for run in runs if run.tokens >= FEWEST_TOKENS and task in (None, run.task)]
    own = [run for run in told if run.variant == variant]
    plain = {_place(run): run.tokens_per_second for run in told if run.variant == PLAIN}
    ratios = sorted(
        run.tokens_per_second / plain[_place(run)] for run in own if plain.get(_place(run))
    )
    depths: Counter[int] = Counter()
    for run in own:
        depths.update(run.depths)
    verified = sum(run.speculation.verified for run in own)
    accepted = sum(run.speculation.accepted for run in own)
    rounds = sum(run.speculation.rounds for run in own)
    return Comparison(
        variant,
        median(run.tokens_per_second for run in own) if own else 0.0,
        median(ratios) if ratios else None,
        ratios[len(ratios) // 4] if ratios else None,
        ratios[-1 - len(ratios) // 4] if ratios else None,
        accepted / verified if verified else None,
        1 + accepted / rounds if rounds else None,
        dict(sorted(depths.items())),
    )


@dataclass(frozen=True, slots=True)
class BesideFixed:
    """The auto pace beside the fixed depth that was best.

    Which one that is was chosen on half of the runs, and `ratio` is the median of paired speeds on
    the other half, for both halves in turn: chosen and compared on the same runs, the best of
    several would owe part of its lead to chance. `best` are the depths that were chosen.
    """

    ratio: float
    best: tuple[str, ...]


def beside_best_fixed(
    runs: Sequence[Run], auto: str, fixed: Sequence[str], task: str | None = None
) -> BesideFixed | None:
    """The variant `auto` beside the best of `fixed`; None with less than two repeats."""
    ratios: list[float] = []
    chosen: list[str] = []
    for half in (0, 1):
        picking = [run for run in runs if run.repeat % 2 == half]
        judging = [run for run in runs if run.repeat % 2 != half]
        speeds = {name: compare(picking, name, task).ratio for name in fixed}
        known = {name: ratio for name, ratio in speeds.items() if ratio is not None}
        if not known or not judging:
            return None
        best = max(known, key=lambda name: known[name])
        chosen.append(best)
        rates = {
            (run.variant, _place(run)): run.tokens_per_second
            for run in judging
            if run.tokens >= FEWEST_TOKENS and task in (None, run.task)
        }
        ratios += [
            rate / rates[best, place]
            for (variant, place), rate in rates.items()
            if variant == auto and rates.get((best, place))
        ]
    return BesideFixed(median(ratios), tuple(dict.fromkeys(chosen))) if ratios else None


def _place(run: Run) -> tuple[str, float, int]:
    return run.task, run.temperature, run.repeat
