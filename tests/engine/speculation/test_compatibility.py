"""Which drafts fit which targets, and what people are told where they do not."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.speculation.judged_files import HEADS, changed, judged, lone, with_tokens
from models.draft_files import DraftFile, chat_file, eagle3_file, mtp_file, write_parts
from models.raw_header import build_large_header
from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from slipstream.engine.file_role import file_role
from slipstream.engine.gguf import read_header
from slipstream.engine.llama import Model, lib
from slipstream.engine.speculation import compatibility, vocabulary
from slipstream.engine.speculation.compatibility import draft_kind, judge_draft
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.vocabulary import (
    TokenDifference,
    first_difference,
    marker_obstacle,
    size_obstacle,
    type_obstacle,
    vocabulary_traits,
)
from slipstream.errors import ModelFileError

VOCABULARIES = Path(__file__).resolve().parents[3] / ".cache" / "llama.cpp" / "vocab"
NAMES = (
    "aquila", "baichuan", "bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
    "gemma-4", "gpt-2", "gpt-neox", "llama-bpe", "llama-spm", "mpt", "nomic-bert-moe", "phi-3",
    "qwen2", "qwen35", "refact", "starcoder",
)  # fmt: skip


# ---- draft models ----


def test_a_smaller_model_with_the_same_vocabulary_fits(tmp_path: Path) -> None:
    verdict = judged(tmp_path, chat_file(width=16), chat_file(width=8, layers=2))
    assert verdict.kind is DrafterKind.DRAFT_MODEL
    assert verdict.compatible
    assert verdict.reason == "The two share a vocabulary of 200 tokens."
    assert verdict.warnings == ()
    assert verdict.details["first_difference"] is None


PAIRS: list[tuple[str, DraftFile, DraftFile, str]] = [
    (
        "tokenizer",
        chat_file(),
        chat_file(tokenizer="gpt2"),
        "The target's vocabulary is of the SentencePiece type (llama), the draft's of the "
        "byte-pair type (gpt2).",
    ),
    (
        "unknown tokenizer",
        chat_file(),
        chat_file(tokenizer="klingon"),
        "The draft's tokenizer, “klingon”, is unknown to llama.cpp.",
    ),
    (
        "tokenizer without a name",
        changed(chat_file(), lambda file: setattr(file, "tokenizer", None)),
        chat_file(),
        "The target's tokenizer, without a name, is unknown to llama.cpp.",
    ),
    (
        "only the target adds BOS, by default",
        chat_file(),
        chat_file(**{"tokenizer.ggml.add_bos_token": False}),
        "The target puts a beginning-of-text token before every text and the draft does not.",
    ),
    (
        "only the draft adds BOS, by its pre-tokenizer",
        chat_file(tokenizer="gpt2"),
        chat_file(tokenizer="gpt2", **{"tokenizer.ggml.pre": "llama-bpe"}),
        "The draft puts a beginning-of-text token before every text and the target does not.",
    ),
    (
        "another BOS",
        chat_file(),
        chat_file(**{"tokenizer.ggml.bos_token_id": 3}),
        "The beginning-of-text token is token 1 in the target and token 3 in the draft.",
    ),
    (
        "no BOS",
        chat_file(tokenizer="rwkv", **{"tokenizer.ggml.add_bos_token": True}),
        chat_file(
            tokenizer="rwkv",
            **{"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 0},
        ),
        "The beginning-of-text token is missing in the target and token 0 in the draft.",
    ),
    (
        "only the draft adds EOS",
        chat_file(),
        chat_file(**{"tokenizer.ggml.add_eos_token": True}),
        "The draft puts an end-of-text token after every text and the target does not.",
    ),
    (
        "another EOS",
        chat_file(**{"tokenizer.ggml.add_eos_token": True}),
        chat_file(**{"tokenizer.ggml.add_eos_token": True, "tokenizer.ggml.eos_token_id": 4}),
        "The end-of-text token is token 2 in the target and token 4 in the draft.",
    ),
    (
        "129 tokens more",
        chat_file(),
        chat_file(tokens=with_tokens({}, 329)),
        "The target has 200 tokens and the draft 329; they may differ by at most 128.",
    ),
    (
        "a token",
        chat_file(),
        chat_file(tokens=with_tokens({139: "wörd", 150: "later"})),
        "Token 139 is “word134” in the target and “wörd” in the draft.",
    ),
    (
        "the first token compared",
        chat_file(),
        chat_file(tokens=with_tokens({5: "\n\x1b"})),
        "Token 5 is “word0” in the target and “\\n\\x1b” in the draft.",
    ),
    (
        "the last token both have",
        chat_file(),
        chat_file(tokens=with_tokens({199: "[PAD199]"}, 210)),
        "Token 199 is “word194” in the target and “[PAD199]” in the draft.",
    ),
]


@pytest.mark.parametrize(("name", "target", "draft", "reason"), PAIRS, ids=[p[0] for p in PAIRS])
def test_pairs_that_do_not_fit(
    tmp_path: Path, name: str, target: DraftFile, draft: DraftFile, reason: str
) -> None:
    verdict = judged(tmp_path, target, draft)
    assert (verdict.kind, verdict.compatible) == (DrafterKind.DRAFT_MODEL, False)
    assert verdict.reason == reason
    assert verdict.warnings == ()
    json.dumps(dict(verdict.details))


def test_the_first_difference_is_in_the_details(tmp_path: Path) -> None:
    draft = chat_file(tokens=with_tokens({7: "x", 9: "y"}))
    verdict = judged(tmp_path, chat_file(), draft)
    assert verdict.details["first_difference"] == {"id": 7, "target": "word2", "draft": "x"}


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        (chat_file(), chat_file(tokens=with_tokens({0: "a", 2: "b", 4: "c"}))),
        (chat_file(), chat_file(tokens=with_tokens({}, 328))),
        (chat_file(), chat_file(**{"tokenizer.ggml.eos_token_id": 4})),  # not added
        (chat_file(), chat_file(**{"tokenizer.ggml.bos_token_id": 200})),  # beyond: the default
        (chat_file(tokenizer="gpt2"), chat_file(tokenizer="whitespace")),
        # llama.cpp names empty tokens and compares C strings
        (chat_file(tokens=with_tokens({9: ""})), chat_file(tokens=with_tokens({9: "[EMPTY_9]"}))),
        (chat_file(tokens=with_tokens({9: "a\0b"})), chat_file(tokens=with_tokens({9: "a\0c"}))),
    ],
)
def test_differences_that_do_no_harm(tmp_path: Path, target: DraftFile, draft: DraftFile) -> None:
    assert judged(tmp_path, target, draft).compatible


def test_a_draft_that_is_not_smaller_is_warned_of(tmp_path: Path) -> None:
    verdict = judged(tmp_path, chat_file(layers=2), chat_file(layers=9))
    assert verdict.compatible
    (warning,) = verdict.warnings
    assert warning.startswith("The draft is not smaller than the target (")


def test_tokens_only_one_side_has_are_warned_of(tmp_path: Path) -> None:
    verdict = judged(tmp_path, chat_file(width=64, tokens=with_tokens({}, 203)), chat_file())
    assert verdict.compatible
    assert verdict.warnings == (
        "The target has 3 tokens more than the draft; these are never drafted.",
    )


def test_a_target_may_draft_for_itself(starter: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(starter)
    for draft in (starter, link):
        verdict = judge_draft(starter, draft)
        assert (verdict.kind, verdict.compatible) == (DrafterKind.DRAFT_MODEL, True)
        assert "the target itself" in verdict.reason
        assert len(verdict.warnings) == 1


def test_models_that_load(tmp_path: Path) -> None:
    target = build_tiny_llama(tmp_path / "a.gguf")
    assert judge_draft(target, build_tiny_llama(tmp_path / "b.gguf", seed=1)).compatible
    verdict = judge_draft(target, build_other_vocabulary_llama(tmp_path / "c.gguf", token=300))
    assert verdict.details["first_difference"] == {"id": 300, "target": "C", "draft": "ß"}


# ---- kinds of files ----


KINDS: dict[str, tuple[DraftFile, DrafterKind | None, str]] = {
    "chat": (chat_file(), DrafterKind.DRAFT_MODEL, "a chat model"),
    "chat with MTP": (
        chat_file("mimo2", mtp_layers=1), DrafterKind.DRAFT_MODEL, "a chat model",
    ),
    "eagle3": (eagle3_file(), DrafterKind.EAGLE3, "an EAGLE-3 head"),
    "mtp": (mtp_file(), DrafterKind.MTP, "a set of MTP heads"),
    "gemma4 mtp": (chat_file("gemma4-assistant"), DrafterKind.MTP, "a set of MTP heads"),
    "adapter": (
        chat_file(**{"general.type": "adapter"}), None, "a LoRA adapter",
    ),
    "adapter by type": (chat_file(**{"adapter.type": "lora"}), None, "a LoRA adapter"),
    "mmproj": (chat_file("clip"), None, "a projector for images or sound"),
    "encoder": (chat_file("bert"), None, "an embedding model"),
    "pooled": (chat_file(pooling_type=1), None, "an embedding model"),
    "vocabulary": (
        lone(lambda file: file.tensors.clear()), None, "a vocabulary without a model",
    ),
    "diffusion": (chat_file("dream"), None, "a model that does not write token by token"),
    "no vocabulary": (
        chat_file(tokens=()), None, "a model that does not write token by token",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_file_decides(tmp_path: Path, name: str) -> None:
    file, kind, words = KINDS[name]
    path = file.write(tmp_path / "it.gguf")
    header = read_header(path)
    assert draft_kind(header) is kind
    assert file_role(header).words == words
    if kind is None:
        verdict = judge_draft(chat_file().write(tmp_path / "target.gguf"), path)
        assert (verdict.kind, verdict.compatible) == (None, False)
        assert verdict.reason == f"“it.gguf” is {words}, not a draft."
    if kind is not DrafterKind.DRAFT_MODEL:
        verdict = judge_draft(path, chat_file().write(tmp_path / "draft.gguf"))
        assert not verdict.compatible
        assert verdict.reason == f"“it.gguf” is {words}, not a target."


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (replace(chat_file(), big_endian=True), "is a big-endian file"),
        (replace(chat_file(), version=1), "is a GGUF file of version 1"),
        (lone(lambda f: f.types.update({"output_norm.weight": 77})), "stores weights as type 77"),
        (
            chat_file(tokens=(), **{"tokenizer.ggml.tokens": (1, 2)}),
            "has no list of token texts",
        ),
        (lone(lambda f: setattr(f, "tokenizer", "none")), "has no vocabulary"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_loaded(tmp_path: Path, draft: DraftFile, words: str) -> None:
    verdict = judged(tmp_path, chat_file(), draft)
    assert not verdict.compatible
    assert verdict.reason.startswith(f"“draft.gguf” {words}")


# ---- files ----


def test_split_models_are_judged_whole(tmp_path: Path) -> None:
    parts = write_parts(chat_file(), tmp_path, first=2)
    draft = chat_file().write(tmp_path / "draft.gguf")
    for target, other in ((parts[0], draft), (parts[1], draft), (draft, parts[1])):
        verdict = judge_draft(target, other)
        assert verdict.compatible, verdict.reason
    size = sum(part.stat().st_size for part in parts)
    assert judge_draft(parts[1], draft).details["target"]["size_bytes"] == size  # type: ignore[index]
    assert "the target itself" in judge_draft(parts[0], parts[1]).reason
    parts[1].unlink()
    with pytest.raises(ModelFileError, match="m-00002-of-00002"):
        judge_draft(parts[0], draft)
    renamed = parts[0].rename(tmp_path / "renamed.gguf")
    with pytest.raises(ModelFileError, match="part 1 of 2"):
        judge_draft(renamed, draft)


def test_unusable_files_are_errors(tmp_path: Path) -> None:
    good = chat_file().write(tmp_path / "good.gguf")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(good.read_bytes()[:300])
    for path in (bad, tmp_path, tmp_path / "missing.gguf", Path("a\0b")):
        for pair in ((good, path), (path, good)):
            with pytest.raises(ModelFileError):
                judge_draft(*pair)


def test_verdicts_follow_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    chat_file().write(target)
    chat_file().write(draft)
    assert judge_draft(target, draft).compatible
    chat_file(tokens=with_tokens({50: "wOrd45"})).write(draft)
    os.utime(draft, ns=(1, 1))
    assert not judge_draft(target, draft).compatible

    def unexpected(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(compatibility, "read_parts", unexpected)
    monkeypatch.setattr(vocabulary, "read_strings", unexpected)
    assert not judge_draft(target, draft).compatible


def test_memory_is_bounded(tmp_path: Path) -> None:
    lists = vocabulary._TokenLists()
    same = [chat_file().write(tmp_path / f"{n}.gguf") for n in range(3)]
    first, *others = (lists.read(path) for path in same)
    assert all(other is first for other in others)
    for n in range(10):
        lists.read(chat_file(tokens=with_tokens({9: str(n)})).write(tmp_path / f"o{n}.gguf"))
    assert len(lists._known) == vocabulary.CACHED_LISTS


def test_a_file_that_loses_its_tokens_is_an_error(tmp_path: Path) -> None:
    path = chat_file(tokens=()).write(tmp_path / "t.gguf")
    with pytest.raises(ModelFileError, match="has changed"):
        first_difference(path, path)


def test_the_largest_vocabularies_are_compared_at_once(tmp_path: Path) -> None:
    one = build_large_header(tmp_path / "one.gguf", name="One")
    other = build_large_header(tmp_path / "other.gguf", name="Other")
    third = build_large_header(tmp_path / "third.gguf", tokens=262_100)
    assert first_difference(one, other) is None
    assert first_difference(one, third) is None


def test_whatever_meets_there_is_a_verdict(tmp_path: Path) -> None:
    built = [
        *(file for file, _, _ in KINDS.values()),
        *(file for file, _ in HEADS.values()),
        *(file for pair in PAIRS for file in pair[1:3]),
        chat_file("eagle3"),
        DraftFile(""),
        DraftFile("eagle3", tensors={"fc.weight": ()}),
        chat_file(block_count="many", embedding_length=True),
        chat_file("mimo2", nextn_predict_layers=2**31),
    ]
    paths = [file.write(tmp_path / f"{n}.gguf") for n, file in enumerate(built)]
    whole = paths[0].read_bytes()
    for length in (0, 3, 24, len(whole) // 2, len(whole) - 1):
        paths.append(tmp_path / f"cut{length}.gguf")
        paths[-1].write_bytes(whole[:length])
    for target, draft in itertools.product(paths, repeat=2):
        try:
            verdict = judge_draft(target, draft)
        except ModelFileError:
            continue
        assert verdict.reason.endswith(".")
        json.dumps(dict(verdict.details))
        if verdict.compatible:
            assert verdict.kind is not None


# ---- against llama.cpp ----


@pytest.mark.parametrize("name", NAMES)
def test_traits_and_tokens_are_llama_cpps(llama_cpp_files: Path, name: str) -> None:
    path = VOCABULARIES / f"ggml-vocab-{name}.gguf"
    traits = vocabulary_traits(read_header(path))
    model = Model(path, vocab_only=True)
    try:
        vocab = model.vocab
        assert traits.size == lib.llama_vocab_n_tokens(vocab)
        assert traits.add_bos == lib.llama_vocab_get_add_bos(vocab)
        assert traits.add_eos == lib.llama_vocab_get_add_eos(vocab)
        assert (-1 if traits.bos is None else traits.bos) == lib.llama_vocab_bos(vocab)
        assert (-1 if traits.eos is None else traits.eos) == lib.llama_vocab_eos(vocab)
        types = {1: "SentencePiece", 2: "byte-pair", 3: "WordPiece", 4: "unigram"}
        assert traits.type == types[lib.llama_vocab_type(vocab)]
        tokens = vocabulary._lists.read(path)
        for index in range(0, traits.size, 997):
            text = ctypes.c_char_p(lib.llama_vocab_get_text(vocab, index)).value
            assert text is not None
            compared = vocabulary._compared(tokens[index], index)
            assert compared.encode("utf-8", "surrogateescape") == text
    finally:
        model.close()


REAL: list[tuple[str, str, str | TokenDifference | None]] = [
    ("qwen2", "qwen35", None),  # the same tokens, cut from text by another rule
    ("llama-spm", "phi-3", None),
    ("mpt", "gpt-neox", None),
    ("starcoder", "refact", TokenDifference(5, "<repo_name>", "<filename>")),
    (
        "llama-bpe", "deepseek-llm",
        "The beginning-of-text token is token 128000 in the target and token 100000 in the draft.",
    ),
    (
        "gemma-4", "command-r",
        "The beginning-of-text token is token 2 in the target and token 5 in the draft.",
    ),
    (
        "llama-spm", "llama-bpe",
        "The target's vocabulary is of the SentencePiece type (llama), the draft's of the "
        "byte-pair type (gpt2).",
    ),
    (
        "gpt-2", "starcoder",
        "The target has 50,257 tokens and the draft 49,152; they may differ by at most 128.",
    ),
    (
        "baichuan", "llama-spm",
        "The target has 64,000 tokens and the draft 32,000; they may differ by at most 128.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("target", "draft", "reason"), REAL)
def test_real_vocabularies(
    llama_cpp_files: Path, target: str, draft: str, reason: str | TokenDifference | None
) -> None:
    assert real(target, draft) == reason


def real(target: str, draft: str) -> str | TokenDifference | None:
    """What speaks against a draft with one vocabulary for a target with another."""
    ours, theirs = (VOCABULARIES / f"ggml-vocab-{name}.gguf" for name in (target, draft))
    one, other = (vocabulary_traits(read_header(path)) for path in (ours, theirs))
    return (
        type_obstacle(one, other)
        or marker_obstacle(one, other)
        or size_obstacle(one, other)
        or first_difference(ours, theirs)
    )
