"""How to compute a model on this machine: measured when it is first loaded, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from slipstream.chat.ports import MeasurementStore
from slipstream.engine.attention_probe import CONTEXT, measure_attention
from slipstream.engine.llama import (
    ContextSettings,
    Model,
    default_threads,
    has_graphics_card,
    usable_cores,
)
from slipstream.engine.machine import machine_name
from slipstream.engine.requests import LoadRequest
from slipstream.engine.session import GenerationSession
from slipstream.engine.thread_measurement import ThreadChoice, measure_threads, thread_candidates

_CLEARLY = 1.15  # times as slow as without, at which flash attention is not worth its exactness
_USUAL_CONTEXT = 512  # tokens of a conversation that threads are chosen for
_MOST_THREADS = 512  # GGML_MAX_N_THREADS


@dataclass(frozen=True, slots=True)
class Tuning:
    """Threads for one token at a time and for many at once, and the kind of attention.

    With `flash_attention` a token's logits do not depend on how many are evaluated at once, so
    that verified drafts round like plain decoding, and long contexts take less memory. On some
    processors it is much slower.
    """

    n_threads: int
    n_threads_batch: int
    flash_attention: bool


class TuningMemory:
    """Keeps the tuning of one model file on this machine; without a store it remembers nothing."""

    def __init__(self, store: MeasurementStore | None, path: Path) -> None:
        self._store = store
        self._key = f"tuning: {path.name} ({path.stat().st_size}), {machine_name()}"

    def load(self) -> Tuning | None:
        """What was kept, None where there is nothing usable."""
        values = self._store.load(self._key) if self._store is not None else None
        return None if values is None else _tuning(values)

    def save(self, tuning: Tuning) -> None:
        """Keep this one."""
        if self._store is not None:
            self._store.save(
                self._key,
                {
                    "n_threads": tuning.n_threads,
                    "n_threads_batch": tuning.n_threads_batch,
                    "flash_attention": tuning.flash_attention,
                },
            )


def _tuning(values: Mapping[str, object]) -> Tuning | None:
    single, batch = values.get("n_threads"), values.get("n_threads_batch")
    flash = values.get("flash_attention")
    if not isinstance(single, int) or not isinstance(batch, int) or not isinstance(flash, bool):
        return None
    if not (1 <= single <= _MOST_THREADS and 1 <= batch <= _MOST_THREADS):
        return None
    return Tuning(single, batch, flash)


def _measured_flash_attention(model: Model) -> bool:
    """Whether flash attention is worth it for this model here.

    On a graphics card it always is.
    """
    if has_graphics_card():
        return True
    seconds = measure_attention(model.attention_shape, default_threads())
    return seconds is None or seconds.flash <= _CLEARLY * seconds.plain


def tuned_session(
    request: LoadRequest, model: Model, store: MeasurementStore | None, *, exact: bool = False
) -> GenerationSession:
    """A session that computes as was asked, and else as was measured best, now or earlier.

    With `exact` it uses flash attention unless that was forbidden.
    """
    kept = TuningMemory(store, request.path).load()
    flash = request.flash_attention
    if flash is None:
        flash = exact or (kept.flash_attention if kept else _measured_flash_attention(model))
    session = GenerationSession(
        model,
        ContextSettings(
            n_ctx=request.n_ctx,
            n_batch=request.n_batch,
            flash_attention=flash,
        ),
    )
    tune_threads(request, session, store)
    return session


def tune_threads(
    request: LoadRequest, session: GenerationSession, store: MeasurementStore | None
) -> None:
    """Give the session the threads that were asked for, and else those that measured best."""
    single, batch = request.n_threads, request.n_threads_batch or request.n_threads
    if not single:
        memory = TuningMemory(store, request.path)
        kept = memory.load()
        if kept is None:
            choice = _measured_threads(session)
            kept = Tuning(choice.n_threads, choice.n_threads_batch, session.flash_attention)
            if request.flash_attention is None and choice.reliable:
                memory.save(kept)
        single, batch = kept.n_threads, batch or kept.n_threads_batch
    session.set_threads(single, batch)


def _measured_threads(session: GenerationSession) -> ThreadChoice:
    """The session's best numbers of threads, which are set on it."""

    def attention(n_threads: int) -> float:
        seconds = measure_attention(session.context.model.attention_shape, n_threads)
        if seconds is None:
            return 0.0
        whole = seconds.flash if session.flash_attention else seconds.plain
        return whole * _USUAL_CONTEXT / CONTEXT

    physical = psutil.cpu_count(logical=False) or 1
    return measure_threads(session, thread_candidates(physical, usable_cores()), attention)
