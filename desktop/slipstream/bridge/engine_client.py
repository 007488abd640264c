"""The window's side of the engine: requests as methods, results as signals."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from slipstream.bridge.engine_worker import EngineWorker, LoadTicket
from slipstream.bridge.frame_pump import Frame, FramePump
from slipstream.chat.ports import MeasurementStore
from slipstream.engine.requests import AnswerRequest, DraftRequest, LoadRequest, LosslessnessRequest


class EngineState(Enum):
    """What the engine is doing, as the window knows it."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"
    CHECKING = "checking"
    CLOSED = "closed"


class EngineClient(QObject):
    """Starts and ends the engine's thread. Lives in the window's thread, as do its signals."""

    state_changed = Signal(object)  # EngineState
    load_progressed = Signal(float)
    model_loaded = Signal(object)  # TargetFacts
    load_failed = Signal(object)  # UserError
    load_cancelled = Signal()
    frame_ready = Signal(object)  # Frame
    computing_changed = Signal(object)  # TargetFacts
    draft_changed = Signal(object)  # DraftFacts
    draft_failed = Signal(object)  # UserError
    drafts_judged = Signal(object)  # tuple of JudgedFile
    check_progressed = Signal(int, int)  # tokens so far and at most
    check_ended = Signal(object)  # LosslessnessReport, UserError, or None when cancelled
    search_progressed = Signal(int, int)  # answers so far and in all
    search_ended = Signal(object)  # tuple of DraftFinding, UserError, or None when cancelled

    _load_requested = Signal(object)
    _answer_requested = Signal(object)
    _draft_requested = Signal(object)
    _threads_requested = Signal(int, int)
    _judgement_requested = Signal(object)
    _check_requested = Signal(object)
    _search_requested = Signal(object)
    _close_requested = Signal()

    def __init__(self, measurements: MeasurementStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = EngineState.EMPTY
        self._ticket: LoadTicket | None = None  # the load whose end is awaited
        self._pump = FramePump(self)
        self._pump.frame_ready.connect(self._receive_frame)
        self._thread = QThread(self)
        self._thread.setObjectName("engine")
        self._worker = EngineWorker(self._pump, measurements)
        self._worker.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._load_requested.connect(self._worker.load, queued)
        self._answer_requested.connect(self._worker.answer, queued)
        self._draft_requested.connect(self._worker.set_draft, queued)
        self._threads_requested.connect(self._worker.set_threads, queued)
        self._judgement_requested.connect(self._worker.judge_drafts, queued)
        self._check_requested.connect(self._worker.check_losslessness, queued)
        self._search_requested.connect(self._worker.find_best_draft, queued)
        self._close_requested.connect(self._worker.close, queued)
        self._worker.load_progressed.connect(self._receive_progress, queued)
        self._worker.model_loaded.connect(self._receive_model, queued)
        self._worker.load_failed.connect(self._receive_load_failure, queued)
        self._worker.load_cancelled.connect(self._receive_load_cancelled, queued)
        self._worker.computing_changed.connect(self.computing_changed, queued)
        self._worker.draft_changed.connect(self.draft_changed, queued)
        self._worker.draft_failed.connect(self.draft_failed, queued)
        self._worker.drafts_judged.connect(self.drafts_judged, queued)
        self._worker.check_progressed.connect(self.check_progressed, queued)
        self._worker.check_ended.connect(self._receive_check, queued)
        self._worker.search_progressed.connect(self.search_progressed, queued)
        self._worker.search_ended.connect(self._receive_search, queued)
        self._thread.start()

    @property
    def state(self) -> EngineState:
        """What the engine is doing."""
        return self._state

    def load(self, request: LoadRequest) -> None:
        """Load a model in place of the present one; a running answer is ended first."""
        if self._state is EngineState.CLOSED:
            return
        self.cancel_load()
        self._worker.cancel_answer()
        self._ticket = LoadTicket(request)
        self._set_state(EngineState.LOADING)
        self._load_requested.emit(self._ticket)

    def cancel_load(self) -> None:
        """Give up the running load."""
        if self._ticket is not None:
            self._ticket.cancelled.set()

    def answer(self, request: AnswerRequest) -> bool:
        """Ask for an answer; False when the engine cannot take one now."""
        if self._state is not EngineState.READY:
            return False
        self._worker.allow_answer()
        self._set_state(EngineState.ANSWERING)
        self._answer_requested.emit(request)
        return True

    def set_draft(self, request: DraftRequest) -> None:
        """Draft this way from the next answer on; the target stays loaded."""
        if self._state is not EngineState.CLOSED:
            self._draft_requested.emit(request)

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute with so many threads from the next answer on; 0: what measured best."""
        if self._state is not EngineState.CLOSED:
            self._threads_requested.emit(n_threads, n_threads_batch)

    def judge_drafts(self, paths: tuple[Path, ...]) -> None:
        """Ask which of these files can draft for the loaded target."""
        if self._state is not EngineState.CLOSED:
            self._judgement_requested.emit(paths)

    def check_losslessness(self, request: LosslessnessRequest) -> bool:
        """Compare answers with the draft and without; False when the engine is busy."""
        if self._state is not EngineState.READY:
            return False
        self._worker.allow_answer()
        self._set_state(EngineState.CHECKING)
        self._check_requested.emit(request)
        return True

    def find_best_draft(self, drafts: tuple[Path, ...]) -> bool:
        """Measure every way to draft, these files among them; False when the engine is busy.

        The target has no drafter afterwards; the one before must be asked for again.
        """
        if self._state is not EngineState.READY:
            return False
        self._worker.allow_answer()
        self._set_state(EngineState.CHECKING)
        self._search_requested.emit(drafts)
        return True

    def stop(self) -> None:
        """End the running answer, whose `finished` frame follows, or check."""
        if self._state in (EngineState.ANSWERING, EngineState.CHECKING):
            self._worker.cancel_answer()

    def shut_down(self) -> None:
        """End everything and wait for the thread; the last frames are handed over before."""
        if self._state is EngineState.CLOSED:
            return
        self.cancel_load()
        self._worker.begin_closing()
        self._close_requested.emit()
        self._thread.wait()
        self._pump.stop()
        self._pump.drain()
        self._set_state(EngineState.CLOSED)

    def _set_state(self, state: EngineState) -> None:
        if state is not self._state:
            self._state = state
            self.state_changed.emit(state)

    @Slot(object, float)
    def _receive_progress(self, ticket: LoadTicket, fraction: float) -> None:
        if ticket is self._ticket:
            self.load_progressed.emit(fraction)

    @Slot(object, object)
    def _receive_model(self, ticket: LoadTicket, facts: object) -> None:
        if self._end_load(ticket, loaded=True):
            self.model_loaded.emit(facts)

    @Slot(object, object, bool)
    def _receive_load_failure(self, ticket: LoadTicket, error: object, loaded: bool) -> None:
        if self._end_load(ticket, loaded=loaded):
            self.load_failed.emit(error)

    @Slot(object, bool)
    def _receive_load_cancelled(self, ticket: LoadTicket, loaded: bool) -> None:
        if self._end_load(ticket, loaded=loaded):
            self.load_cancelled.emit()

    def _end_load(self, ticket: LoadTicket, *, loaded: bool) -> bool:
        """Note how a load ended; False for one that a later load has replaced."""
        if ticket is not self._ticket:
            return False
        self._ticket = None
        # an answer that the load ended must reach the window before a new one can be asked for
        self._pump.drain()
        self._set_state(EngineState.READY if loaded else EngineState.EMPTY)
        return True

    @Slot(object)
    def _receive_check(self, outcome: object) -> None:
        if self._state is EngineState.CHECKING:
            self._set_state(EngineState.READY)
        self.check_ended.emit(outcome)

    @Slot(object)
    def _receive_search(self, outcome: object) -> None:
        if self._state is EngineState.CHECKING:
            self._set_state(EngineState.READY)
        self.search_ended.emit(outcome)

    @Slot(object)
    def _receive_frame(self, frame: Frame) -> None:
        over = frame.finished is not None or frame.failed is not None
        if over and self._state is EngineState.ANSWERING:
            self._set_state(EngineState.READY)
        self.frame_ready.emit(frame)
