"""A person and the starter model in the real window."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from gui.person import Person
from slipstream.bridge.engine_client import EngineState
from slipstream.chat.records import FinishReason
from slipstream.storage.chat_database import ChatDatabase

pytestmark = pytest.mark.model

QUESTION = "What is the capital of France?"
LONG = "Please read this carefully. " * 700


def generate(
    starter: Path, tmp_path: Path, data: Path, *turns: str, **flags: object
) -> list[dict[str, object]]:
    """What the command line answers to these user turns, computing as is remembered in `data`."""
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps([{"role": "user", "content": turn} for turn in turns]))
    options = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    result = subprocess.run(
        [sys.executable, "-m", "slipstream", "--data-dir", str(data),
         "generate", "--target", str(starter), "--messages", str(messages), "--json", *options],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    answer = json.loads(result.stdout)
    return answer["answers"]  # several user turns without answers between them


def test_the_answer_in_the_window_equals_the_command_lines(
    person: Person, starter: Path, tmp_path: Path
) -> None:
    turns = (QUESTION, "And of Spain?")
    flags = {"temperature": 0, "max-tokens": 40}
    expected = generate(starter, tmp_path, person.data, *turns, **flags)
    person.start(starter)
    person.choose(temperature=0.0, max_tokens=40)
    answers = [person.ask(turn) for turn in turns]
    assert answers == [answer["text"] for answer in expected]
    shown = person.running.window.transcript.plain_text()
    assert all(turn in shown for turn in turns)
    assert answers[0] in shown


def test_a_second_turn_evaluates_only_new_tokens(person: Person, starter: Path) -> None:
    person.start(starter)
    person.choose(temperature=0.0, max_tokens=20)
    person.ask(QUESTION)
    person.ask("Say it again.")
    person.quit()
    chats = ChatDatabase(person.data / "chats.db")
    chat = chats.load(chats.summaries()[0].id)
    chats.close()
    assert chat is not None
    first, second = (message.answer for message in chat.messages[1::2])
    assert first is not None
    assert second is not None
    known = first.statistics.prompt_tokens + first.statistics.generated_tokens
    assert second.statistics.cached_prompt_tokens >= known - 1
    assert second.statistics.prompt_tokens < known + 30


def test_stop_in_the_middle_keeps_the_partial_text(person: Person, starter: Path) -> None:
    app = person.start(starter)
    person.choose(temperature=0.0, max_tokens=-1, logit_bias=((2, -100.0), (0, -100.0)))
    composer, transcript = app.window.composer, app.window.transcript
    person.send("Count from one to one thousand.")
    person.qtbot.waitUntil(lambda: len(transcript.answer_text()) > 40, timeout=60_000)
    assert composer.stop_button.isVisible()
    assert not composer.send_button.isVisible()
    partial = transcript.answer_text()
    person.qtbot.mouseClick(composer.stop_button, Qt.MouseButton.LeftButton)
    person.wait_for(EngineState.READY)
    kept = transcript.answer_text()
    assert kept.startswith(partial)
    assert composer.send_button.isVisible()
    person.choose(max_tokens=10)
    assert person.ask("Thank you.") != ""


def test_stop_during_a_long_prefill_is_quick(person: Person, starter: Path) -> None:
    app = person.start(starter)
    delays = []
    for attempt in range(5):
        person.send(f"{attempt} {LONG}")
        person.wait_for(EngineState.ANSWERING)
        person.qtbot.wait(300)
        begun = time.monotonic()
        person.qtbot.mouseClick(app.window.composer.stop_button, Qt.MouseButton.LeftButton)
        person.wait_for(EngineState.READY)
        delays.append(time.monotonic() - begun)
        app.window.sidebar.new_button.click()
    print("stop during prefill, ms:", [round(delay * 1000) for delay in delays])
    assert sorted(delays)[2] < 1.0, "a chunk of this prompt alone takes longer when nothing aborts"


def test_quitting_in_the_middle_keeps_what_was_written(person: Person, starter: Path) -> None:
    app = person.start(starter)
    person.choose(temperature=0.0, max_tokens=-1, logit_bias=((2, -100.0), (0, -100.0)))
    person.send("Tell me a long story.")
    transcript = app.window.transcript
    person.qtbot.waitUntil(lambda: len(transcript.answer_text()) > 40, timeout=60_000)
    written = transcript.answer_text()
    person.quit()
    app = person.start(starter)
    assert app.window.transcript.answer_text().startswith(written)
    chats = ChatDatabase(person.data / "chats.db")
    chat = chats.load(chats.summaries()[0].id)
    chats.close()
    assert chat is not None
    answer = chat.messages[-1].answer
    assert answer is not None
    assert answer.finish_reason is FinishReason.CANCELLED


def test_an_overlong_message_comes_back_to_be_shortened(person: Person, starter: Path) -> None:
    app = person.start(starter)
    text = "word " * 9000
    person.send(text)
    person.wait_for(EngineState.ANSWERING)
    person.wait_for(EngineState.READY)
    assert app.window.notice_strip.isVisible()
    assert "8,192" in app.window.notice_strip.text()
    assert app.window.composer.text() == text
    person.choose(max_tokens=10)
    assert person.ask("Hello") != ""
