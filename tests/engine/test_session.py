"""The session on a tiny llama with random weights: exact plans, ends, caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.tiny_llama import build_tiny_llama
from slipstream.chat.records import FinishReason
from slipstream.engine.events import Event, Finished, PrefillProgress, TextRun
from slipstream.engine.llama import Batch, Context, ContextSettings, Model
from slipstream.engine.sampler_chain import SamplerChain
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.session import GenerationRequest, GenerationSession, chunk_plan
from slipstream.engine.speculation.drafter import Draft, Drafter, DrafterKind, DraftSettings
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.errors import ContextSizeError, EngineError, UsageError

N_BATCH = 64
N_CTX = 512


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = Model(build_tiny_llama(tmp_path_factory.mktemp("model") / "tiny.gguf"))
    yield loaded
    loaded.close()


@pytest.fixture
def session(model: Model) -> Iterator[GenerationSession]:
    made = new_session(model)
    yield made
    made.close()


def new_session(model: Model, n_ctx: int = N_CTX, **options: object) -> GenerationSession:
    sizes = ContextSettings(n_ctx=n_ctx, n_batch=N_BATCH, n_threads=1)
    return GenerationSession(model, sizes, **options)  # type: ignore[arg-type]


def prompt_of(length: int) -> list[int]:
    return [3 + (7 * index) % 250 for index in range(length)]


def request(prompt: Sequence[int], **values: object) -> GenerationRequest:
    chosen: dict[str, object] = {
        "temperature": 0.0,
        "max_tokens": 8,
        # the random model would end at once or never: neither is left to chance
        "logit_bias": ((2, -float("inf")),),
        **values,
    }
    return GenerationRequest(prompt, SamplerSettings(**chosen))  # type: ignore[arg-type]


def tokens_of(events: Sequence[Event]) -> list[int]:
    return [token for event in events if isinstance(event, TextRun) for token in event.token_ids]


def finished(events: Sequence[Event]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    return last


def assert_in_step(session: GenerationSession, said: Sequence[int]) -> None:
    """The cache holds what was said without the pending token, and the context holds the cache."""
    assert session.cache.tokens == list(said[: len(session.cache)])
    assert len(session.cache) in (len(said) - 1, len(said))
    assert session.cache._memory.length() == len(session.cache)


# ---- prefill ----


@pytest.mark.parametrize(
    ("start", "end", "plan"),
    [
        (0, 1, [range(1)]),
        (0, 63, [range(63)]),
        (0, 64, [range(64)]),
        (0, 65, [range(64), range(64, 65)]),
        (0, 300, [range(64), range(64, 128), range(128, 192), range(192, 256), range(256, 300)]),
        (10, 75, [range(10, 74), range(74, 75)]),
    ],
)
def test_chunk_plan(start: int, end: int, plan: list[range]) -> None:
    assert chunk_plan(start, end, 64) == tuple(plan)


@pytest.mark.parametrize("length", [1, N_BATCH - 1, N_BATCH, N_BATCH + 1, 300])
def test_prefill_in_chunks_with_logits_for_the_last_prompt_token_only(
    session: GenerationSession, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    decoded: list[tuple[int, list[int], list[int]]] = []
    decode = Context.decode

    def recorded(self: Context, batch: Batch) -> None:
        count = batch.native.n_tokens
        positions = [batch.native.pos[index] for index in range(count)]
        outputs = [index for index in range(count) if batch.native.logits[index]]
        decoded.append((count, positions, outputs))
        decode(self, batch)

    monkeypatch.setattr(Context, "decode", recorded)
    events = list(session.generate(request(prompt_of(length), max_tokens=1)))
    plan = chunk_plan(0, length, N_BATCH)
    assert [count for count, _, _ in decoded] == [len(chunk) for chunk in plan]
    assert [positions for _, positions, _ in decoded] == [list(chunk) for chunk in plan]
    assert [outputs for _, _, outputs in decoded[:-1]] == [[]] * (len(plan) - 1)
    assert decoded[-1][2] == [len(plan[-1]) - 1]
    progress = [event for event in events if isinstance(event, PrefillProgress)]
    assert [(event.done, event.total) for event in progress] == [(c.stop, length) for c in plan]


@pytest.mark.parametrize("length", [1, 63, 64, 65, 300])
def test_the_answer_does_not_depend_on_the_chunks(model: Model, length: int) -> None:
    answers = []
    for n_batch in (16, 64, 512):
        session = GenerationSession(model, ContextSettings(N_CTX, n_batch, 1))
        answers.append(tokens_of(list(session.generate(request(prompt_of(length))))))
        session.close()
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("prompt", [[], [3, -1], [3, 10**6]])
def test_a_prompt_that_cannot_be_evaluated_is_refused(
    session: GenerationSession, prompt: list[int]
) -> None:
    with pytest.raises(UsageError):
        list(session.generate(request(prompt)))
    assert len(tokens_of(list(session.generate(request([3, 4]))))) == 8


def test_a_prompt_longer_than_the_window_is_refused_with_both_numbers(
    session: GenerationSession,
) -> None:
    with pytest.raises(ContextSizeError) as caught:
        list(session.generate(request(prompt_of(N_CTX + 1))))
    assert "513" in caught.value.detail
    assert "512" in caught.value.detail


# ---- the ends ----


def test_max_tokens_ends_with_length(session: GenerationSession) -> None:
    events = list(session.generate(request(prompt_of(5), max_tokens=3)))
    assert finished(events).reason is FinishReason.LENGTH
    assert len(tokens_of(events)) == 3
    assert_in_step(session, prompt_of(5) + tokens_of(events))


def test_max_tokens_zero_evaluates_the_prompt_only(session: GenerationSession) -> None:
    events = list(session.generate(request(prompt_of(5), max_tokens=0)))
    assert finished(events).reason is FinishReason.LENGTH
    assert tokens_of(events) == []
    assert session.cache.tokens == prompt_of(5)


def test_without_a_limit_the_answer_ends_with_the_window(model: Model) -> None:
    session = new_session(model, n_ctx=256)
    events = list(session.generate(request(prompt_of(250), max_tokens=-1)))
    assert finished(events).reason is FinishReason.CONTEXT
    assert len(tokens_of(events)) == 256 - 250 + 1
    assert len(session.cache) == 256
    session.close()


def test_a_prompt_that_fills_the_window_gets_one_token(model: Model) -> None:
    session = new_session(model, n_ctx=256)
    events = list(session.generate(request(prompt_of(256))))
    assert finished(events).reason is FinishReason.CONTEXT
    assert len(tokens_of(events)) == 1
    session.close()


def test_an_end_of_generation_token_is_counted_and_not_shown(session: GenerationSession) -> None:
    events = list(session.generate(request(prompt_of(5), logit_bias=((2, 1e9),))))
    assert finished(events).reason is FinishReason.EOG
    assert tokens_of(events) == [2]
    assert finished(events).statistics.generated_tokens == 1
    assert text_of(events) == ""


def text_of(events: Sequence[Event]) -> str:
    return "".join(
        piece.text
        for event in events
        if not isinstance(event, PrefillProgress)
        for piece in event.pieces
    )


def test_a_stop_string_across_tokens_ends_the_text_before_it(session: GenerationSession) -> None:
    whole = list(session.generate(request(prompt_of(9), max_tokens=40)))
    text = text_of(whole)
    stop = next(
        text[at : at + 3] for at in range(4, len(text)) if text.find(text[at : at + 3]) == at
    )
    events = list(session.generate(request(prompt_of(9), max_tokens=40, stop=(stop,))))
    assert finished(events).reason is FinishReason.STOP
    assert finished(events).stop_string == stop
    assert text_of(events) == text[: text.find(stop)]
    assert tokens_of(events) == tokens_of(whole)[: len(tokens_of(events))]
    assert_in_step(session, prompt_of(9) + tokens_of(events))


def test_an_end_string_counts_as_the_models_own_end(session: GenerationSession) -> None:
    plain = request(prompt_of(9), max_tokens=40)
    text = text_of(list(session.generate(plain)))
    end = text[5:8]
    events = list(
        session.generate(GenerationRequest(plain.prompt, plain.settings, end_strings=(end,)))
    )
    assert finished(events).reason is FinishReason.EOG
    assert finished(events).stop_string == ""
    assert text_of(events) == text[: text.find(end)]


def test_cancel_between_rounds_keeps_what_was_said(session: GenerationSession) -> None:
    events: list[Event] = []
    for event in session.generate(request(prompt_of(5), max_tokens=100)):
        events.append(event)
        if len(events) == 6:
            session.cancel()
    assert finished(events).reason is FinishReason.CANCELLED
    assert 5 <= len(tokens_of(events)) <= 6
    assert_in_step(session, prompt_of(5) + tokens_of(events))


def test_cancel_between_prefill_chunks(session: GenerationSession) -> None:
    events: list[Event] = []
    for event in session.generate(request(prompt_of(300))):
        events.append(event)
        session.cancel()
    assert finished(events).reason is FinishReason.CANCELLED
    assert session.cache.tokens == prompt_of(64)
    assert finished(events).statistics.generated_tokens == 0


def test_a_cancel_that_came_first_ends_the_next_answer_only(session: GenerationSession) -> None:
    session.cancel()
    events = list(session.generate(request(prompt_of(5))))
    assert finished(events).reason is FinishReason.CANCELLED
    assert finished(list(session.generate(request(prompt_of(5))))).reason is FinishReason.LENGTH


def test_an_abort_inside_a_decode_leaves_cache_and_context_in_step(
    session: GenerationSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tokens_of(list(session.generate(request(prompt_of(300)))))
    session.cache.trim(0)
    decode = Context.decode
    calls = 0

    def aborting(self: Context, batch: Batch) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            session.cancel()  # the native callback sees it while the graph is being computed
        decode(self, batch)

    monkeypatch.setattr(Context, "decode", aborting)
    events = list(session.generate(request(prompt_of(300))))
    assert finished(events).reason is FinishReason.CANCELLED
    assert calls == 3
    assert session.cache.tokens == prompt_of(128)
    assert session.cache._memory.length() == 128
    assert tokens_of(list(session.generate(request(prompt_of(300))))) == expected


def test_a_failure_midway_ends_with_the_error_and_keeps_what_was_said(
    session: GenerationSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Context.decode
    calls = 0

    def failing(self: Context, batch: Batch) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise EngineError("It broke.")
        decode(self, batch)

    monkeypatch.setattr(Context, "decode", failing)
    events = list(session.generate(request(prompt_of(5))))
    end = finished(events)
    assert end.reason is FinishReason.ERROR
    assert end.error is not None
    assert end.error.title == "It broke."
    assert len(tokens_of(events)) == 3
    monkeypatch.undo()
    assert len(tokens_of(list(session.generate(request(prompt_of(5)))))) == 8


def test_a_fault_of_our_own_midway_keeps_what_was_said(
    session: GenerationSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = SamplerChain.sample
    calls = 0

    def failing(self: SamplerChain, context: Context, row: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RuntimeError("our own fault")
        return sample(self, context, row)

    monkeypatch.setattr(SamplerChain, "sample", failing)
    events = list(session.generate(request(prompt_of(5))))
    end = finished(events)
    assert end.reason is FinishReason.ERROR
    assert end.error is not None
    assert "our own fault" in end.error.detail
    assert len(tokens_of(events)) == 3
    assert session.cache._memory.length() == len(session.cache)


def test_a_cancelled_prefill_reports_the_rate_of_what_was_evaluated(model: Model) -> None:
    session = new_session(model, clock=Clock())
    events: list[Event] = []
    for event in session.generate(request(prompt_of(300))):
        events.append(event)
        session.cancel()
    numbers = finished(events).statistics
    assert numbers.prompt_tokens == 300
    assert numbers.prefill_tokens_per_second == 64 / numbers.prefill_seconds
    session.close()


# ---- the consumer ----


@pytest.mark.parametrize("taken", [1, 2, 5])
def test_a_consumer_may_stop_early(session: GenerationSession, taken: int) -> None:
    expected = tokens_of(list(session.generate(request(prompt_of(5)))))
    events = session.generate(request(prompt_of(5)))
    for _ in range(taken):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert session.cache.tokens == (prompt_of(5) + expected)[: len(session.cache)]
    assert tokens_of(list(session.generate(request(prompt_of(5))))) == expected


def test_one_answer_at_a_time(session: GenerationSession) -> None:
    first = session.generate(request(prompt_of(5)))
    next(first)
    with pytest.raises(EngineError):
        next(session.generate(request(prompt_of(5))))
    first.close()  # type: ignore[attr-defined]


def test_a_closed_session_raises(model: Model) -> None:
    session = new_session(model)
    session.close()
    session.close()
    with pytest.raises(EngineError, match="closed"):
        list(session.generate(request(prompt_of(5))))


def test_a_session_closed_in_the_middle_ends_with_an_error(model: Model) -> None:
    session = new_session(model)
    events: list[Event] = []
    for event in session.generate(request(prompt_of(5))):
        events.append(event)
        if len(events) == 3:
            session.close()
    assert finished(events).reason is FinishReason.ERROR


# ---- reuse ----


def test_the_next_turn_evaluates_only_what_differs(session: GenerationSession) -> None:
    prompt = prompt_of(100)
    first = tokens_of(list(session.generate(request(prompt))))
    longer = prompt + first + prompt_of(20)
    events = list(session.generate(request(longer)))
    progress = events[0]
    assert isinstance(progress, PrefillProgress)
    assert progress.cached == 107  # the last token of the first answer was never evaluated
    assert finished(events).statistics.cached_prompt_tokens == 107
    fresh = new_session(session._model)
    assert tokens_of(list(fresh.generate(request(longer)))) == tokens_of(events)
    fresh.close()


def test_the_same_prompt_again_evaluates_its_last_token(session: GenerationSession) -> None:
    first = tokens_of(list(session.generate(request(prompt_of(100)))))
    events = list(session.generate(request(prompt_of(100))))
    assert finished(events).statistics.cached_prompt_tokens == 99
    assert tokens_of(events) == first


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.integers(0, 12), st.integers(0, 8)),
        min_size=1,
        max_size=5,
    )
)
def test_any_sequence_of_turns_equals_fresh_sessions(
    model: Model, turns: list[tuple[int, int, int]]
) -> None:
    """Prompts that share any prefix, answers of any length, consumers that stop anywhere."""
    session = new_session(model)
    for length, max_tokens, taken in turns:
        prompt = [*prompt_of(length), 3 + length]
        stream = session.generate(request(prompt, max_tokens=max_tokens))
        for _, _event in zip(range(taken), stream, strict=False):
            pass
        stream.close()  # type: ignore[attr-defined]
        assert session.cache._memory.length() == len(session.cache)
        events = list(session.generate(request(prompt, max_tokens=max_tokens)))
        fresh = new_session(model)
        assert tokens_of(events) == tokens_of(
            list(fresh.generate(request(prompt, max_tokens=max_tokens)))
        )
        fresh.close()
    session.close()


# ---- sampling ----


def test_a_seed_fixes_the_text_and_is_reported(session: GenerationSession) -> None:
    hot = {"temperature": 1.0, "max_tokens": 30}
    first = list(session.generate(request(prompt_of(5), seed=11, **hot)))
    again = list(session.generate(request(prompt_of(5), seed=11, **hot)))
    other = list(session.generate(request(prompt_of(5), seed=12, **hot)))
    assert finished(first).seed == finished(again).seed == 11
    assert tokens_of(first) == tokens_of(again) != tokens_of(other)


def test_a_random_seed_is_reported_and_gives_the_same_text_again(
    session: GenerationSession,
) -> None:
    hot = {"temperature": 1.0, "max_tokens": 30}
    first = list(session.generate(request(prompt_of(5), **hot)))
    again = list(session.generate(request(prompt_of(5), seed=finished(first).seed, **hot)))
    assert tokens_of(first) == tokens_of(again)
    assert (
        finished(list(session.generate(request(prompt_of(5), **hot)))).seed != finished(first).seed
    )


@pytest.mark.parametrize(
    "values",
    [
        {"top_k": 1, "temperature": 1.0},
        {"top_p": 0.0, "temperature": 1.0},
        {"min_p": 1.0, "temperature": 1.0},
        {"top_n_sigma": 1e-3, "temperature": 1.0, "top_k": 0},
    ],
)
def test_filters_that_leave_one_candidate_are_greedy(
    session: GenerationSession, values: dict[str, object]
) -> None:
    greedy = tokens_of(list(session.generate(request(prompt_of(5)))))
    assert tokens_of(list(session.generate(request(prompt_of(5), **values)))) == greedy


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 2.0},
        {"temperature": 1.0, "mirostat": 1},
        {"temperature": 1.0, "mirostat": 2},
        {"temperature": 1.0, "typical_p": 0.5},
        {"temperature": 1.0, "xtc_probability": 1.0, "xtc_threshold": 0.0, "min_p": 0.0},
        {"temperature": 1.0, "dynatemp_range": 0.9},
        {"repeat_penalty": 2.0},
        {"repeat_penalty": 2.0, "repeat_last_n": -1},
        {"frequency_penalty": 2.0, "presence_penalty": 2.0},
        {"dry_multiplier": 5.0, "dry_allowed_length": 0},
        {"logit_bias": ((2, -float("inf")), (50, 1e9))},
    ],
)
def test_every_setting_acts(session: GenerationSession, values: dict[str, object]) -> None:
    plain = {"max_tokens": 30, "seed": 5}
    if values.get("temperature"):
        plain |= {"temperature": 1.0}
    before = tokens_of(list(session.generate(request(prompt_of(40), **plain))))
    after = tokens_of(list(session.generate(request(prompt_of(40), **{**plain, **values}))))
    assert before != after


def test_penalties_are_off_with_an_empty_window(session: GenerationSession) -> None:
    plain = tokens_of(list(session.generate(request(prompt_of(40)))))
    off = {"repeat_penalty": 2.0, "repeat_last_n": 0}
    assert tokens_of(list(session.generate(request(prompt_of(40), **off)))) == plain


def test_a_grammar_is_obeyed(session: GenerationSession) -> None:
    for temperature in (0.0, 1.5):
        events = list(
            session.generate(
                request(
                    prompt_of(5),
                    grammar='root ::= ("yes" | "no") " " [0-9] [0-9]',
                    temperature=temperature,
                    max_tokens=40,
                    logit_bias=(),
                )
            )
        )
        assert finished(events).reason is FinishReason.EOG
        word, number = text_of(events).strip().split(" ")
        assert word in ("yes", "no")
        assert len(number) == 2
        assert number.isdigit()


@pytest.mark.parametrize("grammar", ["root := x", "nothing", 'answer ::= "a"', "root ::= missing"])
def test_a_grammar_that_cannot_be_used_is_refused(session: GenerationSession, grammar: str) -> None:
    with pytest.raises(UsageError, match="grammar"):
        list(session.generate(request(prompt_of(5), grammar=grammar)))


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a"{5,2}',  # llama.cpp would count up to 2^64 and eat the memory
        'root ::= "a"{5 , # "\n2}',
        'root ::= "\\"" [\\]"] "a"{1,0}',
        f'root ::= {"(" * 20_000}"a"{")" * 20_000}',  # and here overflow its stack
    ],
)
def test_a_grammar_that_would_end_the_process_is_refused(
    session: GenerationSession, grammar: str
) -> None:
    with pytest.raises(UsageError, match="grammar"):
        list(session.generate(request(prompt_of(5), grammar=grammar)))


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "y{5,2}"',
        "root ::= [y{5,2}]{5,5}",
        'root ::= "y"  # {5,2} ' + "(" * 300,
        f'root ::= {"(" * 200}"y"{")" * 200}',
        "root ::= " + "(" * 100 + '"y"' + ")" * 100 + " " + '("y")' * 300,
    ],
)
def test_a_grammar_that_only_looks_dangerous_is_taken(
    session: GenerationSession, grammar: str
) -> None:
    assert text_of(list(session.generate(request(prompt_of(5), grammar=grammar, max_tokens=3))))


def test_a_bias_for_an_unknown_token_is_refused(session: GenerationSession) -> None:
    with pytest.raises(UsageError, match="1,000,000"):
        list(session.generate(request(prompt_of(5), logit_bias=((10**6, 1.0),))))


# ---- time and speculation ----


class Clock:
    """Each look at it is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_times_come_from_the_clock_it_was_given(model: Model) -> None:
    clock = Clock()
    session = new_session(model, clock=clock)
    events = list(session.generate(request(prompt_of(100), max_tokens=5)))
    numbers = finished(events).statistics
    assert numbers.prompt_tokens == 100
    assert numbers.generated_tokens == 5
    assert numbers.prefill_seconds == float(int(numbers.prefill_seconds)) > 0
    assert numbers.time_to_first_token_seconds is not None
    assert numbers.time_to_first_token_seconds > numbers.prefill_seconds
    assert numbers.decode_tokens_per_second == 4 / numbers.decode_seconds
    assert numbers.prefill_tokens_per_second == 100 / numbers.prefill_seconds
    last = events[-2]
    assert isinstance(last, TextRun)
    assert last.tokens_per_second == numbers.decode_tokens_per_second
    session.close()


