"""Going back to a chat: what is kept, restored and dropped, with every memory and drafter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.harness import request, session_of, tokens_of
from engine.speculation.head_checks import assert_same_or_tied
from models.tiny_eagle3 import build_eagle3, build_target, right_head
from models.tiny_llama import build_tiny_llama
from models.tiny_mtp import build_mimo2, build_qwen35, mixed
from slipstream.chat.records import FinishReason, GenerationStatistics
from slipstream.engine import prompt_cache
from slipstream.engine.events import Finished
from slipstream.engine.llama import Context, ContextSettings, ContextState, Model
from slipstream.engine.prompt_cache import MAX_ENTRIES, PromptCache
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.draft_model import DraftModelDrafter
from slipstream.engine.speculation.drafter import Drafter, DraftSettings
from slipstream.engine.speculation.eagle3 import Eagle3Drafter
from slipstream.engine.speculation.mtp import MtpDrafter
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter

LENGTH = 150


def chat(number: int, length: int = LENGTH) -> list[int]:
    """A prompt of its own from its second token on."""
    return [5, *((7 * at + 3 * at * at + 11 * number) % 97 + 3 for at in range(1, length))]


class Zoo:
    """Models by name, each loaded once; a "drafted" name says which drafter follows which."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._models: dict[str, Model] = {}

    def __call__(self, name: str) -> Model:
        if name not in self._models:
            build: dict[str, Callable[[Path], Path]] = {
                "llama": build_tiny_llama,
                "draft": lambda path: build_tiny_llama(path, seed=0),
                "window": lambda path: build_mimo2(path, mixed()),
                "hybrid": lambda path: build_qwen35(path, mixed()),
                "eagle3 target": lambda path: build_target(path, markov=True),
            }
            self._models[name] = Model(build[name](self._folder / f"{name}.gguf"))
        return self._models[name]

    def session(self, kind: str) -> GenerationSession:
        target, _, drafter = kind.partition(" + ")
        return session_of(self(target), self._makers()[drafter] if drafter else None)

    def _makers(self) -> dict[str, Callable[[GenerationSession], Drafter]]:
        chosen = DraftSettings(n_draft_max=3)

        def draft_model(session: GenerationSession) -> Drafter:
            sizes = ContextSettings(n_ctx=512, n_batch=64, n_threads=1)
            return DraftModelDrafter(
                Model(self("draft").path),
                sizes,
                chosen,
                abort=session.abort,
                target_n_vocab=session._model.n_vocab,
            )

        def eagle3(session: GenerationSession) -> Drafter:
            path = self._folder / "head.gguf"
            if not path.exists():
                build_eagle3(path, session._model.path, right_head())
            return Eagle3Drafter(Model(path, head=True), session.context, chosen, n_threads=1)

        return {
            "draft model": draft_model,
            "prompt lookup": lambda session: PromptLookupDrafter(chosen),
            "eagle3": eagle3,
            "mtp": lambda session: MtpDrafter(
                session._model, session.context, chosen, n_threads=1, owns_model=False
            ),
        }

    def close(self) -> None:
        for model in self._models.values():
            model.close()


KINDS = [
    "llama",
    "window",
    "hybrid",
    "llama + draft model",
    "llama + prompt lookup",
    "window + prompt lookup",
    "hybrid + prompt lookup",
    "eagle3 target + eagle3",
    "window + mtp",
    "hybrid + mtp",
]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    made = Zoo(tmp_path_factory.mktemp("prompt cache"))
    yield made
    made.close()


@pytest.fixture
def session(zoo: Zoo) -> Iterator[GenerationSession]:
    made = zoo.session("llama")
    yield made
    made.close()


def answer(
    session: GenerationSession, prompt: Sequence[int], max_tokens: int = 8, **values: bool
) -> tuple[list[int], GenerationStatistics]:
    wanted = replace(request(prompt, max_tokens=max_tokens), **values)
    events = list(session.generate(wanted))
    assert isinstance(events[-1], Finished)
    assert events[-1].error is None
    assert session.context.length() == len(session.cache)
    return tokens_of(events), events[-1].statistics


