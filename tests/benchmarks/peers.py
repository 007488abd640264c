"""Slipstream beside llama-cpp-python's high-level class and llama.cpp's own server.

`make peers` (xllamacpp) and `make server` (the server, built like our library), then
`python tests/benchmarks/peers.py [--target FILE] [--draft FILE] [--repeat N]`.
Same files, threads, prompts and tokens at temperature 0; all programs are loaded, each in a process
of its own, and answer every prompt in turn, so that each ratio is one of neighbours in time. Speeds
are those from an answer's first token to its last.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "packaging")]

from bootstrap_steps.layout import Layout  # noqa: E402
from models.quantised import quantised  # noqa: E402
from slipstream.chat.records import Message, Role  # noqa: E402
from slipstream.engine.benchmark import FEWEST_TOKENS, TASKS  # noqa: E402
from slipstream.engine.llama import lib  # noqa: E402
from slipstream.engine.machine import machine_name  # noqa: E402
from slipstream.engine.requests import AnswerRequest, LoadRequest  # noqa: E402
from slipstream.engine.target import Target  # noqa: E402

WORKER = ROOT / "tests" / "peers" / "worker.py"
STARTER = ROOT / "resources" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SERVER = Layout(ROOT).llama_server
BASE = "llama-cpp-python"
DEPTH = 3  # llama.cpp's own default

CONTENDERS: dict[str, tuple[str, str]] = {
    BASE: ("llama-cpp-python", "none"),
    "llama-cpp-python, prompt lookup": ("llama-cpp-python", "lookup"),
    "llama.cpp's server, built alike": ("server", "none"),
    "llama.cpp's server (xllamacpp)": ("xllamacpp", "none"),
    "xllamacpp, n-gram": ("xllamacpp", "lookup"),
    "xllamacpp, draft model": ("xllamacpp", "draft"),
    "Slipstream": ("slipstream", "none"),
    "Slipstream, auto with prompt lookup": ("slipstream", "auto"),
    "Slipstream, auto with draft model": ("slipstream", "auto+draft"),
}


class Program:
    """One contender, loaded and waiting for prompts."""

    def __init__(self, program: str, job: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._ask(job)

    def _ask(self, line: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(line), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._process.args} ended")
        return dict(json.loads(answer))

    def rate(self, prompt: list[int], max_tokens: int) -> float | None:
        """Tokens per second after the first; None for an answer too short to tell."""
        found = self._ask({"prompt": prompt, "max_tokens": max_tokens})
        enough = found["tokens"] >= FEWEST_TOKENS and found["seconds"] > 0
        return (found["tokens"] - 1) / found["seconds"] if enough else None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def prompts_of(path: Path) -> dict[str, list[int]]:
    """The benchmark's tasks as token ids, so that every program reads the same."""
    target = Target(LoadRequest(path, n_threads=1))
    try:
        return {
            task: list(
                target.prepare(
                    AnswerRequest((Message("", Role.USER, text, datetime.now(UTC)),))
                ).request.prompt
            )
            for task, text in TASKS.items()
        }
    finally:
        target.close()


def measured(
    target: Path, draft: Path, repeats: int, max_tokens: int, n_threads: int
) -> dict[str, dict[str, list[float]]]:
    """Speeds by contender and task."""
    prompts = prompts_of(target)
    programs: dict[str, Program] = {}
    try:
        for name, (program, speculation) in CONTENDERS.items():
            if program == "server" and not SERVER.is_file():
                print("make server builds the server that is left out here", file=sys.stderr)
                continue
            job = {
                "server": str(SERVER),
                "target": str(target),
                "speculation": speculation.partition("+")[0],
                "n_ctx": 2048,
                "n_threads": n_threads,
                "n_draft_max": DEPTH,
            }
            if "draft" in speculation:
                job["draft"] = str(draft)
            programs[name] = Program(program, job)
        rates: dict[str, dict[str, list[float]]] = {
            name: {task: [] for task in prompts} for name in programs
        }
        names = list(programs)
        for turn in range(repeats):
            for number, (task, prompt) in enumerate(prompts.items()):
                shift = (turn + number) % len(names)
                for name in (*names[shift:], *names[:shift]):
                    rate = programs[name].rate(prompt, max_tokens)
                    rates[name][task].append(rate or float("nan"))
        return rates
    finally:
        for each in programs.values():
            each.close()


def ratio(rates: dict[str, dict[str, list[float]]], name: str, task: str | None) -> float | None:
    """The median of speeds beside plain llama-cpp-python, pair by pair."""
    pairs = [
        own / base
        for each in rates[name]
        if task in (None, each)
        for own, base in zip(rates[name][each], rates[BASE][each], strict=True)
        if own == own and base == base
    ]
    return statistics.median(pairs) if pairs else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, help="default: the starter in F16")
    parser.add_argument("--draft", type=Path, help="default: the starter in Q4_0")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        f16, q4_0 = lib.LLAMA_FTYPE_MOSTLY_F16, lib.LLAMA_FTYPE_MOSTLY_Q4_0
        target = options.target or quantised(STARTER, folder, "f16", f16)
        draft = options.draft or quantised(STARTER, folder, "q4_0", q4_0)
        rates = measured(target, draft, options.repeat, options.max_tokens, options.threads)
    print(f"{target.name}, draft {draft.name}, {machine_name()}, {options.threads} threads")
    tasks = list(TASKS)
    width = max(map(len, rates))
    print(f"{'':{width}}  tok/s  ratio  " + "  ".join(f"{task:>9}" for task in tasks))
    for name in rates:
        found = [rate for task in tasks for rate in rates[name][task] if rate == rate]
        cells = [ratio(rates, name, task) for task in (None, *tasks)]
        words = ["–" if cell is None else f"{cell:.2f}×" for cell in cells]
        line = "  ".join(f"{word:>9}" for word in words[1:])
        rate = statistics.median(found) if found else float("nan")
        print(f"{name:{width}}  {rate:5.1f}  {words[0]:>5}  {line}")


if __name__ == "__main__":
    main()
