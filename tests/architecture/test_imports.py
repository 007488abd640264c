"""Import rules that import-linter cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import slipstream

PACKAGE = Path(slipstream.__file__).parent


def imports_of(path: Path) -> Iterator[str]:
    """Every module a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_importing(*modules: str) -> set[str]:
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name == m or name.startswith(m + ".") for name in imports_of(path) for m in modules)
    }


def test_widgets_belong_to_the_user_interface() -> None:
    outside = {
        path
        for path in files_importing("PySide6.QtWidgets", "PySide6.QtGui", "PySide6.QtSvg")
        if not path.startswith("ui/")
    }
    assert outside == {"app.py"}


def test_the_bridge_needs_qt_core_only() -> None:
    used = {
        name.split(".")[1]
        for path in (PACKAGE / "bridge").glob("*.py")
        for name in imports_of(path)
        if name.startswith("PySide6.")
    }
    assert used == {"QtCore"}


def test_one_file_imports_llama_cpp() -> None:
    assert files_importing("llama_cpp") == {"engine/llama.py"}


def test_nothing_imports_a_network_module() -> None:
    network = ("urllib.request", "http", "ssl", "ftplib", "smtplib", "requests", "httpx")
    assert files_importing(*network, "PySide6.QtNetwork") == set()


def modules_after(code: str) -> set[str]:
    """The modules a fresh process has loaded after this code."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(result.stdout.split())


def test_the_window_is_shown_before_llama_cpp_numpy_and_jinja_are_loaded() -> None:
    heavy = {"llama_cpp", "numpy", "jinja2"}
    shown = """
import tempfile
from pathlib import Path
from slipstream.app import App, make_application
from slipstream.storage.data_dir import data_directory
application = make_application()
with tempfile.TemporaryDirectory() as folder:
    app = App(application, data_directory(Path(folder)))
    app.window.show()
    application.processEvents()
    assert app.window.isVisible()
    app.close()
"""
    assert heavy & modules_after(shown) == set()


def test_inspect_loads_neither_llama_cpp_nor_qt() -> None:
    loaded = modules_after("import slipstream.cli, slipstream.commands.inspect")
    assert {"llama_cpp", "numpy", "jinja2", "PySide6"} & loaded == set()
