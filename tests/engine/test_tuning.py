"""How a model is computed is measured once, kept, and overridden by what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.kept_measurements import Store
from models.tiny_llama import LlamaShape, build_tiny_llama
from slipstream.engine import tuning
from slipstream.engine.attention_probe import AttentionSeconds
from slipstream.engine.cache_type import CacheType
from slipstream.engine.llama import AbortFlag, Context, ContextSettings, Model, default_threads
from slipstream.engine.requests import DraftRequest, LoadRequest, Pace
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.session import GenerationRequest, GenerationSession
from slipstream.engine.target import Target
from slipstream.engine.thread_measurement import ThreadChoice
from slipstream.engine.tuning import Tuning, TuningMemory, tune_threads, tuned_session
from slipstream.errors import EngineError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return build_tiny_llama(tmp_path / "tiny.gguf")


@pytest.fixture
def model(path: Path) -> Iterator[Model]:
    opened = Model(path)
    yield opened
    opened.close()


@pytest.fixture
def slow_flash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor on which flash attention takes twice as long."""
    monkeypatch.setattr(tuning, "has_graphics_card", lambda: False)
    monkeypatch.setattr(
        tuning, "measure_attention", lambda shape, threads: AttentionSeconds(0.02, 0.01)
    )


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> list[GenerationSession]:
    """A machine on which two threads measure best for a token and three for many."""
    measured: list[GenerationSession] = []

    def measure(session: GenerationSession, *_: object) -> ThreadChoice:
        measured.append(session)
        session.set_threads(2, 3)
        return ThreadChoice(2, 3)

    monkeypatch.setattr(tuning, "measure_threads", measure)
    return measured


def test_what_was_measured_is_kept_and_used_again(
    path: Path, model: Model, many_cores: list[GenerationSession], slow_flash: None
) -> None:
    store = Store()
    for _ in range(2):
        session = tuned_session(LoadRequest(path), model, store)
        found = (session.n_threads, session.n_threads_batch, session.flash_attention)
        session.close()
        assert found == (2, 3, False)
    assert len(many_cores) == 1


def test_what_is_not_reliable_is_measured_again(
    path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "measure_threads", lambda *_: ThreadChoice(2, 2, reliable=False))
    store = Store()
    tuned_session(LoadRequest(path), model, store).close()
    assert TuningMemory(store, path).load().threads is None


def test_without_a_store_it_is_measured_each_time(
    path: Path, model: Model, many_cores: list[GenerationSession]
) -> None:
    for _ in range(2):
        tuned_session(LoadRequest(path), model, None).close()
    assert len(many_cores) == 2


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (lambda path: LoadRequest(path, n_threads=5), (5, 5)),
        (lambda path: LoadRequest(path, n_threads=5, n_threads_batch=6), (5, 6)),
        (lambda path: LoadRequest(path, n_threads_batch=6), (2, 6)),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_what_was_asked_for_comes_before_what_was_measured(
    path: Path,
    model: Model,
    many_cores: list[GenerationSession],
    request_of: Callable[[Path], LoadRequest],
    expected: tuple[int, int],
    known: bool,
) -> None:
    store = Store()
    if known:
        tuned_session(LoadRequest(path), model, store).close()
    session = tuned_session(request_of(path), model, store)
    found = session.n_threads, session.n_threads_batch
    session.close()
    assert found == expected
    after = tuned_session(LoadRequest(path), model, store)
    assert (after.n_threads, after.n_threads_batch) == (2, 3)  # a wish is not a measurement
    after.close()


@pytest.mark.parametrize("asked", [True, False])
def test_flash_attention_can_be_asked_for_or_forbidden(
    path: Path, model: Model, slow_flash: None, asked: bool
) -> None:
    session = tuned_session(LoadRequest(path, flash_attention=asked), model, None, exact=True)
    assert session.flash_attention is asked
    session.close()


