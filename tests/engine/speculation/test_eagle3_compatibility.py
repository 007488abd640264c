"""Which EAGLE-3 heads fit which targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.speculation.judged_files import HEADS, changed, judged, lone, with_mapping
from models.draft_files import DraftFile, chat_file, eagle3_file, int64s, mtp_file, write_parts
from slipstream.engine.gguf import read_header
from slipstream.engine.model_parts import read_parts
from slipstream.engine.speculation.compatibility import judge_draft
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.eagle3_compatibility import eagle3_obstacle


def test_an_eagle3_head_fits_its_target(tmp_path: Path) -> None:
    head = eagle3_file(width=6, embeddings=True, output=True, reduced=50)
    verdict = judged(tmp_path, chat_file(), head)
    assert (verdict.kind, verdict.compatible) == (DrafterKind.EAGLE3, True)
    assert verdict.reason == "The head fits the target's width and reads its layers 1, 2, 3."
    assert verdict.details["eagle3"] == {
        "layer_ids": [1, 2, 3],
        "target_hidden_size": 8,
        "own_embeddings": True,
        "own_output": True,
        "draft_vocabulary_size": 50,
    }
    json.dumps(dict(verdict.details))


@pytest.mark.parametrize(
    "head",
    [
        eagle3_file(),
        eagle3_file(embeddings=True),
        eagle3_file(output=True),
        eagle3_file(output=True, reduced=50),
        eagle3_file(layers=(0, 0, 3)),
        lone(lambda f: f.tensors.update({"enc.output_norm.weight": (24,)}),
             lone(lambda f: f.keys.update({"norm_before_fc": True}), eagle3_file())),
    ],
)  # fmt: skip
def test_heads_of_every_make_fit(tmp_path: Path, head: DraftFile) -> None:
    assert judged(tmp_path, chat_file(), head).compatible


def test_a_head_of_the_state_after_the_last_layer_needs_that_state(tmp_path: Path) -> None:
    head = eagle3_file(layers=(1, 2, 4))
    verdict = judged(tmp_path, chat_file("llama"), head)
    assert verdict.reason == (
        "The head reads the state after the last layer (4), which llama.cpp does not give out "
        "for the architecture llama."
    )
    assert judged(tmp_path, chat_file("qwen35"), head).compatible
    # MTP layers are counted in block_count, but are not layers of the target
    target = chat_file("qwen35", layers=3, mtp_layers=1)
    assert "which has 3 layers" in judged(tmp_path, target, head).reason


@pytest.mark.parametrize("name", HEADS)
def test_heads_that_do_not_fit(tmp_path: Path, name: str) -> None:
    head, reason = HEADS[name]
    verdict = judged(tmp_path, chat_file(), head)
    assert (verdict.kind, verdict.compatible) == (DrafterKind.EAGLE3, False)
    assert verdict.reason == reason
    json.dumps(dict(verdict.details))


def test_an_architecture_without_extraction_is_refused(tmp_path: Path) -> None:
    verdict = judged(tmp_path, chat_file("gemma3"), eagle3_file())
    assert verdict.reason == (
        "llama.cpp cannot give out the hidden states of the architecture gemma3."
    )
    target = lone(lambda file: file.keys.pop("block_count"))
    assert "how many layers" in judged(tmp_path, target, eagle3_file()).reason


def test_markers_of_a_head_are_no_more_than_a_warning(tmp_path: Path) -> None:
    head = changed(
        eagle3_file(), lambda file: file.keys.update({"tokenizer.ggml.add_bos_token": False})
    )
    verdict = judged(tmp_path, chat_file(width=8, layers=400), head)
    assert verdict.compatible
    assert any("beginning-of-text" in warning for warning in verdict.warnings)


def test_the_rule_stands_alone(tmp_path: Path) -> None:
    target = read_header(chat_file("mimo2").write(tmp_path / "t.gguf"))
    head = read_parts(eagle3_file().write(tmp_path / "e.gguf"))
    mtp = read_parts(mtp_file().write(tmp_path / "m.gguf"))
    assert eagle3_obstacle(head, target) is None
    assert eagle3_obstacle(mtp, target) == "The file is not an EAGLE-3 head."


@pytest.mark.parametrize("first", [2, 13])
def test_a_split_head_is_judged_whole(tmp_path: Path, first: int) -> None:
    head = eagle3_file(output=True, reduced=50)
    assert list(head.tensors).index("d2t") == 13
    target = chat_file().write(tmp_path / "target.gguf")
    for path in write_parts(head, tmp_path, first=first):
        assert judge_draft(target, path).compatible
    head.data["d2t"] = int64s(*range(-49, 1))
    for path in write_parts(head, tmp_path, first=first, stem="bad"):
        assert judge_draft(target, path).reason.startswith("The head drafts token -49, ")


def test_another_table_is_another_verdict(tmp_path: Path) -> None:
    head = with_mapping(5, 6, 7)
    assert judged(tmp_path, chat_file(), head).compatible
    head.data["d2t"] = int64s(5, 6, 700)
    assert not judged(tmp_path, chat_file(), head).compatible
