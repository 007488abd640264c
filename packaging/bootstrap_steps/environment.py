"""The virtual environment in .venv with its pinned pip: made, checked, made anew when broken."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import system_packages
from .console import Console, SetupError
from .layout import Layout
from .requirements import only_requirement
from .stamps import Stamps

INTERRUPTED = "slipstream-interrupted"


def is_ready(layout: Layout) -> bool:
    """Whether the environment is whole, in its place, of this Python, with the pinned pip; fast."""
    stamps = Stamps(layout)
    pip = only_requirement(layout.lock("pip"))
    return (
        stamps.read("location") == str(layout.venv)
        and stamps.read("python") == python_version()
        and layout.python.exists()
        and not (layout.venv / INTERRUPTED).exists()
        and bool(layout.site_packages(f"pip-{pip.version}.dist-info"))
    )


def make_ready(layout: Layout, console: Console) -> None:
    """Create or repair the environment and put the pinned pip into it."""
    reason = why_unusable(layout)
    if reason:
        console.note(f"The environment in {layout.venv} {reason}; making it anew.")
        _delete(layout.venv)
    with installing(layout):
        if not layout.python.exists():
            _require_venv_module(console)
            console.run(
                [_base_python(), "-m", "venv", layout.venv],
                failed="The virtual environment could not be made",
            )
        console.run(
            pip_install(layout, layout.lock("pip")),
            environment=clean_environment(),
            failed="pip could not be brought to its pinned version",
            try_this="Check the network, or the index that pip is configured to use.",
        )
    stamps = Stamps(layout)
    stamps.write("location", str(layout.venv))
    stamps.write("python", python_version())


class installing:  # noqa: N801 - reads as a verb at its use
    """Marks the environment as unsafe while something is being installed.

    The mark stays when the process is killed or interrupted: pip then leaves half a package that
    it would later take for a whole one. An ordinary failure of pip rolls back and clears it.
    """

    def __init__(self, layout: Layout) -> None:
        self._mark = layout.venv / INTERRUPTED

    def __enter__(self) -> None:
        self._mark.parent.mkdir(exist_ok=True)
        self._mark.touch()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self._mark.unlink(missing_ok=True)


def python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def clean_environment() -> dict[str, str]:
    """For pip: the person's index and proxy settings, but none that redirect installs."""
    unwanted = {
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_ROOT",
        "PIP_NO_BINARY",
        "PIP_ONLY_BINARY",
    }
    unwanted |= {"PYTHONHOME", "PYTHONPATH", "SOURCE_DATE_EPOCH", "VIRTUAL_ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def pip_install(layout: Layout, lock: Path, *options: str) -> list[str | Path]:
    """The command that installs exactly what a lock names, wheels only unless told otherwise."""
    options = options or ("--only-binary", ":all:")
    command: list[str | Path] = [
        layout.python,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--require-hashes",
    ]
    return [*command, *options, "-r", lock]


def why_unusable(layout: Layout) -> str | None:
    """What is wrong with an existing environment, as the rest of a sentence; None if nothing."""
    venv = layout.venv
    if not venv.exists():
        return None
    if (venv / INTERRUPTED).exists():
        return "was left half-made by a set-up that did not end"
    configuration = venv / "pyvenv.cfg"
    if not configuration.exists() or not layout.python.exists():
        return "is broken"
    version = venv_version(configuration.read_text("utf-8"))
    if version != python_version():
        return f"is of Python {version}, not {python_version()}"
    if Stamps(layout).read("location") not in (None, str(venv)):
        return "was made in another folder"
    if not _pip_belongs_to(layout):
        return "is broken or was made in another folder"
    return None


def venv_version(configuration: str) -> str:
    """The x.y of the Python a pyvenv.cfg names, or `unknown`."""
    for line in configuration.splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("version", "version_info"):
            return ".".join(value.strip().split(".")[:2])
    return "unknown"


def _pip_belongs_to(layout: Layout) -> bool:
    # The script, not `python -m pip`: its first line holds the path that a move breaks.
    try:
        answer = subprocess.run(
            [layout.script("pip"), "--version"],
            capture_output=True,
            text=True,
            check=False,
            env=clean_environment(),
        )
    except OSError:
        return False
    return answer.returncode == 0 and os.path.normcase(layout.venv) in os.path.normcase(
        answer.stdout
    )


def _base_python() -> str:
    # Not sys.executable: that may lie in the very environment that is being made anew.
    return getattr(sys, "_base_executable", None) or sys.executable


def _delete(venv: Path) -> None:
    try:
        shutil.rmtree(venv)
    except OSError as error:
        raise SetupError(
            f"{venv} could not be removed: {error}.",
            "Close Slipstream and every program that uses this folder, then try again.",
        ) from error


def _require_venv_module(console: Console) -> None:
    if _can_make_environments():
        return
    package = f"python{python_version()}-venv"
    console.note(f"This Python has no venv module; Debian and Ubuntu have it in {package}.")
    if system_packages.install([package], console):
        importlib.invalidate_caches()
        if _can_make_environments():
            return
    raise SetupError(
        "A virtual environment cannot be made: this Python lacks the modules venv and ensurepip.",
        f"On Debian or Ubuntu: {system_packages.command_text([package])}",
    )


def _can_make_environments() -> bool:
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