@pytest.mark.parametrize(
    ("flash", "plain", "expected"),
    [(0.010, 0.010, True), (0.0105, 0.010, True), (0.02, 0.010, False), (0.005, 0.010, True)],
)
def test_flash_attention_is_used_unless_it_is_much_slower(
    path: Path,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    flash: float,
    plain: float,
    expected: bool,
) -> None:
    monkeypatch.setattr(
        tuning, "measure_attention", lambda shape, threads: AttentionSeconds(flash, plain)
    )
    session = tuned_session(LoadRequest(path), model, None)
    assert session.flash_attention is expected
    session.close()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Tuning()),
        ({"threads": [0, 1], "flash_attention": True}, Tuning(None, True)),
        ({"threads": [2, 100_000], "flash_attention": False}, Tuning(None, False)),
        ({"threads": ["2", 2], "flash_attention": 1}, Tuning()),
        ({"threads": [2], "flash_attention": None}, Tuning()),
        ({"threads": [2, 3], "flash_attention": "yes"}, Tuning((2, 3), None)),
    ],
)
def test_what_is_unusable_counts_as_unknown(
    path: Path, values: dict[str, object], expected: Tuning
) -> None:
    store = Store()
    memory = TuningMemory(store, path)
    memory.save(Tuning((2, 3), True))
    assert memory.load() == Tuning((2, 3), True)
    (key,) = store.text
    store.save(key, values)
    assert memory.load() == expected


def test_what_was_forced_or_not_measured_is_not_kept(
    path: Path,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    many_cores: list[GenerationSession],
    slow_flash: None,
) -> None:
    store = Store()
    large = LoadRequest(path, n_ctx=1 << 18)  # a window whose scores need flash attention
    session = tuned_session(large, model, store)
    assert session.flash_attention
    session.close()
    assert TuningMemory(store, path).load() == Tuning((2, 3), False)
    store = Store()
    tuned_session(LoadRequest(path), model, store, exact=True).close()
    assert TuningMemory(store, path).load() == Tuning((2, 3), None)
    store = Store()
    monkeypatch.setattr(tuning, "measure_attention", lambda shape, threads: None)
    tuned_session(LoadRequest(path, n_threads=1), model, store).close()
    assert not store.text


def test_a_failure_while_measuring_frees_the_context(
    path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[GenerationSession] = []

    def fail(session: GenerationSession, *_: object) -> None:
        made.append(session)
        raise EngineError("llama.cpp failed.")

    monkeypatch.setattr(tuning, "measure_threads", fail)
    with pytest.raises(EngineError):
        tuned_session(LoadRequest(path), model, None)
    assert not made[0].context.is_open


def test_in_mid_conversation_nothing_is_measured(
    path: Path, model: Model, many_cores: list[GenerationSession]
) -> None:
    session = tuned_session(LoadRequest(path, n_threads=1), model, None)
    list(session.generate(GenerationRequest([5, 6, 7], SamplerSettings(max_tokens=0))))
    tune_threads(LoadRequest(path), session, None)
    assert not many_cores
    assert session.n_threads == default_threads()
    session.close()


def test_a_model_that_drafts_for_itself_is_computed_exactly(path: Path, slow_flash: None) -> None:
    target = Target(LoadRequest(path))
    try:
        assert not target.facts.flash_attention
        flag = target.session.abort
        target.set_draft(DraftRequest(None, path, pace=Pace.FIXED))
        assert target.facts.flash_attention
        assert target.session.abort is flag  # a Stop in between is not lost
        target.set_draft(DraftRequest())
        assert not target.facts.flash_attention
    finally:
        target.close()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ContextSettings(n_ctx=64, flash_attention=False), False),
        (ContextSettings(n_ctx=64, flash_attention=False, cache_type=CacheType.Q8_0), True),
        (ContextSettings(n_ctx=1 << 18, flash_attention=False), True),
    ],
)
def test_a_cache_type_or_a_window_that_needs_flash_attention_gets_it(
    tmp_path: Path, settings: ContextSettings, expected: bool
) -> None:
    model = Model(build_tiny_llama(tmp_path / "wide.gguf", shape=LlamaShape(head_size=32)))
    context = Context(model, settings, AbortFlag())
    assert context.flash_attention is expected
    context.close()
    model.close()
