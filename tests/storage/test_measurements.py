"""Measurements are kept, bounded, and never in the way."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from slipstream.storage.measurements import MOST_ENTRIES, MeasurementFile


def test_what_was_saved_is_loaded_by_another_start(tmp_path: Path) -> None:
    path = tmp_path / "made" / "measurements.json"
    MeasurementFile(path).save("ä", {"passes": {"1": 0.5}, "list": [1, 2]})
    assert MeasurementFile(path).load("ä") == {"passes": {"1": 0.5}, "list": [1, 2]}
    assert MeasurementFile(path).load("other") is None
    assert [file.name for file in path.parent.iterdir()] == ["measurements.json"]


def test_the_oldest_entries_are_dropped(tmp_path: Path) -> None:
    file = MeasurementFile(tmp_path / "m.json")
    for number in range(MOST_ENTRIES):
        file.save(str(number), {"n": number})
    file.save("0", {"n": 0})  # used again: not the oldest any more
    file.save("new", {"n": -1})
    assert file.load("1") is None
    assert file.load("0") == {"n": 0}
    assert file.load("new") == {"n": -1}


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b'{"version": 9, "entries": {"a": {}}}', b'{"version": 1}',
     b'{"version": 1, "entries": {"a": 3}}', b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    file = MeasurementFile(path)
    assert file.load("a") is None
    file.save("a", {"n": 1})
    assert file.load("a") == {"n": 1}


def test_a_file_that_cannot_be_written_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    file = MeasurementFile(tmp_path / "file" / "m.json")
    with caplog.at_level(logging.WARNING):
        file.save("a", {"n": 1})
    assert "not kept" in caplog.text
    assert file.load("a") is None
