"""Pairs of files to be judged, and EAGLE-3 heads that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from models.draft_files import TOKENS, DraftFile, chat_file, eagle3_file, int64s
from slipstream.engine.speculation.compatibility import DraftVerdict, judge_draft

Change = Callable[[DraftFile], object]


def judged(folder: Path, target: DraftFile, draft: DraftFile) -> DraftVerdict:
    return judge_draft(target.write(folder / "target.gguf"), draft.write(folder / "draft.gguf"))


def with_tokens(changes: dict[int, str], count: int = len(TOKENS)) -> tuple[str, ...]:
    tokens = [*TOKENS, *(f"[PAD{n}]" for n in range(len(TOKENS), count))][:count]
    for index, text in changes.items():
        tokens[index] = text
    return tuple(tokens)


def changed(file: DraftFile, change: Change) -> DraftFile:
    change(file)
    return file


def lone(change: Change, file: DraftFile | None = None) -> DraftFile:
    return changed(file or chat_file(), change)


def with_mapping(*ids: int, tokens: Sequence[str] = TOKENS) -> DraftFile:
    """A head whose draft tokens are these of the target."""
    file = eagle3_file(tokens=tokens, output=True, reduced=len(ids))
    file.data["d2t"] = int64s(*ids)
    return file


HEADS: dict[str, tuple[DraftFile, str]] = {
    "layer beyond": (
        eagle3_file(layers=(1, 2, 5)),
        "The head reads layer 5 of its target, which has 4 layers.",
    ),
    "negative layer": (
        eagle3_file(layers=(-1, 2, 3)),
        "The head reads layer -1 of its target, which has 4 layers.",
    ),
    "two layers": (
        eagle3_file(layers=(1, 2)),
        "The head reads 2 layers of its target; it must be 3.",
    ),
    "no layers": (
        lone(lambda f: f.keys.pop("target_layers"), eagle3_file()),
        "The head does not say which layers of its target it reads.",
    ),
    "layers that are texts": (
        lone(lambda f: f.keys.update(target_layers=("a", "b", "c")), eagle3_file()),
        "The head does not say which layers of its target it reads.",
    ),
    "two blocks": (
        lone(lambda f: f.keys.update(block_count=2), eagle3_file()),
        "The head has 2 layers of its own; it must be 1.",
    ),
    "no width": (
        lone(lambda f: f.keys.pop("target_hidden_size"), eagle3_file()),
        "The head does not say how wide its hidden states and its target's are.",
    ),
    "another width": (
        eagle3_file(target_width=10),
        "The head is made for a target of width 10, and this one has 8.",
    ),
    "missing tensor": (
        lone(lambda f: f.tensors.pop("blk.0.attn_norm_2.weight"), eagle3_file()),
        "The head is incomplete: it has no “blk.0.attn_norm_2.weight”.",
    ),
    "missing norm": (
        lone(lambda f: f.keys.update(norm_before_fc=True), eagle3_file()),
        "The head is incomplete: it has no “enc.output_norm.weight”.",
    ),
    "wrong matrix": (
        lone(lambda f: f.tensors.update({"fc.weight": (16, 8)}), eagle3_file()),
        "The head's first matrix is not of the size its metadata says.",
    ),
    "key and value sizes": (
        lone(
            lambda f: f.keys.update(
                {"eagle3.attention.key_length": 4, "eagle3.attention.head_count": 1}
            ),
            eagle3_file(),
        ),
        "The head's attention keys and values are of different sizes.",
    ),
    "d2t of floats": (
        lone(lambda f: f.types.clear(), eagle3_file(output=True, reduced=50)),
        "The head's table of draft tokens is not a list of 64-bit whole numbers.",
    ),
    "d2t of two columns": (
        lone(lambda f: f.tensors.update(d2t=(50, 2)), eagle3_file(output=True, reduced=50)),
        "The head's table of draft tokens is not a list of 64-bit whole numbers.",
    ),
    "d2t larger than the vocabulary": (
        eagle3_file(output=True, reduced=201),
        "The head drafts 201 tokens, and its vocabulary has 200.",
    ),
    "d2t beyond the target": (
        with_mapping(*range(49), 200),
        "The head drafts token 200, and the target has 200 tokens.",
    ),
    "d2t below zero": (
        with_mapping(*range(49), -1),
        "The head drafts token -1, and the target has 200 tokens.",
    ),
    "d2t beyond the target, not the head": (
        eagle3_file(tokens=with_tokens({}, 210), output=True, reduced=5),
        "The head drafts token 205, and the target has 200 tokens.",
    ),
    "d2t beyond the head, not the target": (
        with_mapping(*range(49), 195, tokens=with_tokens({}, 190)),
        "The head drafts token 195, and its vocabulary has 190 tokens.",
    ),
    "d2t of offsets, as before conversion": (
        with_mapping(0, 0, 0, 3, 3, *[7] * 45),
        "The head's table of draft tokens names token 0 twice.",
    ),
    "narrow and without embeddings": (
        eagle3_file(width=6, output=True),
        "The head has no token embeddings of its own, and at width 6 it cannot share those of "
        "a target of width 8.",
    ),
    "narrow and without both": (
        eagle3_file(width=6),
        "The head has no token embeddings and no output of its own, and at width 6 it cannot "
        "share those of a target of width 8.",
    ),
    "embeddings for fewer tokens": (
        lone(lambda f: f.tensors.update({"token_embd.weight": (8, 100)}), eagle3_file()),
        "The head's token embeddings do not cover its vocabulary.",
    ),
    "embeddings of one dimension": (
        lone(lambda f: f.tensors.update({"token_embd.weight": (8,)}), eagle3_file()),
        "The head's token embeddings do not cover its vocabulary.",
    ),
    "output of another size": (
        lone(lambda f: f.tensors.update({"output.weight": (8, 100)}), eagle3_file()),
        "The head's output is not of the size its metadata says.",
    ),
    "reduced without an output": (
        eagle3_file(reduced=50),
        "The head shares the target's output of 200 tokens, but is made for one of 50.",
    ),
    "another token": (
        eagle3_file(tokens=with_tokens({17: "?"})),
        "Token 17 is “word12” in the target and “?” in the draft.",
    ),
    "another tokenizer": (
        eagle3_file(tokenizer="gpt2"),
        "The target's vocabulary is of the SentencePiece type (llama), the draft's of the "
        "byte-pair type (gpt2).",
    ),
}  # fmt: skip
