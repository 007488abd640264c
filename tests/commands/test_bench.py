"""`slipstream bench` on tiny models: every variant, paired, and what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from models.vocabulary import CHATML
from slipstream import cli
from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.benchmark import BesideFixed, Run, beside_best_fixed, compare


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    build_tiny_llama(made / "target.gguf", chat_template=CHATML)
    build_other_vocabulary_llama(made / "stranger.gguf")
    (made / "prompts.json").write_text('{"one": "Hello there", "two": "Tell me more"}')
    return made


def bench(
    capfd: pytest.CaptureFixture[str], folder: Path, *flags: object
) -> tuple[int, dict[str, Any]]:
    arguments = [
        "--data-dir", folder / "data", "bench", "--target", folder / "target.gguf",
        "--prompts", folder / "prompts.json", "--max-tokens", 20, "--repeat", 2, "--json", *flags,
    ]  # fmt: skip
    code = cli.main([str(argument) for argument in arguments])
    return code, json.loads(capfd.readouterr().out)


def test_every_way_is_measured_beside_plain_decoding(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, found = bench(
        capfd, folder, "--draft", folder / "target.gguf", "--draft", folder / "stranger.gguf",
        "--depth", 2,
    )  # fmt: skip
    assert code == 0
    names = [variant["variant"] for variant in found["variants"]]
    assert names == [
        "plain",
        "prompt-lookup depth 2",
        "prompt-lookup auto",
        "target depth 2",
        "target auto",
    ]
    assert found["answers"] == 5 * 2 * 2
    assert {one["variant"] for one in found["skipped"]} == {"stranger depth 2", "stranger auto"}
    plain, drafted = found["variants"][0], found["variants"][3]
    assert plain["ratio"] == 1.0
    assert set(plain["tasks"]) == {"one", "two"}
    assert plain["depth_histogram"] == {"0": 20 * 2 * 2}
    assert drafted["acceptance_rate"] == 1.0  # the draft is the target itself
    assert drafted["mean_accepted_length"] == 3.0
    assert drafted["ratio"] > 0
    assert found["beside_best_fixed"].keys() == {"prompt-lookup auto", "target auto"}
    assert found["beside_best_fixed"]["target auto"]["best"] == ["target depth 2"]
    assert (folder / "data" / "measurements.json").is_file()


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--repeat", 0), 2),
        (("--max-tokens", 0), 2),
        (("--prompts", "missing.json"), 2),
        (("--temperature", -1), 2),
        (("--depth", 0), 2),
        (("--target", "missing.gguf"), 3),
    ],
)
def test_bad_flags_are_explained(
    capfd: pytest.CaptureFixture[str], folder: Path, flags: tuple[object, ...], code: int
) -> None:
    got, found = bench(capfd, folder, *flags)
    assert got == code
    assert found["error"]["code"] == code


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 3}', '{"a": " "}', "{"])
def test_unusable_prompts_are_explained(
    capfd: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "prompts.json"
    path.write_text(content)
    code, found = bench(capfd, folder, "--prompts", path)
    assert code == 2
    assert "rompts" in found["error"]["title"]


def run_of(variant: str, task: str, repeat: int, rate: float, tokens: int = 50) -> Run:
    figures = SpeculationStatistics(rounds=10, verified=40, accepted=20)
    return Run(variant, task, 0.0, repeat, rate, tokens, figures, {4: 10})


def test_ratios_are_taken_between_runs_of_one_place() -> None:
    runs = [
        run_of("plain", "a", 0, 10.0),
        run_of("plain", "a", 1, 20.0),
        run_of("plain", "b", 0, 10.0),
        run_of("draft", "a", 0, 20.0),
        run_of("draft", "a", 1, 30.0),
        run_of("draft", "b", 0, 5.0),
        run_of("draft", "b", 1, 99.0),  # nothing to compare with
        run_of("plain", "c", 0, 1.0, tokens=3),  # too short to tell anything
        run_of("draft", "c", 0, 100.0, tokens=3),
    ]
    found = compare(runs, "draft")
    assert found.ratio == 1.5
    assert (found.low, found.high) == (0.5, 2.0)
    assert found.acceptance_rate == 0.5
    assert found.mean_accepted_length == 3.0
    assert found.depths == {4: 40}
    assert compare(runs, "draft", "a").ratio == 1.75
    assert compare(runs, "nobody").ratio is None


def test_the_best_fixed_depth_is_chosen_on_other_runs_than_it_is_judged_by() -> None:
    """A depth that was lucky in one half would look 2.0 times as fast if judged by that half."""
    rates = {  # by variant: the speed in each of two repeats
        "plain": (10.0, 10.0),
        "depth 1": (20.0, 10.0),
        "depth 2": (11.0, 12.0),
        "auto": (12.0, 11.0),
    }
    runs = [
        run_of(variant, "a", repeat, rate)
        for variant, pair in rates.items()
        for repeat, rate in enumerate(pair)
    ]
    found = beside_best_fixed(runs, "auto", ["depth 1", "depth 2"])
    # chosen on the first repeat: depth 1, judged 11 / 10; on the second: depth 2, judged 12 / 11
    assert found == BesideFixed(pytest.approx((11 / 10 + 12 / 11) / 2), ("depth 1", "depth 2"))
    assert beside_best_fixed(runs, "auto", ["depth 2"], "b") is None
    assert beside_best_fixed(runs[::2], "auto", ["depth 1", "depth 2"]) is None  # one repeat
