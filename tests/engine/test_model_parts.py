"""Which files a split model has, whether they belong together, and what they hold together."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.draft_files import chat_file, write_parts
from models.raw_header import UINT8, UINT32, RawHeader
from slipstream.engine.gguf import FileFault, GgufError, read_header
from slipstream.engine.model_parts import read_parts, split_stem


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return write_parts(chat_file(), tmp_path, first=2, stem="big")


def test_a_plain_file_is_its_only_part(tmp_path: Path) -> None:
    path = chat_file().write(tmp_path / "plain.gguf")
    parts = read_parts(path)
    assert (parts.first, parts.paths, parts.headers) == (path, (path,), (parts.whole,))
    assert parts.whole == read_header(path)


def test_any_part_gives_the_whole_model(paths: list[Path]) -> None:
    first, second = (read_parts(path) for path in paths)
    assert first == second
    assert first.first == paths[0]
    assert first.paths == tuple(paths)
    assert [tensor.name for tensor in first.whole.tensors] == list(chat_file().tensors)
    assert first.whole.file_size == sum(path.stat().st_size for path in paths)
    assert first.whole.architecture == "llama"


def test_a_missing_part_is_named(paths: list[Path]) -> None:
    paths[1].unlink()
    with pytest.raises(GgufError) as caught:
        read_parts(paths[0])
    assert caught.value.kind is FileFault.MISSING_PART
    assert "big-00002-of-00002.gguf" in caught.value.detail


def test_a_renamed_part_says_what_is_wrong(paths: list[Path]) -> None:
    with pytest.raises(GgufError) as caught:
        read_parts(paths[1].rename(paths[1].with_name("part two.gguf")))
    assert caught.value.kind is FileFault.MISSING_PART
    assert "part 2 of 2" in caught.value.title


def test_mixed_parts_are_refused(paths: list[Path]) -> None:
    paths[1].write_bytes(paths[0].read_bytes())
    with pytest.raises(GgufError) as caught:
        read_parts(paths[0])
    assert caught.value.kind is FileFault.MIXED_PARTS
    assert paths[1].name in caught.value.title


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        ("token_embd.weight", "an earlier part holds too"),
        ("other.weight", "should hold 6 tensors and has 3"),
    ],
)
def test_a_part_of_another_set_is_refused(paths: list[Path], tensor: str, words: str) -> None:
    other = RawHeader().entry("split.no", UINT8, 1).entry("split.count", UINT32, 2)
    paths[1].write_bytes(other.tensor(tensor, (8,)).to_bytes(data=32))
    with pytest.raises(GgufError) as caught:
        read_parts(paths[0])
    assert caught.value.kind is FileFault.MIXED_PARTS
    assert words in caught.value.detail


def test_the_stem_of_a_part_is_that_of_the_set() -> None:
    assert split_stem("big-00002-of-00003") == "big"
    assert split_stem("big-2-of-3") == "big-2-of-3"
