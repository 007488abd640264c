"""A pace profile survives being kept; what is unusable is measured anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.kept_measurements import Store
from slipstream.engine.speculation.acceptance_model import AcceptanceProfile
from slipstream.engine.speculation.cost_model import CostProfile
from slipstream.engine.speculation.pace_memory import PaceMemory, pair_key
from slipstream.engine.speculation.paced_drafter import PaceProfile

PROFILE = PaceProfile(
    CostProfile({1: 0.02, 4: 0.05}, {"draft-model": 0.004}, {"draft-model": 0.001}),
    {"draft-model": AcceptanceProfile({0: (3.5, 4.0)}, {9: (1.0, 1.5)})},
)


def test_a_profile_comes_back_as_it_was() -> None:
    store = Store()
    PaceMemory(store, "a").save(PROFILE)
    assert PaceMemory(store, "a").load() == PROFILE
    assert PaceMemory(store, "b").load() is None
    assert PaceMemory(None, "a").load() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("passes", {"1": -0.5}),
        ("passes", {"x": 1.0}),
        ("passes", {"1": float("nan")}),
        ("steps", 3),
        ("acceptance", {"mtp": {"positions": {"0": [5, 4]}, "bins": {}}}),
        ("acceptance", {"mtp": {"positions": {"0": [1]}, "bins": {}}}),
        ("acceptance", {"mtp": None}),
    ],
)
def test_what_is_unusable_counts_as_unknown(name: str, value: object) -> None:
    store = Store()
    PaceMemory(store, "a").save(PROFILE)
    store.save("a", {**(store.load("a") or {}), name: value})
    assert PaceMemory(store, "a").load() is None


@dataclass(frozen=True)
class Computing:
    """How a session computes."""

    n_threads: int = 2
    n_threads_batch: int = 2
    flash_attention: bool = True


def test_the_key_names_files_way_and_machine_but_no_folder(tmp_path: Path) -> None:
    target = tmp_path / "target.gguf"
    target.write_bytes(b"12345")
    key = pair_key(target, tmp_path / "gone.gguf", "draft-model", Computing())
    assert "target.gguf (5)" in key
    assert "draft-model" in key
    assert str(tmp_path) not in key
    assert key != pair_key(target, None, "draft-model", Computing())
    for other in (Computing(1), Computing(2, 1), Computing(flash_attention=False)):
        assert key != pair_key(target, tmp_path / "gone.gguf", "draft-model", other)