def test_a_measured_pass_leaves_no_trace(model: Model) -> None:
    session = GenerationSession(model, ContextSettings(n_ctx=64, n_batch=16, n_threads=1))
    list(session.generate(GenerationRequest([5, 6, 7], SamplerSettings(max_tokens=2))))
    held = list(session.cache.tokens)
    seconds = session.measure_passes(4, 3)
    assert seconds is not None
    assert len(seconds) == 3
    assert min(seconds) > 0
    assert session.cache.tokens == held
    assert session.context.length() == len(held)
    assert session.measure_passes(17, 1) is None  # more than a batch
    assert session.measure_passes(16, 99) is None  # more than the window
    session.cancel()
    assert session.measure_passes(4, 1) is None
    assert session.context.length() == len(held)
    session.withdraw_cancel()
    assert session.measure_passes(4, 1) is not None
    session.close()


class Oracle(Drafter):
    """Drafts the answer it was told, and notes what it is told in return."""

    def __init__(self, answer: list[int], wrong_every: int = 0) -> None:
        self.answer = answer
        self.wrong_every = wrong_every
        self.followed: list[int] = []
        self.accepted: list[int] = []
        self.limits: list[int] = []
        self.closed = False

    @property
    def kind(self) -> DrafterKind:
        return DrafterKind.NONE

    def configure(self, settings: DraftSettings) -> None: ...

    def begin(self, cached: int, unchanged: int) -> int:
        del self.followed[unchanged:]
        return len(self.followed)

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        del self.followed[first_position:]
        self.followed += tokens

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        self.limits.append(limit)
        done = len(history) - self.prompt_length
        guess = self.answer[done : done + min(limit, 4)]
        if self.wrong_every and guess and done % self.wrong_every == 0:
            guess[-1] = (guess[-1] + 1) % 200 + 3
        return Draft(tuple(guess))

    def accept(self, count: int) -> None:
        self.accepted.append(count)

    def close(self) -> None:
        self.closed = True

    prompt_length = 0


