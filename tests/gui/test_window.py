"""The window's behaviour with a tiny model: loading, chats, settings, notices, leaving."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from gui.person import Person
from slipstream.app import ask_through_window
from slipstream.bridge.engine_client import EngineState
from slipstream.chat.records import AnswerRecord, FinishReason
from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.icons import icon
from slipstream.ui.main_window import MainWindow
from slipstream.ui.theme import apply_theme

NAMES = (
    "main_window", "target_picker", "composer", "send_button", "stop_button", "transcript",
    "sampler_panel", "throughput_gauge", "context_meter", "chat_list", "search_box",
    "notice_strip",
)  # fmt: skip

ENDLESS = ((2, -100.0), (344, -100.0))
"""Keeps the tiny model from ending its turn: its </s> and its <|im_end|>."""


def last_answer(person: Person) -> AnswerRecord:
    """The record of the latest answer of the chat that is shown."""
    chat = person.running._controller._chat
    assert chat is not None
    answer = chat.messages[-1].answer
    assert answer is not None
    return answer


def test_every_part_has_its_name(person: Person, tiny_chat_model: Path) -> None:
    window = person.start(tiny_chat_model).window
    assert window.objectName() == "main_window"
    for name in NAMES[1:]:
        assert len(window.findChildren(QWidget, name)) == 1, name


def test_a_chat_is_kept_and_reopened(person: Person, tiny_chat_model: Path) -> None:
    person.start(tiny_chat_model)
    person.choose(max_tokens=5, seed=1)
    person.ask("Hello there")
    shown = person.running.window.transcript.plain_text()
    person.quit()
    app = person.start()
    assert app.window.transcript.plain_text() == shown
    assert app.window.windowTitle().startswith("Hello there")
    assert app.window.cockpit.sampler_panel.settings().seed == 1
    assert app.window.cockpit.target_picker.button.text() == "Tiny"


def test_an_answer_goes_on_in_its_own_chat(person: Person, tiny_chat_model: Path) -> None:
    app = person.start(tiny_chat_model)
    person.choose(max_tokens=300, seed=1, logit_bias=ENDLESS)
    person.send("First")
    person.wait_for(EngineState.ANSWERING)
    app.window.sidebar.new_button.click()
    assert app.window.transcript.plain_text() == ""
    person.wait_for(EngineState.READY)
    assert app.window.transcript.plain_text() == ""
    chats = app.window.sidebar.chat_list.model()
    names = [chats.index(row, 0).data() for row in range(chats.rowCount())]
    assert "First" in names
    app.window.sidebar.chat_selected.emit(app._controller._chats.summaries()[0].id)
    assert "First" in app.window.transcript.plain_text()
    assert app.window.transcript.answer_text() != ""


@pytest.mark.parametrize("content", [b"", b"GGUF" + bytes(33), b"<html>not here</html>" * 20])
def test_a_bad_file_is_a_notice_and_the_model_stays(
    person: Person, tiny_chat_model: Path, tmp_path: Path, content: bytes
) -> None:
    app = person.start(tiny_chat_model)
    bad = tmp_path / "bad – 坏.gguf"
    bad.write_bytes(content)
    app.window.model_dropped.emit(str(bad))
    person.qtbot.waitUntil(app.window.notice_strip.isVisible, timeout=20_000)
    assert "bad – 坏.gguf" in app.window.notice_strip.text()
    assert app.engine.state is EngineState.READY
    assert app.window.cockpit.target_picker.button.text() == "Tiny"
    person.choose(max_tokens=3)
    person.ask("Still there?")


@pytest.mark.parametrize("architecture", ["bert", "eagle3", "clip"])
def test_a_file_that_cannot_chat_is_a_notice_and_the_model_stays(
    person: Person, tiny_chat_model: Path, tmp_path: Path, architecture: str
) -> None:
    other = tmp_path / "other.gguf"
    content = tiny_chat_model.read_bytes()
    old, new = (
        b"general.architecture"
        + (8).to_bytes(4, "little")
        + len(name).to_bytes(8, "little")
        + name.encode()
        for name in ("llama", architecture)
    )
    assert content.count(old) == 1
    # two characters more or less would move the tensors: the rest of the header need not fit
    other.write_bytes(content.replace(old, new) + bytes(64))
    app = person.start(tiny_chat_model)
    app.window.model_dropped.emit(str(other))
    person.qtbot.waitUntil(app.window.notice_strip.isVisible, timeout=20_000)
    assert "cannot chat" in app.window.notice_strip.text()
    assert app.engine.state is EngineState.READY
    person.choose(max_tokens=3)
    person.ask("Still there?")


def test_a_first_start_with_a_bad_file_says_so_and_keeps_typing_possible(
    person: Person, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF")
    app = person.start(bad, wait=False)
    person.qtbot.waitUntil(app.window.notice_strip.isVisible, timeout=20_000)
    app.window.composer.set_text("My words")
    app.window.composer.send_button.click()
    assert app.window.composer.text() == "My words"
    assert app.engine.state is EngineState.EMPTY


def test_the_last_choice_wins_while_models_are_loading(
    person: Person, tiny_chat_model: Path, starter: Path
) -> None:
    app = person.start(starter, wait=False)
    for _ in range(5):
        app.window.model_dropped.emit(str(starter))
        app.window.model_dropped.emit(str(tiny_chat_model))
    person.wait_for(EngineState.READY)
    assert app.window.cockpit.target_picker.button.text() == "Tiny"
    person.choose(max_tokens=3)
    person.ask("Hello")


def test_loading_can_be_cancelled(person: Person, starter: Path) -> None:
    app = person.start(starter, wait=False)
    with person.qtbot.waitSignal(app.engine.load_progressed, timeout=60_000):
        pass
    app.window.cockpit.target_picker.cancel_button.click()
    person.qtbot.waitUntil(lambda: app.engine.state is not EngineState.LOADING, timeout=60_000)
    assert app.engine.state is EngineState.EMPTY
    app.window.model_dropped.emit(str(starter))
    person.wait_for(EngineState.READY)


def test_switching_models_while_answering(
    person: Person, tiny_chat_model: Path, starter: Path
) -> None:
    app = person.start(tiny_chat_model)
    person.choose(max_tokens=400, logit_bias=ENDLESS)
    person.send("Hello")
    person.wait_for(EngineState.ANSWERING)
    app.window.model_dropped.emit(str(starter))
    person.wait_for(EngineState.READY)
    assert last_answer(person).finish_reason is FinishReason.CANCELLED
    assert not app.window.composer.is_answering()


def test_the_answer_a_load_ended_is_over_when_the_next_model_is_ready(
    person: Person, tiny_chat_model: Path
) -> None:
    """Else its last frame would be taken for the end of the next answer."""
    app = person.start(tiny_chat_model)
    person.choose(max_tokens=400, logit_bias=ENDLESS)
    waiting: list[bool] = []

    def note(state: EngineState) -> None:
        if state is EngineState.READY:
            waiting.append(app._controller._answer is not None)

    for _ in range(4):
        app.window.sidebar.new_button.click()
        person.send("Hello")
        person.qtbot.waitUntil(lambda: app.window.transcript.answer_text() != "", timeout=20_000)
        app.engine.state_changed.connect(note)
        app.window.model_dropped.emit(str(tiny_chat_model))
        person.wait_for(EngineState.READY)
        app.engine.state_changed.disconnect(note)
    assert waiting == [False] * 4


def test_a_load_cancelled_at_its_very_end_is_cancelled(
    person: Person, tiny_chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slipstream.engine.session import GenerationSession

    made = GenerationSession.__init__
    app = person.start(wait=False)
    person.qtbot.waitUntil(lambda: app.engine.state is not EngineState.LOADING, timeout=60_000)

    def late(self: GenerationSession, *arguments: Any, **options: Any) -> None:
        app.engine.cancel_load()
        made(self, *arguments, **options)

    monkeypatch.setattr(GenerationSession, "__init__", late)
    app.window.model_dropped.emit(str(tiny_chat_model))
    person.qtbot.waitUntil(lambda: app.engine.state is not EngineState.LOADING, timeout=60_000)
    assert app.engine.state is EngineState.EMPTY
    monkeypatch.undo()
    app.window.model_dropped.emit(str(tiny_chat_model))
    person.wait_for(EngineState.READY)


def test_a_message_that_comes_back_joins_what_was_typed_meanwhile(
    person: Person, tiny_chat_model: Path
) -> None:
    app = person.start(tiny_chat_model)
    long = ("word " * 600).strip()
    person.send(long)
    app.window.composer.set_text("typed meanwhile")
    person.wait_for(EngineState.READY)
    assert app.window.composer.text() == f"{long}\n\ntyped meanwhile"


def test_the_self_test_does_not_wait_for_a_model_that_failed(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF")
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="not loaded"):
        ask_through_window(bad)
    assert time.monotonic() - begun < 60


def test_gguf_files_can_be_dropped_anywhere(person: Person, tiny_chat_model: Path) -> None:
    app = person.start(tiny_chat_model)
    dropped: list[str] = []
    app.window.model_dropped.connect(dropped.append)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tiny_chat_model))])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    for place in (app.window, app.window.composer.field.viewport()):
        enter = QDragEnterEvent(QPoint(5, 5), copy, data, left, none)
        QApplication.sendEvent(place, enter)
        assert enter.isAccepted()
        QApplication.sendEvent(place, QDropEvent(QPointF(5, 5), copy, data, left, none))
    assert dropped == [str(tiny_chat_model)] * 2
    person.wait_for(EngineState.READY)


def test_settings_apply_to_the_next_answer_without_reload(
    person: Person, tiny_chat_model: Path
) -> None:
    app = person.start(tiny_chat_model)
    loads: list[object] = []
    app.engine.model_loaded.connect(loads.append)
    person.choose(max_tokens=3, logit_bias=ENDLESS)
    person.ask("One")
    person.choose(max_tokens=6, logit_bias=ENDLESS)
    person.ask("Two")
    assert loads == []
    chat = app._controller._chat
    assert chat is not None
    counts = [m.answer.statistics.generated_tokens for m in chat.messages if m.answer]
    assert counts == [3, 6]
    assert last_answer(person).finish_reason is FinishReason.LENGTH


def test_the_context_meter_counts_tokens_in_the_cache(
    person: Person, tiny_chat_model: Path
) -> None:
    app = person.start(tiny_chat_model)
    person.choose(max_tokens=7, logit_bias=ENDLESS)
    person.ask("Hello")
    numbers = last_answer(person).statistics
    assert numbers.context_tokens == numbers.prompt_tokens + numbers.generated_tokens - 1
    assert str(numbers.context_tokens) in app.window.cockpit.context_meter.text
    person.qtbot.waitUntil(lambda: app.window.cockpit.throughput.idle, timeout=5000)


def test_renaming_and_searching(person: Person, tiny_chat_model: Path) -> None:
    app = person.start(tiny_chat_model)
    person.choose(max_tokens=2)
    person.ask("About whales")
    app.window.sidebar.new_button.click()
    person.ask("About trains")
    chats = app._controller._chats
    app.window.sidebar.search_box.setText("WHALE")
    model = app.window.sidebar.chat_list.model()

    def titles() -> list[str]:
        return [
            str(model.index(row, 0).data())
            for row in range(model.rowCount())
            if model.index(row, 0).flags() & Qt.ItemFlag.ItemIsSelectable
        ]

    person.qtbot.waitUntil(lambda: titles() == ["About whales"], timeout=5000)
    app.window.sidebar.search_box.clear()
    person.qtbot.waitUntil(lambda: len(titles()) == 2, timeout=5000)
    shown = app._controller._chat
    assert shown is not None
    app.window.sidebar.chat_renamed.emit(shown.id, "Railways")
    assert app.window.windowTitle() == "Railways – Slipstream"
    assert {chat.title for chat in chats.summaries()} == {"Railways", "About whales"}


@pytest.mark.parametrize(
    ("width", "sidebar", "cockpit"), [(1200, True, True), (700, False, True), (520, False, False)]
)
def test_side_columns_give_way_to_the_conversation(
    person: Person, tiny_chat_model: Path, width: int, sidebar: bool, cockpit: bool
) -> None:
    window = person.start(tiny_chat_model).window
    window.resize(width, 700)
    assert window.width() == width
    assert (window.sidebar.isVisible(), window.cockpit.isVisible()) == (sidebar, cockpit)
    window.resize(1200, 700)
    assert window.sidebar.isVisible()
    assert window.cockpit.isVisible()


# ---- leaving, in processes of their own ----

SCRIPT = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from slipstream.app import App, make_application
from slipstream.bridge.engine_client import EngineState
from slipstream.chat.records import AnswerRecord, FinishReason
from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.icons import icon
from slipstream.ui.main_window import MainWindow
from slipstream.ui.theme import apply_theme
from slipstream.engine.sampling import SamplerSettings
from slipstream.storage.data_dir import data_directory

model, data, moment = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
application = make_application()
app = App(application, data_directory(data))
app.start(model)
state = app.engine
chunks = []
state.frame_ready.connect(lambda frame: chunks.append(frame.prefill) if frame.prefill else None)
panel = app.window.cockpit.sampler_panel
panel.set_settings(SamplerSettings(max_tokens=-1, logit_bias=((2, -100.0),)))

def reached():
    if moment == "loading":
        return state.state is EngineState.LOADING
    if moment == "prefilling":
        return bool(chunks)
    return len(app.window.transcript.answer_text()) > 30

def step():
    if state.state is EngineState.READY:
        app.window.composer.set_text("word " * (3000 if moment == "prefilling" else 1))
        app.window.composer.send_button.click()
    if reached():
        if moment == "prefilling":
            assert chunks[-1].done < chunks[-1].total, "the prefill is over"
        app.window.close()

timer = QTimer()
timer.timeout.connect(step)
timer.start(5)
code = application.exec()
app.close()
print("left cleanly")
sys.exit(code)
"""


