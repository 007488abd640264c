"""How long OpenMP's threads spin is set while it is loaded, and only then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slipstream.engine import spinning
from slipstream.engine.spinning import ALONE, BESIDE_WINDOW, short_spinning


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spinning, "_rounds", ALONE)
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_is_as_before_afterwards() -> None:
    with short_spinning():
        assert os.environ["GOMP_SPINCOUNT"] == str(ALONE)
    assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_a_users_own_choice_stands(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "7")
    before = dict(os.environ)
    with short_spinning():
        assert dict(os.environ) == before
    assert os.environ[name] == "7"


@pytest.mark.skipif(sys.platform != "linux", reason="libgomp is Linux's")
@pytest.mark.parametrize(
    ("before", "rounds"),
    [
        ("", ALONE),
        (
            "from slipstream.bridge.engine_worker import EngineWorker; EngineWorker(None, None); ",
            BESIDE_WINDOW,
        ),
    ],
)
def test_openmp_takes_it_over(before: str, rounds: int) -> None:
    """libgomp itself says what it uses, where it is the OpenMP that llama.cpp was built with."""
    done = subprocess.run(
        [sys.executable, "-c", f"{before}import slipstream.engine.llama"],
        env={**os.environ, "OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=True,
    )
    if "OPENMP DISPLAY ENVIRONMENT" not in done.stderr:
        pytest.skip("llama.cpp was built without OpenMP")
    assert f"GOMP_SPINCOUNT = '{rounds}'" in done.stderr
