"""The object that lives in the engine's thread and owns every llama.cpp object there."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QThread, Signal, Slot

from slipstream.bridge.frame_pump import Failed, FramePump, Noted
from slipstream.bridge.judged_file import JudgedFile
from slipstream.chat.ports import MeasurementStore
from slipstream.engine.requests import AnswerRequest, DraftRequest, LoadRequest, LosslessnessRequest
from slipstream.engine.spinning import expect_window
from slipstream.errors import EngineError, UserError, internal_fault
from slipstream.library.model_file import ModelFile, describe_model_file, require_chat_model

if TYPE_CHECKING:
    from slipstream.engine.target import Target

log = logging.getLogger(__name__)

_PROGRESS_STEP = 0.02  # llama.cpp reports every tensor
_CHECK_SECONDS = 0.2  # between two reports of a check


def guarded(slot: Callable[..., None]) -> Callable[..., None]:
    """Wrap a worker's slot so that nothing escapes it but a report through `_report`."""

    @functools.wraps(slot)
    def run(self: Any, *args: Any) -> None:
        try:
            slot(self, *args)
        except UserError as error:
            log.warning("%s: %s", slot.__name__, error)
            self._report(slot.__name__, error)
        except Exception as error:
            log.exception("%s failed", slot.__name__)
            self._report(slot.__name__, internal_fault(error))

    return run


def _described(path: Path) -> ModelFile | None:
    try:
        return describe_model_file(path)
    except UserError:
        return None


@dataclass(frozen=True, eq=False, slots=True)
class LoadTicket:
    """One load and the flag that gives it up; set from any thread."""

    request: LoadRequest
    cancelled: threading.Event = field(default_factory=threading.Event)