def test_a_long_title_is_elided_in_a_narrow_header(qtbot: QtBot) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.resize(window.minimumSize())
    window.show()
    words = "<b>Why</b> is a draft that is right most of the time faster than none at all?"
    window.set_chat_title(words)
    title = window.findChild(ElidedLabel, "chat_title")
    assert title is not None
    assert title.text() == words
    assert title.shown_text.endswith("…")
    assert title.shown_text.startswith("<b>Why</b>")
    assert title.fontMetrics().horizontalAdvance(title.shown_text) <= title.width()
    assert "&lt;b>Why" in title.toolTip()
    assert title.toolTip().endswith("none at all?</qt>")


@pytest.mark.parametrize(("words", "dots_left"), [("la ......", False), ("لا ......", True)])
def test_title_reads_in_the_direction_of_its_script(
    qtbot: QtBot, words: str, dots_left: bool
) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    window.set_chat_title(words)
    title = window.findChild(ElidedLabel, "chat_title")
    assert title is not None
    picture = title.grab().toImage()
    ground = picture.pixel(picture.width() - 1, 0)
    heights = [
        sum(picture.pixel(x, y) != ground for y in range(picture.height()))
        for x in range(picture.width())
    ]
    leftmost = next(height for height in heights if height)
    assert (leftmost <= 3) is dots_left


