"""How to compute a model on this machine: measured when it is first loaded, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from slipstream.chat.ports import MeasurementStore
from slipstream.chat.preferences import MAX_THREADS
from slipstream.engine.attention_probe import CONTEXT, measure_attention
from slipstream.engine.llama import (
    AbortFlag,
    ContextSettings,
    Model,
    default_threads,
    has_graphics_card,
)
from slipstream.engine.machine import file_label, machine_name, usable_cores
from slipstream.engine.requests import LoadRequest
from slipstream.engine.session import GenerationSession
from slipstream.engine.thread_measurement import ThreadChoice, measure_threads, thread_candidates

_CLEARLY = 1.15  # times as slow as without, at which flash attention is not worth its exactness
_USUAL_CONTEXT = 512  # tokens of a conversation that threads are chosen for


@dataclass(frozen=True, slots=True)
class Tuning:
    """What measured best, as far as it was measured: threads for one token at a time and for many
    at once, and the kind of attention.

    With `flash_attention` long contexts take less memory, and in the first 256 tokens a token's
    logits do not depend on how many are evaluated at once. On some processors it is much slower.
    """

    threads: tuple[int, int] | None = None
    flash_attention: bool | None = None


class TuningMemory:
    """Keeps the tuning of one model file on this machine; without a store it remembers nothing."""

    def __init__(self, store: MeasurementStore | None, path: Path) -> None:
        self._store = store
        self._key = f"tuning: {file_label(path)}, {machine_name()}"

    def load(self) -> Tuning:
        """What was kept; what is not usable counts as unknown."""
        values = self._store.load(self._key) if self._store is not None else None
        return Tuning() if values is None else _tuning(values)

    def save(self, tuning: Tuning) -> None:
        """Keep this in place of what was kept."""
        if self._store is not None:
            threads = None if tuning.threads is None else list(tuning.threads)
            values = {"threads": threads, "flash_attention": tuning.flash_attention}
            self._store.save(self._key, values)


def _tuning(values: Mapping[str, object]) -> Tuning:
    threads, flash = values.get("threads"), values.get("flash_attention")
    usable = (
        isinstance(threads, list)
        and len(threads) == 2
        and all(type(count) is int and 1 <= count <= MAX_THREADS for count in threads)
    )
    return Tuning(
        threads=(threads[0], threads[1]) if usable and isinstance(threads, list) else None,
        flash_attention=flash if isinstance(flash, bool) else None,
    )


def tuned_session(
    request: LoadRequest,
    model: Model,
    store: MeasurementStore | None,
    *,
    exact: bool = False,
    abort: AbortFlag | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> GenerationSession:
    """A session that computes as was asked, and else as was measured best, now or earlier.

    With `exact` it uses flash attention unless that was forbidden. Measuring ends early when
    `go_on` says no.
    """
    flash = request.flash_attention
    if flash is None:
        flash = exact or _flash_attention(TuningMemory(store, request.path), model)
    session = GenerationSession(
        model,
        ContextSettings(n_ctx=request.n_ctx, n_batch=request.n_batch, flash_attention=flash),
        abort=abort,
    )
    try:
        tune_threads(request, session, store, go_on)
    except BaseException:
        session.close()
        raise
    return session


def tune_threads(
    request: LoadRequest,
    session: GenerationSession,
    store: MeasurementStore | None,
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Give the session the threads that were asked for, and else those that measured best."""
    single, batch = request.n_threads, request.n_threads_batch or request.n_threads
    if not single:
        memory = TuningMemory(store, request.path)
        kept = memory.load()
        threads = kept.threads
        if threads is None:
            choice = _measured_threads(session, go_on)
            threads = choice.n_threads, choice.n_threads_batch
            if choice.reliable:
                memory.save(replace(kept, threads=threads))
        single, batch = threads[0], batch or threads[1]
    session.set_threads(single, batch)


def _flash_attention(memory: TuningMemory, model: Model) -> bool:
    """Whether flash attention is worth it for this model here; on a graphics card it always is."""
    kept = memory.load()
    if kept.flash_attention is not None:
        return kept.flash_attention
    seconds = None
    if not has_graphics_card():
        seconds = measure_attention(model.attention_shape, default_threads())
    if seconds is None:
        return True
    flash = seconds.flash <= _CLEARLY * seconds.plain
    memory.save(replace(kept, flash_attention=flash))
    return flash


def _measured_threads(session: GenerationSession, go_on: Callable[[], bool]) -> ThreadChoice:
    """The session's best numbers of threads, which are set on it.

    In mid-conversation, and where a graphics card computes, the usual ones.
    """
    shape = session.context.model.attention_shape
    if len(session.cache) or has_graphics_card():
        threads = default_threads()
        return ThreadChoice(threads, threads, reliable=False)

    def attention(n_threads: int) -> float | None:
        seconds = measure_attention(shape, n_threads)
        if seconds is None:
            return None
        whole = seconds.flash if session.flash_attention else seconds.plain
        return whole * _USUAL_CONTEXT / CONTEXT

    physical = psutil.cpu_count(logical=False) or 1
    candidates = thread_candidates(physical, usable_cores())
    return measure_threads(session, candidates, attention, go_on)
