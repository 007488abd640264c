"""The name of a machine tells processors apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slipstream.engine import machine
from slipstream.engine.machine import file_label, machine_name, processor_name, usable_cores

CPU_INFO = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n"
    "model name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu vme\n\n"
    "processor\t: 1\nmodel name\t: another\n"
)


@pytest.fixture(autouse=True)
def unknown() -> None:
    processor_name.cache_clear()


def test_family_and_model_are_part_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(CPU_INFO)
    monkeypatch.setattr(machine, "_CPU_INFO", path)
    assert processor_name() == "AMD EPYC 26 2 1"
    assert machine_name() == f"AMD EPYC 26 2 1, {usable_cores()} cores"


@pytest.mark.parametrize("content", [None, "", "nothing to tell"])
def test_there_is_always_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "cpuinfo"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(machine, "_CPU_INFO", path)
    assert processor_name()


def test_a_label_is_name_and_size_or_the_name_of_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"12345")
    assert file_label(path) == "a.gguf (5)"
    path.unlink()
    assert file_label(path) == "a.gguf"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux tells which cores count")
def test_cores_that_may_not_be_used_do_not_count() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
