"""What files are for; every role is met in the tests of compatibility and of the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.draft_files import DraftFile, chat_file, mtp_file
from slipstream.engine.file_role import FileRole, file_role, held_mtp_layers
from slipstream.engine.gguf import read_header


def without(name: str, file: DraftFile) -> DraftFile:
    del file.tensors[name]
    return file


def test_every_role_has_words() -> None:
    assert all(role.words.startswith(("a ", "an ")) for role in FileRole)


@pytest.mark.parametrize(
    ("file", "role", "held"),
    [
        (chat_file("mimo2"), FileRole.CHAT, 0),
        (chat_file("mimo2", mtp_layers=2), FileRole.CHAT, 2),
        (chat_file("mimo2", nextn_predict_layers=1), FileRole.CHAT, 0),  # stripped of them
        (mtp_file(heads=2), FileRole.MTP, 2),
        (without("blk.4.nextn.eh_proj.weight", mtp_file(heads=2)), FileRole.MTP, 1),
        (without("blk.5.nextn.eh_proj.weight", mtp_file(heads=2)), FileRole.MTP, 1),
        (chat_file("gemma4-assistant"), FileRole.MTP, 0),
        # not where the file says that its MTP layers are
        (chat_file("mimo2", mtp_layers=1, block_count=9), FileRole.CHAT, 0),
        (chat_file("mimo2", nextn_predict_layers=2**31), FileRole.CHAT, 0),
    ],
)
def test_mtp_layers_are_counted_where_they_must_be(
    tmp_path: Path, file: DraftFile, role: FileRole, held: int
) -> None:
    header = read_header(file.write(tmp_path / "it.gguf"))
    assert (file_role(header), held_mtp_layers(header)) == (role, held)
