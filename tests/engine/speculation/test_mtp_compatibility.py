"""Which MTP heads fit which targets, in files of their own or built in."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.speculation.judged_files import judged, lone, with_tokens
from models.draft_files import DraftFile, chat_file, eagle3_file, mtp_file, write_parts
from slipstream.engine.gguf import read_header
from slipstream.engine.model_parts import read_parts
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.mtp_compatibility import builtin_mtp, mtp_obstacle


def two_heads() -> DraftFile:
    return chat_file("mimo2", mtp_layers=2)


def test_mtp_heads_fit_their_target(tmp_path: Path) -> None:
    verdict = judged(tmp_path, chat_file("mimo2"), mtp_file("mimo2"))
    assert (verdict.kind, verdict.compatible) == (DrafterKind.MTP, True)
    assert verdict.reason == "The heads fit the target's width and share its 200 tokens."
    wide = chat_file("mimo2", embedding_length_out=16)  # what it gives out is wider than it is
    assert judged(tmp_path, wide, mtp_file(width=16)).compatible
    heads = mtp_file("step35", heads=3)
    assert judged(tmp_path, chat_file("step35"), heads).compatible


@pytest.mark.parametrize(
    ("target", "heads", "reason"),
    [
        (
            chat_file("qwen35"), mtp_file("mimo2"),
            "The heads are made for the architecture mimo2, and the target has qwen35.",
        ),
        (
            chat_file("llama"), chat_file("gemma4-assistant"),
            "The heads are made for the architecture gemma4, and the target has llama.",
        ),
        (
            chat_file("gemma4"), chat_file("gemma4-assistant", width=4, embedding_length_out=8),
            "Heads that share the memory of their target cannot be used yet.",
        ),
        (
            chat_file("qwen35"), mtp_file("qwen35", heads=2),
            "llama.cpp runs one MTP layer of this architecture, and the file has 2.",
        ),
        (
            chat_file("mimo2"),
            lone(lambda f: f.tensors.pop("blk.5.nextn.eh_proj.weight"), mtp_file(heads=2)),
            "The file declares 2 MTP layers and holds 1.",
        ),
        (
            chat_file("glm5-next"), mtp_file("glm5-next"),
            "This version cannot run MTP heads of the architecture glm5-next.",
        ),
        (
            chat_file("mimo2"), mtp_file("mimo2", width=16),
            "The heads read hidden states of width 16, and the target's have 8.",
        ),
        (
            chat_file("mimo2"), lone(lambda f: f.tensors.pop("token_embd.weight"), mtp_file()),
            "The heads come without token embeddings.",
        ),
        (
            chat_file("mimo2"), mtp_file(tokens=with_tokens({60: "?"})),
            "Token 60 is “word55” in the target and “?” in the draft.",
        ),
    ],
)  # fmt: skip
def test_mtp_heads_that_do_not_fit(
    tmp_path: Path, target: DraftFile, heads: DraftFile, reason: str
) -> None:
    verdict = judged(tmp_path, target, heads)
    assert (verdict.kind, verdict.compatible) == (DrafterKind.MTP, False)
    assert verdict.reason == reason


@pytest.mark.parametrize(
    ("file", "heads"),
    [
        (chat_file("mimo2", mtp_layers=1), 1),
        (chat_file("step35", mtp_layers=3), 3),
        (chat_file("mimo2"), 0),
        (chat_file("glm5-next", mtp_layers=1), 0),  # llama.cpp has no graph for it yet
        (chat_file("mimo2", nextn_predict_layers=1), 0),  # announced, but stripped
        (chat_file("qwen35", mtp_layers=1), 1),
        (chat_file("qwen35", mtp_layers=2), 0),  # its graph asserts that there is one
        (
            lone(lambda f: f.keys.update(nextn_predict_layers=2), chat_file("mimo2", mtp_layers=1)),
            0,
        ),
        (lone(lambda f: f.keys.update(block_count=6), chat_file("mimo2", mtp_layers=1)), 0),
        (lone(lambda f: f.keys.pop("embedding_length"), chat_file("mimo2", mtp_layers=1)), 0),
        (mtp_file("mimo2"), 0),  # not a target
        (chat_file("gemma4-assistant"), 0),
    ],
)
def test_built_in_heads_are_counted(tmp_path: Path, file: DraftFile, heads: int) -> None:
    assert builtin_mtp(read_header(file.write(tmp_path / "t.gguf"))) == heads


def test_heads_in_the_last_part_of_a_split_model_are_found(tmp_path: Path) -> None:
    file = chat_file("mimo2", mtp_layers=1)
    paths = write_parts(file, tmp_path, first=4)
    assert builtin_mtp(read_header(paths[0])) == 0
    for path in paths:
        assert builtin_mtp(read_parts(path).whole) == 1


def test_the_rule_stands_alone(tmp_path: Path) -> None:
    target = read_header(chat_file("mimo2").write(tmp_path / "t.gguf"))
    assert mtp_obstacle(read_header(mtp_file().write(tmp_path / "m.gguf")), target) is None
    assert mtp_obstacle(read_header(eagle3_file().write(tmp_path / "e.gguf")), target) is not None
    assert mtp_obstacle(target, target) == "The file holds no MTP layer."
