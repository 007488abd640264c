"""`generate` with a draft: flags, figures, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from models.vocabulary import CHATML
from slipstream import cli
from slipstream.chat.records import FinishReason, GenerationStatistics, SpeculationStatistics
from slipstream.commands.generate import _speculation_object
from slipstream.engine.events import Finished
from slipstream.engine.speculation.drafter import DrafterKind, PaceStatus

KEYS = {
    "drafter", "draft_path", "active", "reason", "rounds", "plain_passes", "drafted", "verified",
    "accepted", "acceptance_rate", "mean_accepted_length", "acceptance_by_position",
    "draft_seconds", "verify_seconds", "sample_seconds", "verify", "verify_note",
}  # fmt: skip
ENDLESS = ("--logit-bias", "2=-inf", "--logit-bias", "344=-inf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def target(folder: Path) -> Path:
    return build_tiny_llama(folder / "target.gguf", chat_template=CHATML)


def generate(
    capfd: pytest.CaptureFixture[str], target: Path, *flags: object
) -> tuple[int, dict[str, Any]]:
    arguments = [
        "generate", "--target", target, "--prompt", "Hello there", "--temperature", 0,
        "--max-tokens", 21, "--json", *ENDLESS, *flags,
    ]  # fmt: skip
    code = cli.main([str(argument) for argument in arguments])
    return code, json.loads(capfd.readouterr().out)


def test_without_flags_nothing_is_drafted(capfd: pytest.CaptureFixture[str], target: Path) -> None:
    code, answer = generate(capfd, target)
    assert code == 0
    assert set(answer["speculation"]) == KEYS
    assert answer["speculation"]["drafter"] == "none"
    assert answer["speculation"]["active"] is False
    assert answer["speculation"]["rounds"] == 0
    assert answer["accepted_flags"] == [False] * len(answer["tokens"])


@pytest.mark.parametrize("drafter", [(), ("--drafter", "auto"), ("--drafter", "draft-model")])
def test_a_draft_file_is_recognised_and_changes_nothing_but_the_speed(
    capfd: pytest.CaptureFixture[str], target: Path, drafter: tuple[str, ...]
) -> None:
    plain = generate(capfd, target)[1]
    code, answer = generate(
        capfd, target, "--draft", target, "--draft-max", 4, "--pace", "fixed", *drafter
    )
    assert code == 0
    assert answer["tokens"] == plain["tokens"]
    figures = answer["speculation"]
    assert (figures["drafter"], figures["active"]) == ("draft-model", True)
    assert figures["draft_path"] == str(target)
    assert (figures["rounds"], figures["verified"], figures["accepted"]) == (4, 16, 16)
    assert figures["acceptance_rate"] == 1.0
    assert figures["mean_accepted_length"] == 5.0
    assert figures["acceptance_by_position"] == [1.0] * 4
    assert sum(answer["accepted_flags"]) == 16
    assert len(answer["accepted_flags"]) == len(answer["tokens"])


@pytest.mark.parametrize(
    ("flags", "rule", "says_why"),
    [
        ((), "compare", False),  # at temperature 0
        (("--verify", "reject"), "compare", True),
        (("--temperature", 1), "reject", False),
        (("--temperature", 1, "--seed", 3), "compare", False),
        (("--temperature", 1, "--seed", 3, "--verify", "reject"), "reject", False),
        (("--temperature", 1, "--verify", "compare"), "compare", False),
        (("--temperature", 1, "--mirostat", 2, "--verify", "reject"), "compare", True),
    ],
)
def test_the_rule_in_force_is_told(
    capfd: pytest.CaptureFixture[str],
    target: Path,
    flags: tuple[object, ...],
    rule: str,
    says_why: bool,
) -> None:
    code, answer = generate(capfd, target, "--draft", target, "--pace", "fixed", *flags)
    assert code == 0
    assert answer["speculation"]["verify"] == rule
    assert bool(answer["speculation"]["verify_note"]) is says_why


@pytest.mark.parametrize(
    ("rounds", "pace", "reason"),
    [
        (0, PaceStatus(0, 1.0, 0.8, 0.1), "it would not have been faster"),
        (3, PaceStatus(2, 1.2, 1.2, 0.1), ""),
        (0, None, ""),  # always drafts, and had no room to
    ],
)
def test_that_nothing_was_drafted_because_it_does_not_pay_is_told(
    rounds: int, pace: PaceStatus | None, reason: str
) -> None:
    finished = Finished(
        FinishReason.EOG,
        1,
        GenerationStatistics(),
        drafter=DrafterKind.DRAFT_MODEL,
        speculation=SpeculationStatistics(rounds=rounds),
        pace=pace,
    )
    shown = _speculation_object(finished, None, "draft.gguf")
    assert shown["active"] is True
    assert reason in shown["reason"]
    assert bool(reason) is bool(shown["reason"])


def test_auto_without_a_file_uses_the_text_itself(
    capfd: pytest.CaptureFixture[str], target: Path
) -> None:
    code, answer = generate(capfd, target, "--drafter", "auto")
    assert code == 0
    assert answer["speculation"]["drafter"] == "prompt-lookup"
    assert answer["tokens"] == generate(capfd, target)[1]["tokens"]


def test_a_draft_of_another_vocabulary_is_refused_with_the_reason(
    capfd: pytest.CaptureFixture[str], target: Path, folder: Path
) -> None:
    other = build_other_vocabulary_llama(folder / "other.gguf")
    code, answer = generate(capfd, target, "--draft", other)
    assert code == 4
    error = answer["error"]
    assert error["code"] == 4
    assert "other.gguf" in error["title"]
    assert error["detail"].startswith("Token ")


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--draft-max", 0), 2),
        (("--draft-max", 3, "--draft-min", 4), 2),
        (("--p-min", 2), 2),
        (("--draft-threads", -1), 2),
        (("--drafter", "magic"), 2),
        (("--drafter", "draft-model"), 2),
        (("--drafter", "eagle3"), 2),
        (("--drafter", "mtp"), 4),
        (("--drafter", "prompt-lookup", "--draft", "{target}"), 2),
        (("--drafter", "eagle3", "--draft", "{target}"), 4),
        (("--draft", "missing.gguf"), 3),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_drafted(
    capfd: pytest.CaptureFixture[str], target: Path, flags: tuple[object, ...], code: int
) -> None:
    given = [str(flag).format(target=target) for flag in flags]
    got, answer = generate(capfd, target, *given)
    assert got == code
    assert answer["error"]["code"] == code