def assert_like_fresh(
    zoo: Zoo, kind: str, prompt: Sequence[int], tokens: list[int], max_tokens: int = 8
) -> None:
    """The tokens are those of a new session without a drafter, or as likely to a rounding."""
    assert_same_or_tied(zoo(kind.partition(" + ")[0]), prompt, tokens, max_tokens=max_tokens)


# ---- with models ----


@pytest.mark.parametrize("kind", KINDS)
def test_going_back_to_a_chat_evaluates_only_what_is_new(zoo: Zoo, kind: str) -> None:
    session = zoo.session(kind)
    said = {number: chat(number) for number in (1, 2)}
    held: dict[int, int] = {}
    drafter = session.drafter.kind
    for turn in range(4):
        for number in said:
            prompt = said[number] + [9, 10, 11 + turn]
            tokens, figures = answer(session, prompt)
            assert_like_fresh(zoo, kind, prompt, tokens)
            cached = figures.cached_prompt_tokens
            assert cached == held[number] if number in held else cached <= 1
            assert figures.evaluated_prompt_tokens == len(prompt) - cached
            said[number] = prompt + tokens
            held[number] = len(session.cache)
    assert session.drafter.kind is drafter
    session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_comes_back_drafts_as_if_it_had_never_been_away(zoo: Zoo, kind: str) -> None:
    figures = []
    for between in (False, True):
        session = zoo.session(kind)
        tokens, _ = answer(session, chat(1))
        if between:
            answer(session, chat(2))
        events = list(session.generate(request([*chat(1), *tokens, 7], max_tokens=20)))
        assert isinstance(events[-1], Finished)
        figures.append((events[-1].speculation.drafted, events[-1].speculation.accepted))
        session.close()
    assert figures[0] == figures[1]


@pytest.mark.parametrize("kind", ["window", "hybrid", "window + mtp", "hybrid + mtp"])
def test_a_state_that_cannot_be_cut_serves_no_prompt_that_leaves_it(zoo: Zoo, kind: str) -> None:
    session = zoo.session(kind)
    answer(session, chat(1))
    answer(session, chat(2))
    fork = [*chat(1)[:120], 8, 9]
    tokens, figures = answer(session, fork)
    assert figures.cached_prompt_tokens <= 1
    assert_like_fresh(zoo, kind, fork, tokens)
    session.close()


@pytest.mark.parametrize("kind", ["window", "window + mtp"])
def test_a_restored_window_cannot_go_back_to_cells_that_were_not_saved(zoo: Zoo, kind: str) -> None:
    session = zoo.session(kind)
    tokens, _ = answer(session, chat(1, 200))
    answer(session, chat(2))
    _, figures = answer(session, [*chat(1, 200), *tokens, 7])
    assert figures.cached_prompt_tokens == 207
    fork = [*chat(1, 200)[:150], 8, 9]
    tokens, figures = answer(session, fork)
    assert figures.cached_prompt_tokens == 0
    assert_like_fresh(zoo, kind, fork, tokens)
    session.close()


def test_a_state_is_cut_where_it_can_be(session: GenerationSession, zoo: Zoo) -> None:
    answer(session, chat(1))
    answer(session, chat(2))
    fork = [*chat(1)[:120], 8, 9]
    tokens, figures = answer(session, fork)
    assert figures.cached_prompt_tokens == 120
    assert_like_fresh(zoo, "llama", fork, tokens)


def test_a_longer_chat_replaces_its_shorter_state(session: GenerationSession) -> None:
    tokens, _ = answer(session, chat(1))
    answer(session, chat(2))
    longer = [*chat(1), *tokens, *chat(4, 20)]
    answer(session, longer)
    answer(session, chat(2))
    lengths = sorted(len(entry.tokens) for entry in session.prompts.entries)
    assert lengths == [len(chat(2)) + 7, len(longer) + 7]


def test_the_next_turn_of_a_chat_saves_nothing(session: GenerationSession) -> None:
    """Its answer of 100 tokens may be dropped, as a template drops reasoning."""
    answer(session, [*chat(1), 5, 6, 7], 100)
    _, figures = answer(session, [*chat(1), 8, 9])
    assert figures.cached_prompt_tokens == LENGTH
    assert session.prompts.entries == ()


def test_a_short_chat_is_not_worth_saving(session: GenerationSession) -> None:
    answer(session, chat(1, 40))
    answer(session, chat(2))
    assert session.prompts.entries == ()


