"""`slipstream bench`: every way to draft for a target beside plain decoding, on this machine."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.chat.ports import MeasurementStore
from slipstream.commands.flags import add_load_flags, as_json, load_request, read_text
from slipstream.commands.interrupt import on_interrupt
from slipstream.engine.machine import processor_name
from slipstream.errors import ExitCode, Interrupted, UsageError, UserError
from slipstream.library.model_file import describe_model_file, require_chat_model

if TYPE_CHECKING:
    from slipstream.engine.benchmark import Benchmark, Comparison, Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `bench`."""
    parser.add_argument("--target", required=True, metavar="FILE", help="the GGUF model to measure")
    parser.add_argument(
        "--draft", action="append", default=[], metavar="FILE",
        help="a GGUF file to draft with; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--prompts", metavar="FILE",
        help="a JSON object of prompts by name, in place of the built-in tasks",
    )  # fmt: skip
    parser.add_argument(
        "--max-tokens", type=int, default=96, metavar="N", help="per answer. Default: 96."
    )
    parser.add_argument(
        "--temperature", action="append", type=float, metavar="X",
        help="repeatable. Default: 0.",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N", help="runs of each. Default: 3."
    )
    parser.add_argument(
        "--depth", action="append", type=int, metavar="N",
        help="a fixed depth to compare with; repeatable. Default: 1, 2, 4 and 8.",
    )  # fmt: skip
    add_load_flags(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")


def run(arguments: argparse.Namespace, measurements: MeasurementStore) -> int:
    """Measure and print. Raises `UserError`; returns the exit code otherwise."""
    tasks = _tasks(arguments.prompts)
    request = load_request(arguments, Path(arguments.target))
    model = describe_model_file(request.path)
    require_chat_model(model)
    if arguments.repeat < 1 or arguments.max_tokens < 1:
        raise UsageError(
            "There is nothing to measure.",
            "--repeat and --max-tokens must be 1 or more.",
            "Leave them out, or give larger numbers.",
        )
    from slipstream.engine.benchmark import FIXED_DEPTHS, TASKS, Benchmark, variants_for
    from slipstream.engine.llama import LoadCancelled
    from slipstream.engine.target import Target

    with on_interrupt(lambda: None) as interrupted:
        try:
            target = Target(
                replace(request, path=model.path),
                progress=lambda _fraction: not interrupted.is_set(),
                measurements=measurements,
            )
        except LoadCancelled:
            raise Interrupted from None
        if interrupted.is_set():
            target.close()
            raise Interrupted
    try:
        variants = variants_for(
            [Path(path) for path in arguments.draft],
            has_mtp=target.facts.has_mtp,
            depths=arguments.depth or FIXED_DEPTHS,
        )
        benchmark = Benchmark(
            target,
            variants,
            tasks or TASKS,
            arguments.temperature or (0.0,),
            arguments.repeat,
            arguments.max_tokens,
            measurements,
        )
        with on_interrupt(target.session.cancel) as interrupted:
            runs, skipped = _run(benchmark)
        _print(benchmark, runs, skipped, model.name, as_object=arguments.json)
        return ExitCode.INTERRUPTED if interrupted.is_set() else ExitCode.FINE
    finally:
        target.close()


def _tasks(path: str | None) -> Mapping[str, str] | None:
    if path is None:
        return None
    try:
        content = json.loads(read_text(path, "file of prompts"))
    except ValueError as error:
        raise UsageError(
            "The prompts cannot be read.", f"{path}: {error}.", "Give a JSON object."
        ) from error
    usable = isinstance(content, dict) and content and all(map(_is_text, content.values()))
    if not usable:
        raise UsageError(
            "The prompts cannot be used.",
            f"{path} is not a JSON object of texts by name.",
            'Give something like {"explain": "Explain what a rainbow is."}.',
        )
    return dict(content)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _run(benchmark: Benchmark) -> tuple[list[Run], dict[str, UserError]]:
    """All runs; progress goes to standard error where a person looks at it."""
    skipped: dict[str, UserError] = {}
    runs: list[Run] = []
    for run in benchmark.run(skipped):
        runs.append(run)
        if sys.stderr.isatty():
            print(f"\r{len(runs)} of {benchmark.total} answers", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return runs, skipped


def _print(
    benchmark: Benchmark,
    runs: list[Run],
    skipped: Mapping[str, UserError],
    model: str,
    *,
    as_object: bool,
) -> None:
    from slipstream.engine.benchmark import beside_best_fixed, compare

    used = [variant for variant in benchmark.variants if variant.name not in skipped]
    names = [variant.name for variant in used]
    whole = {name: compare(runs, name) for name in names}
    by_task = {
        name: {task: compare(runs, name, task) for task in benchmark.tasks} for name in names
    }
    beside = {
        variant.name: beside_best_fixed(
            runs,
            variant.name,
            [other.name for other in used if other.source == variant.source and not other.is_auto],
        )
        for variant in used
        if variant.is_auto
    }
    if as_object:
        shown = {
            "target": model,
            "machine": {
                "system": platform.platform(),
                "processor": processor_name(),
                "threads": benchmark.target.session.n_threads,
                "threads_batch": benchmark.target.session.n_threads_batch,
                "flash_attention": benchmark.target.session.flash_attention,
            },
            "repeat": benchmark.repeats,
            "max_tokens": benchmark.max_tokens,
            "temperatures": list(benchmark.temperatures),
            "answers": len(runs),
            "variants": [
                {
                    **_object(whole[name]),
                    "tasks": {task: _object(found) for task, found in by_task[name].items()},
                }
                for name in names
            ],
            "beside_best_fixed": {
                name: {"ratio": found.ratio, "best": list(found.best)}
                for name, found in beside.items()
                if found is not None
            },
            "skipped": [
                {"variant": name, "reason": f"{error.title} {error.detail}".strip()}
                for name, error in skipped.items()
            ],
        }
        print(as_json(shown))
        return
    width = max(map(len, names), default=0)
    tasks = list(benchmark.tasks)
    print(f"{'':{width}}  tok/s  ratio  " + "  ".join(f"{task:>9}" for task in tasks))
    for name in names:
        cells = "  ".join(f"{_ratio(by_task[name][task]):>9}" for task in tasks)
        found = whole[name]
        print(f"{name:{width}}  {found.tokens_per_second:5.1f}  {_ratio(found):>5}  {cells}")
    for name, against in beside.items():
        if against is not None:
            best = " or ".join(against.best)
            print(f"{name}: {against.ratio:.2f}× of the best fixed depth ({best})")
    for name, error in skipped.items():
        print(f"{name}: left out. {error.title} {error.detail}", file=sys.stderr)


def _ratio(comparison: Comparison) -> str:
    return "–" if comparison.ratio is None else f"{comparison.ratio:.2f}×"


def _object(comparison: Comparison) -> dict[str, Any]:
    return {
        "variant": comparison.variant,
        "tokens_per_second": comparison.tokens_per_second,
        "ratio": comparison.ratio,
        "ratio_quartiles": [comparison.low, comparison.high],
        "acceptance_rate": comparison.acceptance_rate,
        "mean_accepted_length": comparison.mean_accepted_length,
        "depth_histogram": {str(depth): count for depth, count in comparison.depths.items()},
    }
