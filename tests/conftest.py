"""Shared fixtures: Qt without a screen, the starter model, nothing left behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

ROOT = Path(__file__).resolve().parent.parent
STARTER = ROOT / "resources" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SETTLE_SECONDS = 5.0


def settled(condition: object) -> bool:
    """Whether the condition (a callable) comes true within a few seconds."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a thread or a process running."""
    threads = set(threading.enumerate())
    processes = set(psutil.Process().children(recursive=True))
    yield
    me = psutil.Process()

    def left_threads() -> list[threading.Thread]:
        # a thread that Qt started and Python entered shows as a dummy that never ends by itself
        return [
            thread
            for thread in set(threading.enumerate()) - threads
            if thread.is_alive() and not isinstance(thread, threading._DummyThread)
        ]

    assert settled(lambda: not left_threads()), f"threads left running: {left_threads()}"
    assert settled(lambda: not set(me.children(recursive=True)) - processes), (
        f"processes left running: {set(me.children(recursive=True)) - processes}"
    )


@pytest.fixture(scope="session", autouse=True)
def no_ones_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is kept among the files of the person who runs the tests (on Linux)."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG", "STATE", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
        yield


@pytest.fixture(scope="session")
def starter() -> Path:
    """The starter model's file."""
    assert STARTER.is_file(), f"{STARTER} is missing: run the set-up (make test does it)"
    return STARTER


@pytest.fixture(scope="session")
def llama_cpp_files() -> Path:
    """Templates and vocabularies that the set-up took from llama-cpp-python's source release."""
    folder = ROOT / ".cache" / "llama.cpp"
    assert folder.is_dir(), f"{folder} is missing: run the set-up (make test does it)"
    return folder
