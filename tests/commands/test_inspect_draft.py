"""`inspect TARGET --draft DRAFT`: the verdict for programs and for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.draft_files import chat_file, eagle3_file
from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from slipstream import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    build_tiny_llama(folder / "target.gguf", name="Big one")
    build_tiny_llama(folder / "twin.gguf", seed=1, name="Small one")
    build_other_vocabulary_llama(folder / "other.gguf", token=300)
    eagle3_file().write(folder / "head.gguf")
    chat_file(**{"general.type": "adapter"}).write(folder / "adapter.gguf")
    (folder / "bad.gguf").write_bytes(b"GGUF")
    return folder


def inspect(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = cli.main(["inspect", *(str(argument) for argument in arguments)])
    return code, capsys.readouterr().out


def test_a_pair_that_fits(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    pair = (folder / "target.gguf", "--draft", folder / "twin.gguf")
    code, output = inspect(capsys, *pair, "--json")
    assert code == 0
    assert output.count("\n") == 1
    found = json.loads(output)
    assert set(found) == {"kind", "compatible", "reason", "warnings", "details"}
    assert (found["kind"], found["compatible"]) == ("draft-model", True)
    assert len(found["warnings"]) == 1
    assert found["details"]["target"]["hidden_size"] == 64
    code, output = inspect(capsys, *pair)
    assert code == 0
    lines = output.splitlines()
    assert lines[0].startswith("Target:  Big one (a chat model, ")
    assert lines[1].startswith("Draft:   Small one (a chat model, ")
    assert lines[2:5] == [
        "Fits:    yes",
        "Drafter: draft-model",
        f"Reason:  {found['reason']}",
    ]
    assert lines[5:] == [f"Warning: {found['warnings'][0]}"]


@pytest.mark.parametrize(
    ("draft", "kind", "words"),
    [
        ("other.gguf", "draft-model", "Token 300 is “C” in the target and “ß” in the draft."),
        ("head.gguf", "eagle3", "The head reads layer 3 of its target, which has 2 layers."),
        ("adapter.gguf", None, "“adapter.gguf” is a LoRA adapter, not a draft."),
    ],
)
def test_a_pair_that_does_not_fit_is_no_failure(
    capsys: pytest.CaptureFixture[str], folder: Path, draft: str, kind: str | None, words: str
) -> None:
    pair = (folder / "target.gguf", "--draft", folder / draft)
    code, output = inspect(capsys, *pair, "--json")
    assert code == 0
    found = json.loads(output)
    assert (found["kind"], found["compatible"], found["reason"]) == (kind, False, words)
    code, output = inspect(capsys, *pair)
    assert code == 0
    assert "Fits:    no\n" in output
    assert f"Reason:  {words}\n" in output


def test_heads_that_could_not_be_loaded_are_said_not_to_fit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = chat_file("gemma4").write(tmp_path / "target.gguf")
    heads = chat_file("gemma4-assistant").write(tmp_path / "heads.gguf")
    found = json.loads(inspect(capsys, target, "--draft", heads, "--json")[1])
    assert (found["kind"], found["compatible"]) == ("mtp", False)
    assert found["reason"] == "Heads that share the memory of their target cannot be used yet."


@pytest.mark.parametrize("bad", ["bad.gguf", "missing.gguf", "."])
def test_an_unusable_file_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], folder: Path, bad: str
) -> None:
    good = folder / "target.gguf"
    for target, draft in ((good, folder / bad), (folder / bad, good)):
        code, output = inspect(capsys, target, "--draft", draft, "--json")
        assert code == 3
        assert json.loads(output)["error"]["title"]


def test_a_prompt_and_a_verdict_are_too_much(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    target = folder / "target.gguf"
    assert inspect(capsys, target, "--draft", target, "--render", "messages.json")[0] == 2
    assert inspect(capsys, target, "--draft", target, "--template-var", "a=b")[0] == 2