class EngineWorker(QObject):
    """Loads targets and writes answers, one request after the other.

    Slots run in the engine's thread; `cancel_answer` and its like are called from others and only
    raise flags, since a slot cannot run while an answer is being written. Signals about a load
    carry its ticket, and those of its end whether a model is loaded now.
    """

    load_progressed = Signal(object, float)  # LoadTicket, 0 to 1
    model_loaded = Signal(object, object)  # LoadTicket, TargetFacts
    load_failed = Signal(object, object, bool)  # LoadTicket, UserError, loaded
    load_cancelled = Signal(object, bool)  # LoadTicket, loaded
    computing_changed = Signal(object)  # TargetFacts
    draft_changed = Signal(object)  # DraftFacts
    draft_failed = Signal(object)  # UserError; nothing is drafted now
    drafts_judged = Signal(object)  # tuple of JudgedFile
    check_progressed = Signal(int, int)  # tokens so far and at most
    check_ended = Signal(object)  # LosslessnessReport, UserError, or None when cancelled
    search_progressed = Signal(int, int)  # answers so far and in all
    search_ended = Signal(object)  # tuple of DraftFinding, UserError, or None when cancelled

    def __init__(self, pump: FramePump, measurements: MeasurementStore) -> None:
        super().__init__()
        expect_window()
        self._measurements = measurements
        self._pump = pump
        self._target: Target | None = None
        self._ticket: LoadTicket | None = None
        self._reported = 0.0  # the progress told last
        self._closing = False

    def allow_answer(self) -> None:
        """A new answer was asked for: forget a cancel that came too late for the last one."""
        target = self._target
        if target is not None:
            target.session.withdraw_cancel()

    def cancel_answer(self) -> None:
        """End the running answer; callable from any thread."""
        target = self._target
        if target is not None:
            target.session.cancel()

    def begin_closing(self) -> None:
        """End the running answer and refuse what is still queued; callable from any thread."""
        self._closing = True
        self.cancel_answer()

    @Slot(object)
    @guarded
    def load(self, ticket: LoadTicket) -> None:
        """Replace the loaded target. A file that is plainly unusable leaves it in place."""
        self._ticket = ticket
        self._reported = 0.0
        if ticket.cancelled.is_set() or self._closing:
            self.load_cancelled.emit(ticket, self._target is not None)
            return
        # llama.cpp and numpy are first imported here, long after the window was shown
        from slipstream.engine.llama import LoadCancelled
        from slipstream.engine.target import Target, check_model_file

        check_model_file(ticket.request.path)
        require_chat_model(describe_model_file(ticket.request.path))
        self._close_target()
        try:
            self._target = Target(
                ticket.request, progress=self._load_progress, measurements=self._measurements
            )
        except LoadCancelled:
            self.load_cancelled.emit(ticket, False)
            return
        if ticket.cancelled.is_set():  # while the context was made, which reports no progress
            self._close_target()
            self.load_cancelled.emit(ticket, False)
            return
        self.model_loaded.emit(ticket, self._target.facts)

    def _load_progress(self, fraction: float) -> bool:
        assert self._ticket is not None
        if fraction - self._reported >= _PROGRESS_STEP or fraction >= 1:
            self._reported = fraction
            self.load_progressed.emit(self._ticket, fraction)
        return not self._ticket.cancelled.is_set()

    @Slot(object)
    @guarded
    def answer(self, request: AnswerRequest) -> None:
        """Write an answer; its events go through the pump."""
        if self._closing:
            return
        if self._target is None:
            raise EngineError("No model is loaded.", "", "Choose a model first.")
        prepared = self._target.prepare(request)
        for words in prepared.notes:
            self._pump.push(Noted(words))
        for event in self._target.session.generate(prepared.request):
            self._pump.push(event)

    @Slot(object)
    @guarded
    def set_draft(self, request: DraftRequest) -> None:
        """Draft this way from the next answer on."""
        if self._target is not None and not self._closing:
            self._target.session.withdraw_cancel()  # of an answer that has ended meanwhile
            self.draft_changed.emit(self._target.set_draft(request))

    @Slot(int, int)
    @guarded
    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute with so many threads from the next answer on; 0: what measured best."""
        target = self._target
        if target is None or self._closing:
            return
        target.session.withdraw_cancel()  # of an answer that has ended by itself meanwhile
        try:
            draft = target.set_threads(n_threads, n_threads_batch)
        finally:
            self.computing_changed.emit(target.facts)
        if draft is not None:
            self.draft_changed.emit(draft)

    @Slot(object)
    @guarded
    def judge_drafts(self, paths: tuple[Path, ...]) -> None:
        """Tell which of these files can draft for the loaded target."""
        if self._target is not None and not self._closing:
            target = self._target
            self.drafts_judged.emit(
                tuple(JudgedFile(target.judge_draft(path), _described(path)) for path in paths)
            )

    @Slot(object)
    @guarded
    def check_losslessness(self, request: LosslessnessRequest) -> None:
        """Answer once with the draft and once without, and compare."""
        if self._closing:
            return
        if self._target is None:
            raise EngineError("No model is loaded.", "", "Choose a model first.")
        told = 0.0

        def tell(done: int, total: int) -> None:
            nonlocal told
            now = time.monotonic()
            if now - told >= _CHECK_SECONDS:
                told = now
                self.check_progressed.emit(done, total)

        self.check_ended.emit(self._target.check_losslessness(request, tell))

    @Slot(object)
    @guarded
    def find_best_draft(self, drafts: tuple[Path, ...]) -> None:
        """Measure every way to draft; the target has no drafter afterwards."""
        if self._closing:
            return
        if self._target is None:
            raise EngineError("No model is loaded.", "", "Choose a model first.")
        from slipstream.engine.draft_search import find_best_draft

        found = find_best_draft(
            self._target, drafts, self.search_progressed.emit, self._measurements
        )
        self.search_ended.emit(found)

    @Slot()
    @guarded
    def close(self) -> None:
        """Free everything and end the thread's event loop."""
        try:
            self._close_target()
        finally:
            QThread.currentThread().quit()

    def _close_target(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            target.close()

    def _report(self, request: str, error: UserError) -> None:
        if request == "load":
            self.load_failed.emit(self._ticket, error, self._target is not None)
        elif request == "answer":
            self._pump.push(Failed(error))
        elif request in ("set_draft", "set_threads"):
            self.draft_failed.emit(error)
        elif request == "check_losslessness":
            self.check_ended.emit(error)
        elif request == "find_best_draft":
            self.search_ended.emit(error)
