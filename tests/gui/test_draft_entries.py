"""Entries of the draft picker: facts from the file, the reason from the engine's judgement."""

from __future__ import annotations

from pathlib import Path

from models.raw_header import STRING, UINT32, RawHeader
from models.tiny_llama import build_tiny_llama
from slipstream.bridge.engine_worker import _described
from slipstream.bridge.judged_file import JudgedFile
from slipstream.engine.requests import DraftJudgement
from slipstream.ui.draft_entries import draft_entries, draft_entry, is_same_file
from slipstream.ui.draft_picker import DraftEntry


def judged(path: Path, compatible: bool, words: str) -> JudgedFile:
    """As the engine's thread tells of it."""
    return JudgedFile(DraftJudgement(path, compatible, words), _described(path))


def write_parts(folder: Path) -> list[Path]:
    """A model in two files, its weights missing."""
    paths = [folder / f"Odd-0000{number}-of-00002.gguf" for number in (1, 2)]
    for index, path in enumerate(paths):
        header = RawHeader().entry("general.architecture", STRING, "eagle3")
        header.entry("split.no", UINT32, index).entry("split.count", UINT32, 2)
        path.write_bytes(header.tensor(f"blk.{index}.weight", (8, 4)).to_bytes(data=128))
    return paths


def test_a_fitting_file_has_its_facts(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "Tiny draft.F32.gguf", name="checkpoint 12")
    entry = draft_entry(judged(path, True, "a draft model"))
    assert entry == DraftEntry(str(path), "Tiny draft.F32", "F32 · 433.1 kB · draft model")


def test_a_misfit_has_its_reason_as_well(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "a.gguf")
    entry = draft_entry(judged(path, False, "Token 3 differs."))
    assert entry.caption == "F32 · 433.1 kB · draft model"
    assert (entry.available, entry.note) == (False, "Token 3 differs.")


def test_a_file_that_cannot_be_read_has_the_reason_only(tmp_path: Path) -> None:
    path = tmp_path / "gone.gguf"
    entry = draft_entry(judged(path, False, "“gone.gguf” is not there."))
    assert entry == DraftEntry(str(path), "gone", "", False, "“gone.gguf” is not there.")


def test_parts_of_a_split_model_are_one_entry(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    (entry,) = draft_entries([judged(path, True, "an EAGLE-3 head") for path in paths])
    assert (entry.key, entry.name) == (str(paths[0]), "Odd")
    assert entry.caption.endswith(" · EAGLE-3 head")


def test_a_link_leads_to_the_same_file(tmp_path: Path) -> None:
    path, link, other = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    path.write_bytes(b"x")
    other.write_bytes(b"x")
    link.symlink_to(path)
    assert is_same_file(path, link)
    assert not is_same_file(path, other)
    assert not is_same_file(path, tmp_path / "gone.gguf")
