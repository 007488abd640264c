"""`slipstream self-test`: whether this installation can do what it is for."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from slipstream import __version__
from slipstream.chat.records import Role
from slipstream.commands.flags import as_json
from slipstream.commands.messages import message
from slipstream.engine.events import TextRun
from slipstream.engine.requests import AnswerRequest, LoadRequest
from slipstream.engine.sampling import SamplerSettings
from slipstream.errors import ExitCode, UsageError
from slipstream.library.starter import starter_model_path

GuiCheck = Callable[[Path], str]
"""Shows the window, asks the model at this path through its widgets; returns what was seen."""

_IMPORTS = ("PySide6.QtWidgets", "PySide6.QtSvg", "llama_cpp", "numpy", "jinja2", "markdown_it")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried, and what came of it."""

    name: str
    passed: bool
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `self-test`."""
    parser.add_argument("--model", metavar="FILE", help="the model to ask (default: the starter)")
    parser.add_argument(
        "--gui", action="store_true", help="also show the window and ask through its widgets"
    )
    parser.add_argument("--report", metavar="FILE", help="write a JSON report to this file")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(arguments: argparse.Namespace, data_dir: Path, gui_check: GuiCheck) -> int:
    """Try everything; 0 when all of it works, 1 otherwise."""
    model = _model_path(arguments.model)
    checks = [
        _try("imports", _check_imports),
        _try("backend", _check_backend),
        _try("data directory", lambda: _check_data_dir(data_dir)),
        _try("generation", lambda: _check_generation(model)),
    ]
    if arguments.gui:
        checks.append(_try("window", lambda: gui_check(model)))
    passed = all(check.passed for check in checks)
    report = {
        "version": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "passed": passed,
        "checks": [asdict(check) for check in checks],
    }
    if arguments.report:
        _write_report(Path(arguments.report), report)
    if arguments.json:
        print(as_json(report))
    else:
        for check in checks:
            print(f"{'ok  ' if check.passed else 'FAIL'} {check.name}: {check.detail}")
    return ExitCode.FINE if passed else ExitCode.INTERNAL


def _try(name: str, attempt: Callable[[], str]) -> Check:
    try:
        return Check(name, True, attempt())
    except Exception as error:  # whatever fails is what the report is for
        return Check(name, False, f"{type(error).__name__}: {error}")


def _model_path(given: str | None) -> Path:
    path = Path(given) if given else starter_model_path()
    if path is None:
        raise UsageError(
            "There is no model to try.",
            "The starter model is not installed.",
            "Give one with --model FILE.",
        )
    return path


def _check_imports() -> str:
    for name in _IMPORTS:
        importlib.import_module(name)
    return ", ".join(_IMPORTS)


def _check_backend() -> str:
    from slipstream.engine.llama import system_info

    return system_info()


def _check_data_dir(data_dir: Path) -> str:
    data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=data_dir) as file:
        file.write(b"x")
        file.flush()
    return f"{data_dir} can be written"


def _check_generation(path: Path) -> str:
    from slipstream.engine.target import Target

    target = Target(LoadRequest(path, n_ctx=256))
    try:
        request = AnswerRequest(
            messages=(message(Role.USER, "Say hello."),),
            settings=SamplerSettings(temperature=0, max_tokens=1),
        )
        events = list(target.session.generate(target.prepare(request).request))
    finally:
        target.close()
    tokens = [token for e in events if isinstance(e, TextRun) for token in e.token_ids]
    if len(tokens) != 1:
        raise RuntimeError(f"{len(tokens)} tokens came instead of one")
    return f"{path.name} answered with token {tokens[0]}"


def _write_report(path: Path, report: dict[str, object]) -> None:
    try:
        path.write_text(json.dumps(report, indent=2), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "The report cannot be written.", f"{path}: {error.strerror}.", "Choose another file."
        ) from error