@pytest.mark.parametrize("wrong_every", [0, 2, 3])
@pytest.mark.parametrize("max_tokens", [1, 2, 5, 23])
def test_the_session_is_shaped_for_speculation(
    model: Model, wrong_every: int, max_tokens: int
) -> None:
    """Any draft, right or wrong: the same answer, and everybody's caches in step."""
    plain = new_session(model)
    expected = tokens_of(list(plain.generate(request(prompt_of(70), max_tokens=max_tokens))))
    longer = tokens_of(list(plain.generate(request(prompt_of(70), max_tokens=40))))
    plain.close()
    oracle = Oracle(longer, wrong_every)
    oracle.prompt_length = 70
    session = new_session(model, drafter=oracle)
    events = list(session.generate(request(prompt_of(70), max_tokens=max_tokens)))
    assert tokens_of(events) == expected
    assert_in_step(session, prompt_of(70) + expected)
    assert oracle.followed[: len(session.cache)] == session.cache.tokens
    assert all(limit <= max_tokens - 1 for limit in oracle.limits)
    runs = [event for event in events if isinstance(event, TextRun)]
    assert [sum(run.accepted_flags) for run in runs] == oracle.accepted
    if max_tokens > 5 and not wrong_every:
        assert sum(oracle.accepted) > max_tokens / 2
    session.close()
    assert oracle.closed


def test_a_stop_inside_an_accepted_draft_keeps_nothing_after_it(model: Model) -> None:
    plain = new_session(model)
    whole = list(plain.generate(request(prompt_of(9), max_tokens=40)))
    plain.close()
    oracle = Oracle(tokens_of(whole))
    oracle.prompt_length = 9
    session = new_session(model, drafter=oracle)
    stop = text_of(whole)[6:9]
    events = list(session.generate(request(prompt_of(9), max_tokens=40, stop=(stop,))))
    assert finished(events).reason is FinishReason.STOP
    said = prompt_of(9) + tokens_of(events)
    assert session.cache.tokens == said[:-1]
    assert session.cache._memory.length() == len(said) - 1
    session.close()
