"""Writes the lock files from pyproject.toml with uv; for maintainers, never during a set-up."""

from __future__ import annotations

import subprocess
import tomllib

from .console import SetupError
from .environment import clean_environment
from .layout import Layout

LLAMA = "llama-cpp-python"  # apart from the rest: it alone is built from source


def write_locks(layout: Layout, arguments: list[str]) -> None:
    """Resolve for every platform and every Python from the oldest on, without index addresses."""
    _require_uv(layout)
    project = ["pyproject.toml", "--no-emit-package", LLAMA]
    agreeing = ["--constraint", str(layout.lock("test"))]
    _compile(layout, "test", [*project, "--group", "dev", *arguments])
    _compile(layout, "run", [*project, *agreeing, *arguments])
    _compile(layout, "build", ["--group", "build", *agreeing, *arguments])
    _compile(layout, "pip", ["--group", "pip", *arguments])
    _compile(layout, "peers", ["--group", "peers", "--no-deps", *arguments])
    _compile(layout, "starter-model", ["--group", "starter-model", "--no-deps", *arguments])
    _compile(layout, "llama", ["-", "--no-deps", *arguments], llama_requirement(layout))


def llama_requirement(layout: Layout) -> str:
    """The pin of llama-cpp-python as pyproject.toml has it."""
    dependencies = tomllib.loads(layout.pyproject.read_text("utf-8"))["project"]["dependencies"]
    (requirement,) = (name for name in dependencies if name.startswith(LLAMA))
    return str(requirement)


def _compile(layout: Layout, name: str, arguments: list[str], standard_input: str = "") -> None:
    lock = layout.lock(name)
    command = [str(layout.script("uv")), "pip", "compile", "--quiet", "--universal"]
    command += ["--generate-hashes", "--no-emit-index-url", "--python-version", "3.11"]
    command += ["--custom-compile-command", "make lock", "--output-file", str(lock), *arguments]
    code = subprocess.run(command, cwd=layout.root, input=standard_input, text=True, check=False)
    if code.returncode != 0:
        raise SetupError(f"{lock} could not be written (uv's exit code {code.returncode}).")
    print(f"wrote {lock.relative_to(layout.root)}")


def _require_uv(layout: Layout) -> None:
    if layout.script("uv").exists():
        return
    command = [str(layout.python), "-m", "pip", "install", "--quiet", "--group", "lock"]
    if subprocess.run(command, cwd=layout.root, env=clean_environment(), check=False).returncode:
        raise SetupError("uv, which writes the locks, could not be installed.")
