from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.harness import (
    assert_same_as_plain,
    plain_tokens,
    prompt_of,
    request,
    session_of,
    speculation_of,
    tokens_of,
)
from models.tiny_llama import build_markov_llama, build_tiny_llama
from slipstream.chat.records import FinishReason
from slipstream.engine.cache_type import CacheType
from slipstream.engine.events import DraftingStopped, Finished, TextRun
from slipstream.engine.llama import ContextSettings, Model
from slipstream.engine.requests import DraftRequest, Pace
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.draft_model import DraftModelDrafter
from slipstream.engine.speculation.drafter import Draft, DrafterKind, DraftSettings
from slipstream.engine.speculation.factory import open_drafter
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.errors import EngineError, UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def target(folder: Path) -> Iterator[Model]:
    model = Model(build_tiny_llama(folder / "target.gguf", seed=0))
    yield model
    model.close()


@pytest.fixture(scope="module")
def markov(folder: Path) -> Iterator[Model]:
    """Its next token depends on the current one alone, so that it soon repeats itself."""
    model = Model(build_markov_llama(folder / "markov.gguf"))
    yield model
    model.close()


def drafter_for(session: GenerationSession, path: Path, **values: object) -> DraftModelDrafter:
    return DraftModelDrafter(
        Model(path),
        ContextSettings(n_ctx=session.n_ctx, n_batch=session.n_batch, n_threads=1),
        DraftSettings(**values),  # type: ignore[arg-type]
        abort=session.abort,
        target_n_vocab=session._model.n_vocab,
    )


@pytest.mark.parametrize("depth", range(1, 9))
def test_a_draft_equal_to_the_target_is_always_accepted(target: Model, depth: int) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=depth))
    wanted = 1 + 3 * (depth + 1)  # the prefill's token and three whole rounds
    figures = assert_same_as_plain(target, session, prompt_of(70), max_tokens=wanted)
    assert figures.acceptance_rate == 1.0
    assert figures.acceptance_by_position == (1.0,) * depth
    assert (figures.rounds, figures.plain_passes) == (3, 0)
    session.close()


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_another_model_changes_nothing_but_the_figures(
    target: Model, folder: Path, depth: int
) -> None:
    other = build_tiny_llama(folder / f"other-{depth}.gguf", seed=9)
    session = session_of(target, lambda s: drafter_for(s, other, n_draft_max=depth))
    figures = assert_same_as_plain(target, session, prompt_of(70))
    assert figures.rounds > 0
    assert figures.acceptance_rate is not None
    assert figures.acceptance_rate < 0.5
    session.close()


@settings(deadline=None, max_examples=30)
@given(
    turns=st.lists(
        st.tuples(st.integers(1, 150), st.integers(0, 15), st.integers(0, 6)),
        min_size=1,
        max_size=4,
    ),
    depth=st.integers(1, 8),
    n_batch=st.sampled_from([16, 33, 64, 512]),
    lookup=st.booleans(),
    equal=st.booleans(),
)
def test_any_turns_equal_plain_decoding(
    target: Model,
    folder: Path,
    turns: list[tuple[int, int, int]],
    depth: int,
    n_batch: int,
    lookup: bool,
    equal: bool,
) -> None:
    other = folder / "unlike.gguf"
    if not other.exists():
        build_tiny_llama(other, seed=4)
    path = target.path if equal else other
    session = session_of(
        target,
        lambda s: (
            PromptLookupDrafter(DraftSettings(n_draft_max=depth))
            if lookup
            else drafter_for(s, path, n_draft_max=depth)
        ),
        n_batch,
    )
    for length, max_tokens, taken in turns:
        prompt = [*prompt_of(length), 3 + length]
        stream = session.generate(request(prompt, max_tokens=max_tokens))
        for _, _event in zip(range(taken), stream, strict=False):
            pass
        stream.close()  # type: ignore[attr-defined]
        assert session.context.length() == len(session.cache)
        assert_same_as_plain(target, session, prompt, max_tokens=max_tokens)
    session.close()


@pytest.mark.parametrize("seed", range(6))
def test_at_temperature_one_a_seed_gives_plain_decodings_text(
    target: Model, folder: Path, seed: int
) -> None:
    hot = {"temperature": 1.0, "seed": seed, "max_tokens": 40, "repeat_penalty": 1.2}
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=4))
    figures = assert_same_as_plain(target, session, prompt_of(30), **hot)
    assert figures.rounds > 0
    session.close()


