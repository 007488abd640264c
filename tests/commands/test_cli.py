"""The command line as its users and other programs meet it: outputs and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from models.tiny_llama import build_tiny_llama
from models.vocabulary import CHATML
from slipstream import __version__, cli
from slipstream.engine.sampling import SETTINGS

JSON_KEYS = {
    "text", "reasoning", "finish_reason", "stop_string", "tokens", "prompt_tokens",
    "cached_prompt_tokens", "generated_tokens", "seed", "prefill_seconds",
    "time_to_first_token_seconds", "decode_seconds", "prefill_tokens_per_second",
    "decode_tokens_per_second", "model", "accepted_flags", "speculation", "threads",
    "threads_batch", "flash_attention",
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny model – 小.gguf"
    return build_tiny_llama(path, chat_template=CHATML, context_length=512, name="Tiny")


class Command:
    """Runs the command line in this process and keeps what it printed."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.noise = ""

    def __call__(self, *arguments: object) -> tuple[int, str]:
        code = cli.main([str(argument) for argument in arguments])
        output, self.noise = self._capfd.readouterr()
        return code, output

    def json(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        code, output = self(*arguments, "--json")
        assert output.endswith("\n")
        assert output.count("\n") == 1
        return code, json.loads(output)


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd)


def ask(target: Path, *more: object) -> tuple[object, ...]:
    return ("generate", "--target", target, "--prompt", "Hello", "--max-tokens", 8, *more)


# ---- generate ----


def test_text_goes_to_standard_output_and_nothing_else(command: Command, tiny: Path) -> None:
    code, output = command(*ask(tiny, "--temperature", 0))
    assert code == 0
    _, answer = command.json(*ask(tiny, "--temperature", 0))
    assert output == answer["text"]


def test_the_json_object_has_the_documented_keys(command: Command, tiny: Path) -> None:
    code, answer = command.json(*ask(tiny, "--seed", 5))
    assert code == 0
    assert set(answer) == JSON_KEYS
    assert answer["seed"] == 5
    assert answer["generated_tokens"] == len(answer["tokens"])
    assert set(answer["model"]) == {"path", "name", "architecture", "quantisation"}
    assert answer["model"]["path"] == str(tiny)
    assert answer["model"]["architecture"] == "llama"


def test_a_seed_repeats_an_answer(command: Command, tiny: Path) -> None:
    first = command.json(*ask(tiny, "--temperature", 1.5))[1]
    again = command.json(*ask(tiny, "--temperature", 1.5, "--seed", first["seed"]))[1]
    assert first["tokens"] == again["tokens"]


def test_every_setting_has_its_flag(command: Command) -> None:
    with pytest.raises(SystemExit) as left:
        command("generate", "-h")
    assert left.value.code == 0
    text = command._capfd.readouterr().out
    for name in SETTINGS:
        assert "--" + name.replace("_", "-") in text


def test_raw_continues_the_prompt_without_a_template(command: Command, tiny: Path) -> None:
    templated = command.json(*ask(tiny))[1]
    raw = command.json(*ask(tiny, "--raw"))[1]
    assert raw["prompt_tokens"] < templated["prompt_tokens"]


def test_several_user_turns_are_answered_in_one_session(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"role": "user", "content": text} for text in ("One", "Two")]))
    code, result = command.json(
        "generate", "--target", tiny, "--messages", script, "--max-tokens", 4, "--temperature", 0
    )
    assert code == 0
    first, second = result["answers"]
    assert first["cached_prompt_tokens"] == 0
    assert second["cached_prompt_tokens"] >= first["prompt_tokens"]
    assert second["prompt_tokens"] > first["prompt_tokens"] + 4


