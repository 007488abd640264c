"""The commands of bootstrap.py: set up what each needs, then do it and pass its exit code on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from . import checks, locking
from .layout import Layout
from .plan import set_up

ROOT = Path(__file__).resolve().parents[2]


def by_name() -> dict[str, Callable[[list[str]], int]]:
    layout = Layout(ROOT)
    return {
        "run": lambda arguments: run(layout, arguments),
        "test": lambda arguments: test(layout, arguments, slow=False),
        "test-slow": lambda arguments: test(layout, arguments, slow=True),
        "lint": lambda arguments: lint(layout),
        "setup": lambda arguments: set_up_only(layout, for_tests=False),
        "setup-test": lambda arguments: set_up_only(layout, for_tests=True),
        "setup-peers": lambda arguments: set_up_peers(layout),
        "setup-server": lambda arguments: set_up_server(layout),
        "lock": lambda arguments: lock(layout, arguments),
    }


def run(layout: Layout, arguments: list[str]) -> int:
    """Start Slipstream in this process's place; on Windows as a child, which has no exec."""
    set_up(layout, for_tests=False)
    command = [str(layout.script("slipstream")), *arguments]
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the console sends Ctrl-C to Slipstream too, which ends in its own way


def test(layout: Layout, arguments: list[str], *, slow: bool) -> int:
    """All checks, then pytest; whatever is chosen with arguments, the checks run as well."""
    set_up(layout, for_tests=True)
    failed = checks.failed_checks(layout, checks.lint_checks(layout))
    tests = checks.run_pytest(layout, slow, arguments)
    return _verdict([*failed, "pytest"] if tests else failed, tests)


def lint(layout: Layout) -> int:
    set_up(layout, for_tests=True)
    return _verdict(checks.failed_checks(layout, checks.lint_checks(layout)), 0)


def set_up_only(layout: Layout, *, for_tests: bool) -> int:
    set_up(layout, for_tests)
    print("Everything is set up.")
    return 0


def set_up_peers(layout: Layout) -> int:
    """What some slow tests and benchmarks compare with; they are skipped without it."""
    set_up(layout, for_tests=True, with_peers=True)
    print("The programs to compare with are installed.")
    return 0


def set_up_server(layout: Layout) -> int:
    """llama.cpp's own server with the flags of the library, for the benchmark beside peers."""
    set_up(layout, for_tests=True, with_server=True)
    print("llama.cpp's server is built.")
    return 0


def lock(layout: Layout, arguments: list[str]) -> int:
    set_up(layout, for_tests=True)
    locking.write_locks(layout, arguments)
    return 0


def _verdict(failed: list[str], tests: int) -> int:
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
    return tests or (1 if failed else 0)