def test_columns_give_way_and_come_back(qtbot: QtBot) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()

    def shown() -> tuple[bool, bool]:
        columns = (window.sidebar.isVisible(), window.cockpit.isVisible())
        assert columns == (window.sidebar_button.isChecked(), window.cockpit_button.isChecked())
        return columns

    wanted = []
    for width in (1200, 800, 480, 800, 1200):
        window.resize(width, 500)
        wanted.append(shown())
    assert wanted == [(True, True), (False, True), (False, False), (False, True), (True, True)]
    window.resize(800, 500)
    window.sidebar_button.click()
    assert shown() == (True, False)
    window.resize(790, 500)
    assert shown() == (True, False)  # what the person asked for stays
    window.sidebar_button.click()
    assert shown() == (False, True)


@pytest.mark.parametrize("button", ["sidebar_button", "cockpit_button"])
def test_a_column_asked_for_in_the_smallest_window_widens_it(qtbot: QtBot, button: str) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    window.resize(window.minimumSize())
    window.show()
    toggle = window.findChild(QToolButton, button)
    assert toggle is not None
    toggle.click()
    qtbot.wait(50)
    assert toggle.isChecked()
    columns = [
        part.geometry()
        for part in (window.sidebar, window.findChild(QWidget, "centre"), window.cockpit)
        if part is not None and part.isVisible()
    ]
    assert len(columns) == 2
    assert columns[0].right() < columns[1].left()
    assert columns[-1].right() < window.width()
    toggle.click()
    assert not toggle.isChecked()