def test_messages_answer_the_last_user_turn(command: Command, tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    turns = [("system", "Be brief."), ("user", "One"), ("assistant", "1"), ("user", "Two")]
    file.write_text(json.dumps([{"role": role, "content": text} for role, text in turns]))
    rendered = command("inspect", tiny, "--render", file)[1]
    assert rendered.index("Be brief.") < rendered.index("One") < rendered.index("Two")
    assert rendered.endswith("<|im_start|>assistant\n")
    _, answer = command.json("generate", "--target", tiny, "--messages", file, "--max-tokens", 2)
    assert "answers" not in answer


def test_stop_strings_and_limits_give_their_reasons(command: Command, tiny: Path) -> None:
    whole = command.json(*ask(tiny, "--temperature", 0, "--logit-bias", "2=-inf"))[1]
    assert whole["finish_reason"] == "length"
    stop = whole["text"][2:4]
    cut = command.json(
        *ask(
            tiny, "--temperature", 0, "--logit-bias", "2=-inf", "--stop", "nowhere", "--stop", stop
        )
    )[1]
    assert (cut["finish_reason"], cut["stop_string"]) == ("stop", stop)
    assert cut["text"] == whole["text"][: whole["text"].index(stop)]


def test_a_chat_template_and_its_variables(command: Command, tiny: Path, tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("{{ mood }}:{% for m in messages %}{{ m.content }}{% endfor %}")
    messages = tmp_path / "messages.json"
    messages.write_text('[{"role": "user", "content": "Hi"}]')
    render = ("inspect", tiny, "--render", messages, "--chat-template", template)
    assert command(*render, "--template-var", "mood=calm") == (0, "calm:Hi")
    assert command.json(*ask(tiny, "--chat-template", template))[0] == 0


def test_control_c_prints_the_partial_object(tiny: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "slipstream", "generate", "--target", str(tiny), "--prompt", "Hi",
         "--max-tokens", "-1", "--n-ctx", "200000", "--json",
         "--logit-bias", "2=-inf", "--logit-bias", "344=-inf"],  # it never ends its turn
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    output, noise = process.communicate(timeout=30)
    assert process.returncode == 130, noise
    answer = json.loads(output)
    assert answer["finish_reason"] == "cancelled"
    assert answer["generated_tokens"] == len(answer["tokens"]) > 0


@pytest.mark.parametrize("wanted", ["first", "last"])
def test_control_c_while_loading_is_not_lost(
    command: Command, tiny: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    """Pressed inside a callback of llama.cpp, where Python would drop the exception."""
    from slipstream.engine.session import GenerationSession
    from slipstream.engine.target import Target

    opened = Target.__init__
    if wanted == "first":

        def pressed(self: Target, request: object, *, progress: Any, **options: Any) -> None:
            def report(fraction: float) -> bool:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)  # the thread that waits for it has its turn
                return bool(progress(fraction))

            opened(self, request, progress=report, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Target, "__init__", pressed)
    else:
        made = GenerationSession.__init__

        def late(self: GenerationSession, *arguments: Any, **options: Any) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            made(self, *arguments, **options)

        monkeypatch.setattr(GenerationSession, "__init__", late)
    code, answer = command.json(*ask(tiny))
    assert code == 130
    assert answer["error"]["code"] == 130
    assert "Traceback" not in command.noise


def test_control_c_in_the_last_round_keeps_the_next_turn_from_beginning(
    command: Command, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slipstream.engine.session import GenerationSession

    finished = GenerationSession._finished

    def pressed(self: GenerationSession, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return finished(self, *arguments)

    monkeypatch.setattr(GenerationSession, "_finished", pressed)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"role": "user", "content": text} for text in ("One", "Two")]))
    code, result = command.json(
        "generate", "--target", tiny, "--messages", script, "--max-tokens", 2,
        "--logit-bias", "2=-inf",
    )  # fmt: skip
    assert code == 130
    assert [answer["finish_reason"] for answer in result["answers"]] == ["length"]