def test_what_copies_slower_than_it_evaluates_is_not_saved(session: GenerationSession) -> None:
    answer(session, chat(1))
    session.prompts._copy_rate = 1.0
    answer(session, chat(2))
    assert session.prompts.entries == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_fails_evaluates_everything(
    zoo: Zoo, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = zoo.session(kind)
    first, _ = answer(session, chat(1))
    answer(session, chat(2))
    restore = Context.restore
    monkeypatch.setattr(Context, "restore", lambda self, state: restore(self, state[:-9]))
    again, figures = answer(session, chat(1) + first)
    assert figures.cached_prompt_tokens == 0
    monkeypatch.undo()
    assert_like_fresh(zoo, kind, chat(1) + first, again)
    assert [len(entry.tokens) for entry in session.prompts.entries] == [LENGTH + 7]
    session.close()


@pytest.mark.parametrize("kind", ["eagle3 target + eagle3", "window + mtp", "hybrid + mtp"])
def test_a_head_that_cannot_come_back_has_the_target_evaluate_everything(
    zoo: Zoo, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = zoo.session(kind)
    first, _ = answer(session, chat(1))
    answer(session, chat(2))
    restore = Context.restore
    monkeypatch.setattr(
        Context,
        "restore",
        lambda self, state: restore(self, state if self is session.context else state[:-9]),
    )
    again, figures = answer(session, chat(1) + first)
    assert figures.cached_prompt_tokens == 0
    monkeypatch.undo()
    assert_like_fresh(zoo, kind, chat(1) + first, again)
    session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancel_in_the_middle_of_a_chat_leaves_what_it_evaluated(zoo: Zoo, kind: str) -> None:
    session = zoo.session(kind)
    answer(session, chat(1))
    events = []
    for event in session.generate(request(chat(2, 300))):
        events.append(event)
        if len(events) == 2:
            session.cancel()
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is FinishReason.CANCELLED
    for number, length, least in ((1, LENGTH + 5, 0), (2, 300, 128)):
        tokens, figures = answer(session, chat(number, length))
        assert_like_fresh(zoo, kind, chat(number, length), tokens)
        assert figures.cached_prompt_tokens >= least
    session.close()


def test_a_rested_head_comes_back_too(zoo: Zoo) -> None:
    session = zoo.session("eagle3 target + eagle3")
    tokens, _ = answer(session, chat(1))
    answer(session, chat(2), speculate=False)
    prompt = [*chat(1), *tokens, 7]
    _, figures = answer(session, prompt, speculate=False)
    assert figures.cached_prompt_tokens == LENGTH + 7
    again, figures = answer(session, prompt)
    assert figures.cached_prompt_tokens >= LENGTH + 6
    assert_like_fresh(zoo, "eagle3 target + eagle3", prompt, again)
    session.close()


def test_another_drafter_does_not_get_the_states_of_the_one_before(zoo: Zoo) -> None:
    kind = "eagle3 target + eagle3"
    session = zoo.session(kind)
    answer(session, chat(1))
    answer(session, chat(2))
    session.set_drafter(zoo._makers()["eagle3"](session))
    tokens, figures = answer(session, chat(1, LENGTH + 4))
    assert_like_fresh(zoo, kind, chat(1, LENGTH + 4), tokens)
    assert figures.cached_prompt_tokens == 0  # the head must see everything
    session.close()


def test_target_states_outlive_a_change_of_drafters(session: GenerationSession) -> None:
    answer(session, chat(1))
    answer(session, chat(2))
    session.set_drafter(PromptLookupDrafter())
    _, figures = answer(session, chat(1, LENGTH))
    assert figures.cached_prompt_tokens == LENGTH - 1


@settings(deadline=None, max_examples=12)
@given(
    kind=st.sampled_from(KINDS),
    most_bytes=st.sampled_from([0, 100_000, 1 << 30]),
    turns=st.lists(
        st.tuples(
            st.integers(0, 2),  # which chat
            st.sampled_from([0, 0, 0, 40, 100]),  # tokens taken back first, as an edit does
            st.integers(1, 90),  # tokens said
            st.integers(0, 12),  # tokens wanted
            st.integers(0, 5),  # events after which the consumer leaves, 0: never
            st.booleans(),
        ),
        min_size=2,
        max_size=8,
    ),
)
def test_any_switching_between_chats_equals_fresh_sessions(
    zoo: Zoo,
    kind: str,
    most_bytes: int,
    turns: list[tuple[int, int, int, int, int, bool]],
) -> None:
    session = zoo.session(kind)
    session.prompts._budget = lambda held: most_bytes
    said = {number: chat(number, 100) for number in range(3)}
    for number, removed, length, wanted, leave, speculate in turns:
        kept = said[number][: max(50, len(said[number]) - removed)][:380]
        prompt = [*kept, *chat(number + length, length)]
        if leave:
            stream = session.generate(request(prompt, max_tokens=wanted))
            for _ in zip(range(leave), stream, strict=False):
                pass
            stream.close()  # type: ignore[attr-defined]
        tokens, figures = answer(session, prompt, wanted, speculate=speculate)
        assert_like_fresh(zoo, kind, prompt, tokens, wanted)
        assert figures.evaluated_prompt_tokens == len(prompt) - figures.cached_prompt_tokens
        assert session.prompts.size <= most_bytes
        assert len(session.prompts.entries) <= MAX_ENTRIES
        said[number] = prompt + tokens
    session.close()


# ---- bounds ----


def test_the_least_recently_used_goes_first(session: GenerationSession) -> None:
    for number in range(MAX_ENTRIES + 1):  # the last one is live
        answer(session, chat(number))
    answer(session, chat(0))  # used again; the last one is saved in place of number 1
    starts = [list(entry.tokens[:LENGTH]) for entry in session.prompts.entries]
    assert starts == [chat(number) for number in (2, 3, 0, 4)]


def test_all_states_together_stay_within_the_bound(session: GenerationSession) -> None:
    answer(session, chat(0))
    bound = int(2.5 * session.context.state_size())
    session.prompts._budget = lambda held: bound
    for number in (1, 2, 3, 4, 2, 1):
        answer(session, chat(number))
        assert session.prompts.size <= bound
    assert len(session.prompts.entries) == 2


def test_a_state_larger_than_the_bound_is_never_kept(session: GenerationSession) -> None:
    answer(session, chat(0))
    session.prompts._budget = lambda held: session.context.state_size() - 1
    answer(session, chat(1))
    assert session.prompts.entries == ()


def test_the_drafters_share_counts(zoo: Zoo) -> None:
    session = zoo.session("eagle3 target + eagle3")
    answer(session, chat(0))
    session.prompts._budget = lambda held: session.context.state_size() + 100
    answer(session, chat(1))
    assert session.prompts.entries == ()  # without it the head would have all evaluated again
    session.close()


def test_a_draft_model_that_is_not_kept_catches_up(zoo: Zoo) -> None:
    session = zoo.session("llama + draft model")
    tokens, _ = answer(session, chat(0))
    bound = session.context.state_size() + 100
    session.prompts._budget = lambda held: bound
    answer(session, chat(1))
    assert [entry.drafter for entry in session.prompts.entries] == [None]
    prompt = [*chat(0), *tokens, 7]
    again, figures = answer(session, prompt)
    assert figures.cached_prompt_tokens == LENGTH + 7
    assert_like_fresh(zoo, "llama", prompt, again)
    session.close()


def test_the_budget_is_a_share_of_the_memory_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 1_000_000

    monkeypatch.setattr(prompt_cache.psutil, "virtual_memory", Memory)
    assert prompt_cache.memory_budget(held=0) == 100_000
    assert prompt_cache.memory_budget(held=100_000) == 110_000
    Memory.available = 1 << 40
    assert prompt_cache.memory_budget(held=0) == 1 << 30


def test_without_memory_for_a_copy_nothing_is_kept(
    session: GenerationSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Context) -> ContextState | None:
        return None

    monkeypatch.setattr(Context, "save", refused)
    answer(session, chat(0))
    answer(session, chat(1))
    assert session.prompts.entries == ()


def test_closing_the_session_frees_the_states(zoo: Zoo) -> None:
    session = zoo.session("llama")
    answer(session, chat(0))
    answer(session, chat(1))
    assert isinstance(session.prompts, PromptCache)
    assert session.prompts.size > 0
    session.close()
    assert session.prompts.size == 0