def test_prompt_lookup_accepts_what_repeats(markov: Model) -> None:
    session = session_of(markov, lambda _: PromptLookupDrafter(DraftSettings(n_draft_max=6)))
    figures = assert_same_as_plain(markov, session, prompt_of(5), max_tokens=200)
    assert figures.acceptance_rate is not None
    assert figures.acceptance_rate > 0.9
    assert figures.mean_accepted_length is not None
    assert figures.mean_accepted_length > 4
    session.close()


def test_the_drafts_cache_is_a_prefix_of_what_was_said(target: Model) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=3))
    prompt = prompt_of(100)
    tokens = tokens_of(list(session.generate(request(prompt))))
    drafter = session.drafter
    assert isinstance(drafter, DraftModelDrafter)
    said = prompt + tokens
    assert drafter.cache.tokens == said[: len(drafter.cache)]
    assert drafter._context.length() == len(drafter.cache) >= 100
    longer = [*said, *prompt_of(40)]
    before = len(drafter.cache)
    decoded: list[int] = []
    decode = drafter._context.decode
    drafter._context.decode = lambda b: (decoded.append(b.native.n_tokens), decode(b))[1]  # type: ignore
    assert_same_as_plain(target, session, longer, max_tokens=2)
    assert sum(decoded) <= len(longer) - before + 4, "the second turn evaluates only what is new"
    session.close()


def test_p_min_stops_where_the_draft_is_unsure(target: Model) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=8, p_min=1.0))
    figures = assert_same_as_plain(target, session, prompt_of(20))
    assert figures.drafted == 0
    assert figures.plain_passes == 19
    session.close()


def test_short_drafts_are_counted_nowhere(target: Model) -> None:
    session = session_of(
        target, lambda s: drafter_for(s, target.path, n_draft_max=8, n_draft_min=8)
    )
    figures = assert_same_as_plain(target, session, prompt_of(20), max_tokens=7)
    assert (figures.rounds, figures.drafted) == (0, 0)
    session.close()


@pytest.mark.parametrize(
    "values",
    [
        {"n_draft_max": 0},
        {"n_draft_max": 1000},
        {"n_draft_min": -1},
        {"n_draft_max": 3, "n_draft_min": 4},
        {"p_min": -0.1},
        {"p_min": 1.5},
        {"p_min": float("nan")},
    ],
)
def test_bad_settings_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"draft|p-min"):
        DraftSettings(**values)  # type: ignore[arg-type]


def test_a_draft_has_a_kv_cache_of_its_own_type(target: Model) -> None:
    sizes: dict[CacheType, int] = {}
    for cache_type in (CacheType.F32, CacheType.F16):
        session = session_of(target)
        request = DraftRequest(
            None, target.path, pace=Pace.FIXED, cache_type=cache_type, n_gpu_layers=0, n_threads=1
        )
        session.set_drafter(open_drafter(request, target, session))
        assert assert_same_as_plain(target, session, prompt_of(200)).rounds > 0
        drafter = session.drafter
        assert isinstance(drafter, DraftModelDrafter)
        sizes[cache_type] = drafter._context.state_size()
        session.close()
    assert sizes[CacheType.F32] / sizes[CacheType.F16] == pytest.approx(2, rel=0.1)


def test_the_draft_knows_how_far_it_is_behind(target: Model) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=2))
    drafter = session.drafter
    assert isinstance(drafter, DraftModelDrafter)
    assert drafter.behind(40) == 40
    drafter.draft(prompt_of(40), 2, DraftGuide())
    assert drafter.behind(40) == 0
    drafter.accept(0)
    assert drafter.behind(47) == 7
    session.close()


class Alternating(PromptLookupDrafter):
    """Asks somebody else for every second draft."""

    asked = 0

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        self.asked += 1
        tokens = tuple(history[-min(limit, 2) :])
        return Draft(tokens, DrafterKind.MTP if self.asked % 2 else None)


def test_figures_are_kept_apart_where_several_draft(target: Model) -> None:
    session = session_of(target, lambda _: Alternating())
    figures = assert_same_as_plain(target, session, prompt_of(20))
    assert set(figures.by_drafter) == {"mtp", "prompt-lookup"}
    for count in ("rounds", "drafted", "verified", "accepted"):
        whole = getattr(figures, count)
        assert sum(part[count] for part in figures.by_drafter.values()) == whole
    assert figures.by_drafter["mtp"]["rounds"] - figures.by_drafter["prompt-lookup"]["rounds"] in (
        0,
        1,
    )
    session.close()


