from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from slipstream.bridge import frame_pump
from slipstream.bridge.frame_pump import Failed, Frame, FramePump, Noted, frame_of
from slipstream.chat.records import FinishReason, GenerationStatistics
from slipstream.engine.events import Finished, PrefillProgress, TextKind, TextPiece, TextRun
from slipstream.errors import UserError

END = Finished(FinishReason.EOG, 1, GenerationStatistics())


def run_of(text: str, number: int = 1) -> TextRun:
    return TextRun(
        token_ids=(number,),
        accepted_flags=(False,),
        drafted=0,
        pieces=(TextPiece(TextKind.ANSWER, text),) if text else (),
        generated_tokens=number,
        context_tokens=number,
        seconds=0.01,
        tokens_per_second=None,
        current_tokens_per_second=None,
    )


@pytest.fixture
def pump(qtbot: QtBot) -> Iterator[FramePump]:
    made = FramePump()
    yield made
    made.stop()
    made.deleteLater()


def collected(pump: FramePump) -> list[Frame]:
    frames: list[Frame] = []
    pump.frame_ready.connect(frames.append)
    return frames


def text_of(frames: list[Frame]) -> str:
    return "".join(piece.text for frame in frames for piece in frame.pieces)


def test_a_frame_gathers_everything_in_order() -> None:
    progress = PrefillProgress(5, 9, 0, 0.1, 50.0)
    error = UserError("No.")
    first = frame_of([Noted("a"), progress, run_of("x"), run_of("y", 2)])
    assert first.notes == ("a",)
    assert first.prefill == progress
    assert text_of([first]) == "xy"
    assert first.run == run_of("y", 2)
    assert first.finished is None
    held = TextPiece(TextKind.ANSWER, "z")
    last = frame_of([run_of(""), Finished(END.reason, 1, END.statistics, (held,))])
    assert last.pieces == (held,)
    assert last.finished is not None
    assert frame_of([Failed(error)]).failed is error


def test_nothing_is_lost_or_reordered_from_another_thread(pump: FramePump, qtbot: QtBot) -> None:
    frames = collected(pump)
    words = [f"{number} " for number in range(3000)]

    def write() -> None:
        for number, word in enumerate(words):
            pump.push(run_of(word, number))
            if number % 500 == 0:
                time.sleep(0.01)
        pump.push(END)

    writer = threading.Thread(target=write)
    writer.start()
    qtbot.waitUntil(lambda: any(frame.finished for frame in frames), timeout=10_000)
    writer.join()
    assert text_of(frames) == "".join(words)
    assert len(frames) < 100


def test_the_first_event_after_a_rest_is_not_kept_waiting(pump: FramePump, qtbot: QtBot) -> None:
    frames = collected(pump)
    for text in ("a", "b"):
        pump.push(run_of(text))
        qtbot.waitUntil(lambda text=text: text_of(frames).endswith(text), timeout=1000)
        qtbot.waitUntil(lambda: not pump._timer.isActive(), timeout=1000)
    assert len(frames) == 2


def test_the_timer_rests_when_nothing_comes(pump: FramePump, qtbot: QtBot) -> None:
    pump.push(run_of("a"))
    qtbot.waitUntil(pump._timer.isActive, timeout=1000)
    qtbot.waitUntil(lambda: not pump._timer.isActive(), timeout=1000)


def test_drain_hands_over_without_an_event_loop(pump: FramePump) -> None:
    frames = collected(pump)
    pump.push(run_of("a"))
    pump.push(END)
    pump.drain()
    pump.drain()
    assert len(frames) == 1
    assert frames[0].finished is not None


def test_frames_come_less_often_where_drawing_them_is_costly(
    pump: FramePump, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = iter([0.0, 0.010, 0.010 + 1e-6])
    monkeypatch.setattr(frame_pump.time, "thread_time", lambda: next(busy))
    pump._wake()
    costly = pump._next_interval()
    assert costly == min(
        frame_pump.SLOWEST_FRAME_MS,
        round((3 * frame_pump.FRAME_MS + 10 / frame_pump.WINDOW_SHARE) / 4),
    )
    pump._timer.setInterval(frame_pump.FRAME_MS)
    assert pump._next_interval() == frame_pump.FRAME_MS
