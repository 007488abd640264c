"""Collects engine events from the worker's thread and hands them over once per frame."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from slipstream.engine.events import (
    DraftingStopped,
    Event,
    Finished,
    PrefillProgress,
    TextPiece,
    TextRun,
)
from slipstream.errors import UserError

FRAME_MS = 33
SLOWEST_FRAME_MS = 100
WINDOW_SHARE = 0.025
"""Share of one core the window may take while text arrives: llama.cpp's threads wait for each
other, so what slows one of them slows every token."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something the person should know about how the prompt was made."""

    words: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer could not be given at all."""

    error: UserError


PumpEvent = Event | Noted | Failed


@dataclass(frozen=True, slots=True)
class Frame:
    """All that arrived since the last frame, in the shape the window needs it."""

    notes: tuple[str, ...] = ()
    prefill: PrefillProgress | None = None
    pieces: tuple[TextPiece, ...] = ()
    run: TextRun | None = None  # the latest one: its numbers cover the answer so far
    finished: Finished | None = None
    failed: UserError | None = None
    drafting_stopped: UserError | None = None  # the answer goes on without a draft


def frame_of(events: list[PumpEvent]) -> Frame:
    """One frame from the events of a single answer, in order."""
    notes: list[str] = []
    pieces: list[TextPiece] = []
    prefill, run, finished, failed, stopped = None, None, None, None, None
    for event in events:
        match event:
            case Noted(words):
                notes.append(words)
            case DraftingStopped(error):
                stopped = error
            case Failed(error):
                failed = error
            case PrefillProgress():
                prefill = event
            case TextRun():
                run = event
                pieces += event.pieces
            case Finished():
                finished = event
                pieces += event.pieces
    return Frame(tuple(notes), prefill, tuple(pieces), run, finished, failed, stopped)


class FramePump(QObject):
    """`push` from any thread; `frame_ready` in the thread the pump lives in.

    The first event after a rest is handed over at once, later ones every 33 ms, or less often
    where drawing a frame takes this thread so long that it would cost the engine speed. The timer
    stops when a frame finds nothing.
    """

    frame_ready = Signal(object)  # Frame
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = Lock()
        self._events: list[PumpEvent] = []
        self._awake = False
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._tick)
        self._busy = 0.0  # CPU seconds this thread had used at the last frame
        self._woken.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def push(self, event: PumpEvent) -> None:
        """Hand an event over; callable from any thread."""
        with self._lock:
            self._events.append(event)
            wake = not self._awake
            self._awake = True
        if wake:
            self._woken.emit()

    def drain(self) -> None:
        """Hand over now what has arrived; for a shutdown that cannot wait for a frame."""
        with self._lock:
            events, self._events = self._events, []
        if events:
            self.frame_ready.emit(frame_of(events))

    @Slot()
    def _wake(self) -> None:
        self._busy = time.thread_time()
        self._timer.start()
        self.drain()

    @Slot()
    def _tick(self) -> None:
        with self._lock:
            idle = not self._events
            if idle:
                self._awake = False
        if idle:
            self._timer.stop()
        else:
            self._timer.setInterval(self._next_interval())
            self.drain()

    def _next_interval(self) -> int:
        """Milliseconds to the next frame, from what this thread did since the last one."""
        before, self._busy = self._busy, time.thread_time()
        wanted = 1000 * (self._busy - before) / WINDOW_SHARE
        smoothed = (3 * self._timer.interval() + wanted) / 4
        return round(min(max(smoothed, FRAME_MS), SLOWEST_FRAME_MS))

    def stop(self) -> None:
        """No more frames by themselves; `drain` still works."""
        self._timer.stop()
