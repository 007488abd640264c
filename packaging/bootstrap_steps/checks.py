"""The checks and tests of `make test`: every one runs, and any failure fails the whole."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from .layout import Layout

NO_TESTS_COLLECTED = 5


@dataclass(frozen=True)
class Check:
    """A named command, run in the clone's root."""

    name: str
    command: tuple[str, ...]


def lint_checks(layout: Layout) -> list[Check]:
    python = str(layout.python)
    return [
        Check("ruff check", (python, "-m", "ruff", "check", ".")),
        Check("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Check("mypy", (python, "-m", "mypy", "desktop/slipstream")),
        Check("import rules", (str(layout.script("lint-imports")),)),
    ]


def failed_checks(layout: Layout, checks: list[Check]) -> list[str]:
    """Run all checks in the open and return the names of those that failed."""
    return [check.name for check in checks if _run(layout, check) != 0]


def run_pytest(layout: Layout, slow: bool, arguments: list[str]) -> int:
    """Run the quick tests, or the slow ones; no slow tests at all is not a failure."""
    selection = "slow" if slow else "not slow"
    command = (str(layout.python), "-m", "pytest", "-m", selection, *arguments)
    code = _run(layout, Check("pytest", command))
    return 0 if slow and not arguments and code == NO_TESTS_COLLECTED else code


def _run(layout: Layout, check: Check) -> int:
    print(f"\n── {check.name}", flush=True)
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ}
    path = os.pathsep.join([str(layout.scripts), environment.get("PATH", "")])
    command = subprocess.run(
        check.command, cwd=layout.root, env={**environment, "PATH": path}, check=False
    )
    return command.returncode