def test_appearance_button_shows_the_scheme_in_force(qtbot: QtBot, qapp: QApplication) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    button = window.findChild(QToolButton, "theme_button")
    assert button is not None

    def shown(name: str) -> bool:
        size = button.iconSize()
        return button.icon().pixmap(size).toImage() == icon(name, "muted").pixmap(size).toImage()

    apply_theme(qapp, "dark")
    assert shown("moon")
    apply_theme(qapp, "light")
    assert shown("sun")
    assert not shown("moon")


@pytest.mark.parametrize("moment", ["loading", "prefilling", "generating"])
def test_quitting_at_any_moment_ends_cleanly(starter: Path, tmp_path: Path, moment: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(starter), str(tmp_path), moment],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, "left cleanly\n")
    noise = [
        line
        for line in result.stderr.splitlines()
        if line.strip() and "This plugin does not support" not in line
    ]
    assert noise == []


def test_the_command_opens_a_window_and_survives_sigterm(
    tiny_chat_model: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "slipstream", "--data-dir", str(tmp_path), str(tiny_chat_model)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    settings = tmp_path / "settings.toml"
    deadline = time.monotonic() + 60
    while not settings.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, noise = process.communicate(timeout=60)
    assert process.returncode == 0, noise
    assert str(tiny_chat_model) in settings.read_text(encoding="utf-8")


def test_text_size_is_changed_by_key_and_menu_and_remembered(
    person: Person, tmp_path: Path
) -> None:
    window = person.start(wait=False).window
    window.activateWindow()
    person.qtbot.waitActive(window)
    person.qtbot.keyClick(window, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    person.qtbot.keyClick(window, Qt.Key.Key_Equal, Qt.KeyboardModifier.ControlModifier)
    assert window.transcript.reading_size == 17
    person.qtbot.keyClick(window, Qt.Key.Key_Minus, Qt.KeyboardModifier.ControlModifier)
    assert window.transcript.reading_size == 16
    person.quit()
    window = person.start(wait=False).window
    assert window.transcript.reading_size == 16
    actions = {action.text(): action for action in window._theme_button.menu().actions()}
    actions["Usual text size"].trigger()
    assert window.transcript.reading_size == 15