def test_a_later_turn_that_does_not_fit_loses_no_earlier_answer(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    turns = ("One", "word " * 600)
    script.write_text(json.dumps([{"role": "user", "content": text} for text in turns]))
    arguments = ("generate", "--target", tiny, "--messages", script, "--max-tokens", 2)
    code, result = command.json(*arguments, "--temperature", 0)
    assert code == 5
    assert len(result["answers"]) == 1
    assert result["error"]["code"] == 5
    code, output = command(*arguments, "--temperature", 0)
    assert (code, output) == (5, result["answers"][0]["text"])
    assert result["error"]["title"] in command.noise


# ---- errors ----


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("generate",), 2),
        (("generate", "--target", "{tiny}"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--messages", "b"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--no-such-flag"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--temperature", "9"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--temperature", "warm"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--n-ctx", "-5"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--n-ctx", "4294967297"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--n-batch", "4294967296"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--threads", "9999999999"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--grammar", "\udcff"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--stop", ""), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--grammar", "root := x"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--logit-bias", "x"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--logit-bias", "99999999=1"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "", "--raw", "--max-tokens", "1"), 0),
        (("generate", "--target", "{tiny}", "--messages", "missing.json"), 2),
        (("generate", "--target", "{tiny}", "--messages", "{bad}"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--chat-template", "{broken}"), 2),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--template-var", "oops"), 2),
        (("generate", "--target", "missing.gguf", "--prompt", "a"), 3),
        (("generate", "--target", "{bad}", "--prompt", "a"), 3),
        (("generate", "--target", "{folder}", "--prompt", "a"), 3),
        (("generate", "--target", "{tiny}", "--prompt", "{long}"), 5),
        (("generate", "--target", "{tiny}", "--prompt", "a", "--n-ctx", "2000000000"), 5),
        (("inspect", "missing.gguf"), 3),
        (("inspect", "{bad}"), 3),
        (("inspect",), 2),
        (("inspect", "{tiny}", "--template-var", "a=b"), 2),
        (("self-test", "--model", "missing.gguf"), 1),
    ],
)
def test_errors_are_objects_with_words_and_their_code(
    command: Command, tiny: Path, tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    broken = tmp_path / "broken.jinja"
    broken.write_text("line one\n{% if %}")
    names = {"tiny": tiny, "bad": bad, "broken": broken, "folder": tmp_path, "long": "word " * 600}
    given = [argument.format(**names) for argument in arguments]
    got, answer = command.json(*given)
    assert got == code, answer
    if code in (0, 1):
        return
    error = answer["error"]
    assert set(error) == {"code", "title", "detail", "hint"}
    assert error["code"] == code
    assert error["title"].endswith(".")
    got, output = command(*given)
    assert (got, output) == (code, "")
    assert error["title"] in command.noise


@pytest.mark.parametrize(
    "content",
    [
        "[]", '[{"role": "user"}]', '[{"role": "robot", "content": "a"}]', '["a"]', "{}", "17",
        '[{"role": "system", "content": "a"}]', '[{"role": "user", "content": 5}]', "\x00",
        "[" * 99,
        '[{"role": ["user"], "content": "a"}]', '[{"role": "user", "content": [{"a": 1}]}]',
    ],
)  # fmt: skip
def test_useless_messages_are_usage_errors(
    command: Command, tiny: Path, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "messages.json"
    file.write_text(content)
    code, answer = command.json("generate", "--target", tiny, "--messages", file)
    assert code == 2
    assert answer["error"]["hint"]


def test_a_template_error_names_line_and_column(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("fine\n  {% iff x %}")
    _, answer = command.json(*ask(tiny, "--chat-template", template))
    words = answer["error"]["title"] + answer["error"]["detail"]
    assert "mine.jinja" in words
    assert "line 2" in words
    assert "column" in words


def test_a_fault_of_our_own_is_exit_code_1(
    command: Command, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: Path) -> None:
        raise RuntimeError("our own fault")

    monkeypatch.setattr("slipstream.commands.generate.describe_model_file", broken)
    code, answer = command.json(*ask(tiny))
    assert code == 1
    assert "our own fault" in answer["error"]["detail"]


# ---- inspect, self-test, the rest ----


def test_inspect_tells_what_the_header_says(command: Command, tiny: Path) -> None:
    code, found = command.json("inspect", tiny)
    assert code == 0
    assert found["name"] == "Tiny"
    assert found["architecture"] == "llama"
    assert found["context_length"] == 512
    code, words = command("inspect", tiny)
    assert code == 0
    assert "Tiny" in words
    assert "512" in words


def test_self_test_reports_every_check(command: Command, tiny: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    code, result = command.json(
        "--data-dir", tmp_path / "data", "self-test", "--model", tiny, "--gui", "--report", report
    )
    assert code == 0, result
    assert result["passed"] is True
    names = [check["name"] for check in result["checks"]]
    assert names == ["imports", "backend", "data directory", "generation", "window"]
    assert json.loads(report.read_text(encoding="utf-8")) == result
    assert str(tmp_path / "data") in result["checks"][2]["detail"]


def test_version_and_help(command: Command) -> None:
    for arguments, words in ((["--version"], __version__), (["-h"], "generate")):
        with pytest.raises(SystemExit) as left:
            cli.main(arguments)
        assert left.value.code == 0
        assert words in command._capfd.readouterr().out


def test_a_reader_that_goes_away_is_no_traceback(tiny: Path) -> None:
    result = subprocess.run(
        f'"{sys.executable}" -m slipstream generate --target "{tiny}" --prompt Hi '
        "--max-tokens 200 --logit-bias 2=-inf | head -c 1",
        shell=True, capture_output=True, encoding="utf-8", errors="replace", timeout=120,
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


def slipstream(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell's command line in which `slipstream` stands for this installation's."""
    line = command.replace("slipstream", f'"{sys.executable}" -m slipstream', 1)
    variables = {name: value for name, value in os.environ.items() if name not in _SCREENS}
    variables["PYTHONPATH"] = str(Path(cli.__file__).parents[1])
    return subprocess.run(
        line, shell=True, capture_output=True, text=True, timeout=120, env=variables | environment
    )


_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "QT_QPA_PLATFORM")


@pytest.mark.skipif(sys.platform == "win32", reason="as a POSIX shell does it")
def test_closed_outputs_are_no_fault(tiny: Path) -> None:
    result = slipstream(f'slipstream inspect "{tiny}" >&- 2>&-')
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    result = slipstream(f'slipstream generate --target "{tiny}" --prompt a --max-tokens 2 >&-')
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("more", ["", " --json"])
def test_an_output_that_cannot_be_written_is_told(tiny: Path, more: str) -> None:
    result = slipstream(f'slipstream inspect "{tiny}"{more} > /dev/full')
    assert result.returncode == 1
    assert result.stderr == "slipstream: The output could not be written. The disk is full.\n"
    result = slipstream(f"slipstream inspect missing.gguf{more} > /dev/full")
    assert result.returncode == 3
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a current folder cannot go away")
def test_a_current_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    for command in ("inspect a.gguf", "--data-dir data", f'--data-dir "{tmp_path}/data" a.gguf'):
        folder = tmp_path / "gone"
        folder.mkdir()
        result = slipstream(
            f'cd "{folder}" && rmdir "{folder}" && slipstream {command}',
            QT_QPA_PLATFORM="offscreen",
        )
        assert result.returncode == 2, result.stderr
        assert "folder does not exist any more" in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Qt finds its screen by other means elsewhere")
def test_without_a_screen_the_window_says_so(tmp_path: Path) -> None:
    result = slipstream(f'slipstream --data-dir "{tmp_path}"')
    assert result.returncode == 1
    assert "no screen" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="as POSIX does it")
def test_an_early_ctrl_c_ends_the_window_quietly(tmp_path: Path) -> None:
    for wait in (0.2, 0.3, 0.45):
        process = subprocess.Popen(
            [sys.executable, "-m", "slipstream", "--data-dir", str(tmp_path), "none.gguf"],
            stderr=subprocess.PIPE, text=True, env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, noise = process.communicate(timeout=30)
        assert "Qt" not in noise
        assert process.returncode in (-signal.SIGINT, 0, 130), noise
