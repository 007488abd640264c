"""Finds the way to draft that makes a target fastest on this machine, by trying all that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from slipstream.chat.ports import MeasurementStore
from slipstream.engine.benchmark import PLAIN, TASKS, Benchmark, Run, Variant, compare, variants_for
from slipstream.engine.requests import DraftFinding
from slipstream.engine.target import Target
from slipstream.errors import UserError

SEARCH_TASKS = ("explain", "code", "edit")
"""Free text, text with a form, and text that is mostly copied."""

_REPEATS = 2
_MAX_TOKENS = 48


def find_best_draft(
    target: Target,
    drafts: Sequence[Path],
    progress: Callable[[int, int], None],
    measurements: MeasurementStore | None = None,
) -> tuple[DraftFinding, ...] | None:
    """Every way to draft beside plain decoding, the fastest first; None when it was cancelled.

    One draft file is open at a time. `progress` hears how many answers are written, of how many.
    The target has no drafter afterwards.
    """
    variants = variants_for(drafts, has_mtp=target.facts.has_mtp, depths=())
    plain = next(variant for variant in variants if variant.name == PLAIN)
    ways = [variant for variant in variants if variant is not plain]
    tasks = {name: TASKS[name] for name in SEARCH_TASKS}
    each = 2 * len(tasks) * _REPEATS
    findings: list[DraftFinding] = []
    progress(0, each * len(ways))
    for number, way in enumerate(ways):
        benchmark = Benchmark(
            target, (plain, way), tasks,
            repeats=_REPEATS, max_tokens=_MAX_TOKENS, measurements=measurements,
        )  # fmt: skip
        skipped: dict[str, UserError] = {}
        runs: list[Run] = []
        for run in benchmark.run(skipped):
            if skipped:
                break  # nothing is left to compare
            runs.append(run)
            progress(number * each + len(runs), each * len(ways))
        if not skipped and len(runs) < each:
            return None
        findings.append(_finding(way, runs, skipped.get(way.name)))
    return tuple(sorted(findings, key=lambda finding: -(finding.gain or 0.0)))


def _finding(way: Variant, runs: Sequence[Run], obstacle: UserError | None) -> DraftFinding:
    assert way.request is not None
    path, kind = way.request.path, way.request.kind
    key = str(path) if path is not None else str(kind)
    if obstacle is not None:
        return DraftFinding(key, None, 0.0, obstacle.detail or obstacle.title)
    found = compare(runs, way.name)
    return DraftFinding(key, found.ratio, found.tokens_per_second)