@pytest.mark.parametrize("rests_on", ["the same", "another"])
def test_an_answer_without_the_drafter_does_not_mislead_it(target: Model, rests_on: str) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=4))
    assert_same_as_plain(target, session, prompt_of(40))
    other = prompt_of(40) if rests_on == "the same" else [*prompt_of(30), 9, 8, 7, 6, 5, 4, 3]
    resting = replace(request(other), speculate=False)
    events = list(session.generate(resting))
    assert tokens_of(events) == plain_tokens(target, other)
    assert speculation_of(events).rounds == 0
    figures = assert_same_as_plain(target, session, [*other, 5])
    assert figures.acceptance_rate == 1.0
    session.close()


class Failing(PromptLookupDrafter):
    """Fails at its n-th step."""

    def __init__(self, step: str, error: Exception) -> None:
        super().__init__()
        self.step = step
        self.error = error
        self.closed = 0

    def _fail(self, step: str) -> None:
        if step == self.step:
            raise self.error

    def begin(self, cached: int, unchanged: int) -> int:
        self._fail("begin")
        return super().begin(cached, unchanged)

    def process(self, tokens: object, first_position: int) -> None:
        self._fail("process")

    def draft(self, history: object, limit: int, guide: DraftGuide) -> Draft:
        self._fail("draft")
        return super().draft(history, limit, guide)  # type: ignore[arg-type]

    def accept(self, count: int) -> None:
        self._fail("accept")

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("step", ["begin", "process", "draft", "accept"])
@pytest.mark.parametrize("error", [EngineError("It broke."), RuntimeError("our fault")])
def test_a_drafter_that_fails_is_closed_and_the_answer_goes_on(
    target: Model, step: str, error: Exception
) -> None:
    failing = Failing(step, error)
    session = session_of(target, lambda _: failing)
    events = list(session.generate(request(prompt_of(20))))
    assert tokens_of(events) == plain_tokens(target, prompt_of(20))
    stopped = [event for event in events if isinstance(event, DraftingStopped)]
    assert len(stopped) == 1
    assert failing.closed == 1
    assert session.drafter.kind is DrafterKind.NONE
    assert_same_as_plain(target, session, prompt_of(20))
    session.close()


def test_a_draft_is_changed_between_answers_without_a_reload(target: Model) -> None:
    session = session_of(target)
    assert_same_as_plain(target, session, prompt_of(50))
    session.set_drafter(drafter_for(session, target.path, n_draft_max=4))
    assert assert_same_as_plain(target, session, prompt_of(60)).rounds > 0
    session.set_drafter(PromptLookupDrafter())
    assert_same_as_plain(target, session, prompt_of(70))
    stream = session.generate(request(prompt_of(5)))
    next(stream)
    with pytest.raises(EngineError):
        session.set_drafter(PromptLookupDrafter())
    stream.close()  # type: ignore[attr-defined]
    session.close()


def test_cancel_during_a_draft_ends_the_answer_and_nothing_else(target: Model) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=4))
    drafter = session.drafter
    assert isinstance(drafter, DraftModelDrafter)
    decode = drafter._context.decode
    calls = 0

    def cancelling(batch: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            session.cancel()
        decode(batch)  # type: ignore[arg-type]

    drafter._context.decode = cancelling  # type: ignore[method-assign, assignment]
    events = list(session.generate(request(prompt_of(90))))
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED
    assert not any(isinstance(event, DraftingStopped) for event in events)
    drafter._context.decode = decode  # type: ignore[method-assign]
    assert assert_same_as_plain(target, session, prompt_of(90)).acceptance_rate == 1.0
    session.close()


def test_one_event_per_round(target: Model) -> None:
    session = session_of(target, lambda s: drafter_for(s, target.path, n_draft_max=4))
    events = list(session.generate(request(prompt_of(9), max_tokens=21)))
    runs = [event for event in events if isinstance(event, TextRun)]
    assert [len(run.token_ids) for run in runs] == [1, 5, 5, 5, 5]
    assert [run.drafted for run in runs] == [0, 4, 4, 4, 4]
    assert speculation_of(events).mean_accepted_length == 5.0
    session.close()
