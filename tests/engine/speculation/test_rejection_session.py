"""Answers written by rejection sampling: caches in step, told apart from replayable ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.speculation.harness import plain_tokens, prompt_of, request, session_of, tokens_of
from models.tiny_llama import build_tiny_llama
from slipstream.engine.events import Event, Finished, TextRun
from slipstream.engine.llama import ContextSettings, Model
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.draft_model import DraftModelDrafter
from slipstream.engine.speculation.drafter import DraftSettings
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.engine.speculation.verify_rule import VerifyRule

HOT = {"temperature": 1.0, "max_tokens": 40, "repeat_penalty": 1.2}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Model, Path]]:
    folder = tmp_path_factory.mktemp("models")
    target = Model(build_tiny_llama(folder / "target.gguf", seed=0))
    yield target, build_tiny_llama(folder / "draft.gguf", seed=9)
    target.close()


def sampled_session(target: Model, draft: Path, **values: object) -> GenerationSession:
    return session_of(
        target,
        lambda session: DraftModelDrafter(
            Model(draft),
            ContextSettings(n_ctx=session.n_ctx, n_batch=session.n_batch, n_threads=1),
            DraftSettings(**values),  # type: ignore[arg-type]
            abort=session.abort,
            target_n_vocab=target.n_vocab,
        ),
    )


def answer(session: GenerationSession, rule: VerifyRule, **values: object) -> list[Event]:
    return list(session.generate(replace(request(prompt_of(30), **HOT, **values), verify=rule)))


def finished(events: list[Event]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.error is None
    return last


def test_the_caches_stay_in_step_and_the_figures_add_up(models: tuple[Model, Path]) -> None:
    target, other = models
    for draft in (target.path, other):
        session = sampled_session(target, draft, n_draft_max=4)
        for _ in range(3):
            events = answer(session, VerifyRule.AUTO)
            last, tokens = finished(events), tokens_of(events)
            assert last.verify is VerifyRule.REJECT
            assert session.cache.tokens == [*prompt_of(30), *tokens][: len(session.cache)]
            assert session.context.length() == len(session.cache)
            flags = [f for e in events if isinstance(e, TextRun) for f in e.accepted_flags]
            assert sum(flags) == last.speculation.accepted
            assert last.speculation.rounds > 0
        session.close()


def test_a_draft_equal_to_the_target_is_accepted_when_drawn(models: tuple[Model, Path]) -> None:
    """p = q: comparing an own draw with the likeliest token would accept far fewer."""
    target, _ = models
    session = sampled_session(target, target.path, n_draft_max=4)
    rates = {}
    for rule in (VerifyRule.COMPARE, VerifyRule.REJECT):
        rates[rule] = finished(answer(session, rule, seed=5)).speculation.acceptance_rate
    session.close()
    assert rates[VerifyRule.REJECT] == pytest.approx(1.0, abs=0.05)
    assert rates[VerifyRule.COMPARE] is not None
    assert rates[VerifyRule.COMPARE] < 0.8


def test_a_seed_gives_plain_decodings_text_under_auto_alone(models: tuple[Model, Path]) -> None:
    target, draft = models
    session = sampled_session(target, draft, n_draft_max=4)
    plain = plain_tokens(target, prompt_of(30), **HOT, seed=7)
    events = answer(session, VerifyRule.AUTO, seed=7)
    assert tokens_of(events) == plain
    assert finished(events).verify is VerifyRule.COMPARE
    one, other = (answer(session, VerifyRule.REJECT, seed=7) for _ in range(2))
    assert finished(one).verify is VerifyRule.REJECT
    assert tokens_of(one) == tokens_of(other) != plain, "its random numbers are not the draw's"
    session.close()


def test_biased_tokens_are_neither_drafted_nor_written(models: tuple[Model, Path]) -> None:
    target, draft = models
    session = sampled_session(target, draft, n_draft_max=4)
    forbidden = {*range(0, 345, 2)}
    bias = tuple((token, -float("inf")) for token in sorted(forbidden))
    tokens = tokens_of(answer(session, VerifyRule.REJECT, logit_bias=bias))
    assert tokens
    assert not forbidden & set(tokens)
    session.close()


@pytest.mark.parametrize("values", [{"mirostat": 2}, {"grammar": "root ::= [a-z]+"}])
def test_what_cannot_be_rejected_is_compared_and_says_so(
    models: tuple[Model, Path], values: dict[str, object]
) -> None:
    target, draft = models
    session = sampled_session(target, draft, n_draft_max=4)
    last = finished(answer(session, VerifyRule.REJECT, seed=3, **values))
    assert last.verify is VerifyRule.COMPARE
    assert last.verify_note
    session.close()


def test_the_text_itself_can_be_rejected_too(models: tuple[Model, Path]) -> None:
    target, _ = models
    session = session_of(target, lambda _: PromptLookupDrafter(DraftSettings(n_draft_max=4)))
    assert finished(answer(session, VerifyRule.AUTO)).verify is VerifyRule.COMPARE
    last = finished(answer(session, VerifyRule.REJECT))
    assert last.verify is VerifyRule.REJECT
    session.close()
