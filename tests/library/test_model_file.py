"""What is told about a model file, and which kind of file it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from models import draft_files
from models.raw_header import STRING, UINT32, RawHeader, small_header
from models.tiny_llama import build_tiny_llama
from models.vocabulary import CHATML
from slipstream.engine.file_role import FileRole
from slipstream.engine.gguf import ByteOrder, FileFault, GgufError
from slipstream.library import starter as starter_module
from slipstream.library.model_file import (
    ModelFile,
    describe_model_file,
    facts,
    facts_text,
    format_count,
    format_size,
    require_chat_model,
)
from slipstream.library.model_kind import ModelKind
from slipstream.library.starter import starter_model_path

VOCABULARIES = [
    "aquila", "baichuan", "bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon",
    "gemma-4", "gpt-2", "gpt-neox", "llama-bpe", "llama-spm", "mpt", "nomic-bert-moe", "phi-3",
    "qwen2", "qwen35", "refact", "starcoder",
]  # fmt: skip


def test_starter_facts(starter: Path) -> None:
    model = describe_model_file(starter)
    assert model == ModelFile(
        path=starter,
        name="Smollm2 135M 8k Lc100K Mix1 Ep2",
        kind=ModelKind.CHAT,
        size_bytes=98_362_432,
        part_count=1,
        quantisation="Q4_1",
        architecture="llama",
        parameter_count=134_515_008,
        tensor_count=272,
        context_length=8192,
        embedding_length=576,
        block_count=30,
        vocabulary_size=49_152,
        tokenizer="gpt2",
        licence="apache-2.0",
        has_chat_template=True,
        mtp_layers=0,
        gguf_version=3,
        byte_order=ByteOrder.LITTLE,
        obstacle="",
    )
    require_chat_model(model)
    known = facts(model)
    assert json.loads(json.dumps(known)) == known
    assert (known["kind"], known["byte_order"], known["is_split"]) == ("chat", "little", False)
    text = facts_text(model)
    for words in ("98.4 MB (98,362,432 bytes)", "134.5 M", "8,192 tokens", "Q4_1", "apache-2.0"):
        assert words in text


def test_starter_is_found_in_the_checkout_and_in_a_frozen_app(
    starter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = starter_model_path()
    assert found is not None
    assert found.samefile(starter)
    monkeypatch.setattr(starter_module.sys, "_MEIPASS", str(tmp_path), raising=False)
    assert starter_model_path() is None
    frozen = tmp_path / "resources" / "models" / starter.name
    frozen.parent.mkdir(parents=True)
    frozen.write_bytes(b"GGUF")
    assert starter_model_path() == frozen


@pytest.mark.parametrize("name", VOCABULARIES)
def test_vocabulary_files(llama_cpp_files: Path, name: str) -> None:
    path = llama_cpp_files / "vocab" / f"ggml-vocab-{name}.gguf"
    assert path.is_file(), f"{path} is missing: run the set-up (make test does it)"
    model = describe_model_file(path)
    assert model.kind is ModelKind.VOCABULARY
    assert (model.parameter_count, model.quantisation) == (0, "")
    assert model.vocabulary_size is not None
    assert model.vocabulary_size > 30_000
    assert model.name
    assert facts_text(model)
    with pytest.raises(GgufError) as caught:
        require_chat_model(model)
    assert "a vocabulary without a model" in caught.value.detail


def test_tiny_chat_model(tmp_path: Path) -> None:
    path = build_tiny_llama(tmp_path / "t.gguf", chat_template=CHATML, licence="mit", name="Tiny")
    model = describe_model_file(path)
    assert (model.name, model.kind, model.quantisation) == ("Tiny", ModelKind.CHAT, "F32")
    assert (model.licence, model.has_chat_template) == ("mit", True)
    assert (model.block_count, model.context_length, model.embedding_length) == (2, 512, 64)
    assert not describe_model_file(build_tiny_llama(tmp_path / "u.gguf")).has_chat_template


def architecture(name: str) -> RawHeader:
    """A header with a vocabulary and an embedding tensor: enough to be a chat model."""
    header = RawHeader().entry("general.architecture", STRING, name)
    header.array("tokenizer.ggml.tokens", STRING, ["a", "b"])
    return header.tensor("token_embd.weight", (8,))


def with_tensor(header: RawHeader, name: str) -> RawHeader:
    return header.tensor(name, (8,), 0, 32 * len(header.tensors))


KINDS: dict[str, tuple[ModelKind, Callable[[], RawHeader]]] = {
    "chat": (ModelKind.CHAT, lambda: architecture("qwen3")),
    "declared model": (
        ModelKind.CHAT,
        lambda: architecture("qwen3").entry("general.type", STRING, "model"),
    ),
    "eagle3": (ModelKind.EAGLE3, lambda: architecture("eagle3")),
    "clip": (ModelKind.MMPROJ, lambda: RawHeader().entry("general.architecture", STRING, "clip")),
    "mmproj": (ModelKind.MMPROJ, lambda: architecture("x").entry("general.type", STRING, "mmproj")),
    "adapter": (
        ModelKind.ADAPTER,
        lambda: architecture("llama").entry("general.type", STRING, "adapter"),
    ),
    "imatrix": (
        ModelKind.OTHER,
        lambda: architecture("llama").entry("general.type", STRING, "imatrix"),
    ),
    "bert": (ModelKind.EMBEDDING, lambda: architecture("bert")),
    "pooled": (
        ModelKind.EMBEDDING,
        lambda: architecture("qwen3").entry("qwen3.pooling_type", UINT32, 3),
    ),
    "not pooled": (
        ModelKind.CHAT,
        lambda: architecture("qwen3").entry("qwen3.pooling_type", UINT32, 0),
    ),
    "assistant": (ModelKind.MTP, lambda: architecture("gemma4-assistant")),
    "diffusion": (ModelKind.OTHER, lambda: architecture("llada")),
    "picture model": (
        ModelKind.OTHER,
        lambda: RawHeader().entry("general.architecture", STRING, "flux").tensor("x", (8,)),
    ),
    "nothing": (ModelKind.OTHER, RawHeader),
}


@pytest.mark.parametrize(("kind", "build"), KINDS.values(), ids=KINDS.keys())
def test_kind(tmp_path: Path, kind: ModelKind, build: Callable[[], RawHeader]) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(build().to_bytes(data=32))
    model = describe_model_file(path)
    assert model.kind is kind
    assert kind.description
    if kind is not ModelKind.CHAT:
        with pytest.raises(GgufError) as caught:
            require_chat_model(model)
        assert caught.value.kind is FileFault.WRONG_KIND


def test_kinds_are_the_engines_roles() -> None:
    assert [kind.value for kind in ModelKind] == [role.value for role in FileRole]


def test_mtp_heads_built_in_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "mtp.gguf"
    header = architecture("qwen35").entry("qwen35.block_count", UINT32, 3)
    header.entry("qwen35.nextn_predict_layers", UINT32, 1)
    path.write_bytes(header.to_bytes(data=32))
    assert describe_model_file(path).mtp_layers == 0
    with_tensor(header, "blk.2.nextn.eh_proj.weight")
    path.write_bytes(header.to_bytes(data=64))
    alone = describe_model_file(path)
    assert (alone.kind, alone.mtp_layers) == (ModelKind.MTP, 1)
    with_tensor(header, "blk.0.attn_q.weight")
    path.write_bytes(header.to_bytes(data=96))
    whole = describe_model_file(path)
    assert (whole.kind, whole.mtp_layers) == (ModelKind.CHAT, 1)
    assert "MTP" in facts_text(whole)


def test_obstacles(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    for changes, word in (({"version": 1}, "version 1"), ({"big_endian": True}, "big-endian")):
        raw = small_header(**changes)  # type: ignore[arg-type]
        raw.array("tokenizer.ggml.tokens", STRING, ["a"])
        path.write_bytes(raw.to_bytes(data=230))
        assert word in describe_model_file(path).obstacle
    path.write_bytes(architecture("llama").tensor("x", (8,), 77, 32).to_bytes(data=96))
    model = describe_model_file(path)
    assert "type 77" in model.obstacle
    with pytest.raises(GgufError) as caught:
        require_chat_model(model)
    assert "odd.gguf" in caught.value.title


@pytest.mark.parametrize(
    ("file", "given", "shown"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "", "SmolLM2 135M Instruct"),
        ("Llama-3.1-8B-Q4_K_M.gguf", "model", "Llama 3.1 8B"),
        ("gemma-2-2b.gguf", "./out/gemma", "gemma 2 2b"),
        ("x.gguf", "47b6801b24d15ff9bcd8c96dfaea0be9ed3a0301", "x"),
        ("x.gguf", "Evil\nname\u202e", "Evil\\nname\\u202e"),
        ("模型 😀.gguf", "", "模型 😀"),
    ],
)
def test_display_name(tmp_path: Path, file: str, given: str, shown: str) -> None:
    path = tmp_path / file
    path.write_bytes(architecture("llama").entry("general.name", STRING, given).to_bytes(data=32))
    assert describe_model_file(path).name == shown


def test_quantisation_without_file_type_is_that_of_most_weights(tmp_path: Path) -> None:
    path = tmp_path / "q.gguf"
    header = RawHeader().tensor("n", (640,), 0, 0).tensor("a", (32, 2), 2, 2560)
    path.write_bytes(header.tensor("b", (32, 8), 8, 2624).to_bytes(data=2624 + 272))
    assert describe_model_file(path).quantisation == "Q8_0"


def write_parts(folder: Path, count: int = 3) -> list[Path]:
    paths = [folder / f"big-{n:05d}-of-{count:05d}.gguf" for n in range(1, count + 1)]
    for index, path in enumerate(paths):
        header = RawHeader()
        if index == 0:
            header.entry("general.architecture", STRING, "llama")
            header.array("tokenizer.ggml.tokens", STRING, ["a"])
            header.entry("split.tensors.count", UINT32, count)
        header.entry("split.no", UINT32, index).entry("split.count", UINT32, count)
        name = "token_embd.weight" if index == 0 else f"blk.{index}.weight"
        path.write_bytes(header.tensor(name, (8, 4)).to_bytes(data=128))
    return paths


def test_any_part_describes_the_whole_set(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    models = [describe_model_file(path) for path in paths]
    assert models[0] == models[1] == models[2]
    model = models[0]
    assert (model.path, model.part_count, model.is_split) == (paths[0], 3, True)
    assert model.size_bytes == sum(path.stat().st_size for path in paths)
    assert (model.parameter_count, model.tensor_count, model.name) == (96, 3, "big")
    assert "in 3 files" in facts_text(model)


def test_mtp_heads_in_the_last_part_are_counted(tmp_path: Path) -> None:
    file = draft_files.chat_file("mimo2", mtp_layers=1)
    for path in draft_files.write_parts(file, tmp_path, first=4):
        model = describe_model_file(path)
        assert (model.kind, model.mtp_layers) == (ModelKind.CHAT, 1)


def test_missing_part_is_named(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    describe_model_file(paths[0])
    paths[1].unlink()
    for path in (paths[0], paths[2]):
        with pytest.raises(GgufError) as caught:
            describe_model_file(path)
        assert caught.value.kind is FileFault.MISSING_PART
        assert "big-00002-of-00003.gguf" in caught.value.detail


def test_description_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_tiny_llama(tmp_path / "t.gguf", name="One")
    first = describe_model_file(path)
    assert describe_model_file(str(path)) is first
    monkeypatch.chdir(tmp_path)
    assert describe_model_file("t.gguf") is first
    build_tiny_llama(path, name="Two")
    os.utime(path, ns=(1, 1))
    assert describe_model_file(path).name == "Two"
    path.unlink()
    with pytest.raises(GgufError) as caught:
        describe_model_file(path)
    assert caught.value.kind is FileFault.MISSING


def test_sizes_and_counts_for_people() -> None:
    assert [format_size(n) for n in (0, 999, 98_362_432, 999_960, 4_370_000_000, 10**15)] == [
        "0 bytes",
        "999 bytes",
        "98.4 MB",
        "1.0 MB",
        "4.4 GB",
        "1000.0 TB",
    ]
    counts = [format_count(n) for n in (96, 96_000, 134_515_008, 999_700_000, 7_241_732_096)]
    assert counts == ["96", "96.0 k", "134.5 M", "1.0 B", "7.2 B"]
