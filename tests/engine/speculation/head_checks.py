"""Checks for drafters that follow the target's hidden states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from engine.speculation.harness import (
    MakeDrafter,
    plain_tokens,
    request,
    session_of,
    speculation_of,
    tokens_of,
)
from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.events import TextRun
from slipstream.engine.llama import Model
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.head_drafter import HeadDrafter

TIE = 0.02
"""A difference of logits that rounding can turn round; neighbours differ by some tenths."""

Turn = tuple[int, int, int]
"""A prompt's length, the tokens wanted, and after how many events the consumer leaves."""


def bare_prompt(length: int) -> list[int]:
    """A prompt in the 128-token vocabulary; shorter ones are prefixes of longer ones."""
    return [(7 * index + 3 * index * index) % 120 for index in range(length)]


def answer(
    model: Model, session: GenerationSession, prompt: Sequence[int], **values: object
) -> SpeculationStatistics:
    """One answer equals plain decoding's and leaves all caches in step."""
    wanted = request(prompt, logit_bias=(), **values)
    events = list(session.generate(wanted))
    tokens = tokens_of(events)
    assert_same_or_tied(model, prompt, tokens, logit_bias=(), **values)
    said = [*prompt, *tokens]
    assert session.cache.tokens == said[: len(session.cache)]
    assert len(session.cache) >= len(said) - 1
    assert_in_step(session)
    figures = speculation_of(events)
    assert figures.accepted <= figures.verified <= figures.drafted
    flags = [flag for e in events if isinstance(e, TextRun) for flag in e.accepted_flags]
    assert len(flags) == len(tokens)
    assert sum(flags) == figures.accepted == sum(figures.accepted_at)
    return figures


def assert_same_or_tied(
    model: Model, prompt: Sequence[int], tokens: list[int], **values: object
) -> None:
    """The tokens are plain decoding's, up to where the two likeliest are as good as equal.

    Batches of different sizes round differently, with or without a draft.
    """
    plain = plain_tokens(model, prompt, **values)
    if tokens == plain:
        return
    at = next(index for index in range(len(plain)) if tokens[index] != plain[index])
    assert values.get("temperature", 0.0) == 0.0
    session = session_of(model)
    list(session.generate(request([*prompt, *plain[:at]], max_tokens=0)))
    logits = session.context.logits(-1)
    assert abs(logits[plain[at]] - logits[tokens[at]]) < TIE, f"token {at}: {tokens} != {plain}"
    session.close()


def assert_in_step(session: GenerationSession) -> None:
    """The head holds the pairs of the target's cached tokens, or of fewer; nothing else."""
    drafter = session.drafter
    assert isinstance(drafter, HeadDrafter)
    assert session.context.length() == len(session.cache)
    assert drafter.followed <= len(session.cache) + 1
    waiting = drafter._waiting
    followed = list(drafter._tokens)
    if waiting.tokens:
        followed[waiting.start :] = waiting.tokens
    shared = min(drafter.followed, len(session.cache))
    assert followed[:shared] == session.cache.tokens[:shared]
    assert drafter._context.length() == max(0, len(drafter._tokens) - drafter._lag)


def assert_like_fresh(
    model: Model, session: GenerationSession, make: MakeDrafter, pending: int, depth: int
) -> None:
    """The drafter goes on exactly as one that has read the whole conversation in one go."""
    said = list(session.cache.tokens)
    fresh = session_of(model, make, 512)
    list(fresh.generate(request(said, max_tokens=0, logit_bias=())))
    history = [*said, pending]
    ours, theirs = (s.drafter.draft(history, depth, DraftGuide()) for s in (session, fresh))
    assert ours.tokens == theirs.tokens
    assert ours.confidences == pytest.approx(theirs.confidences, abs=1e-2)
    fresh.close()


def converse(
    model: Model,
    make: MakeDrafter,
    turns: Sequence[Turn],
    *,
    depth: int,
    n_batch: int,
    fork: Callable[[int], int] = lambda length: length,
) -> None:
    """Turns with early leaves, each then answered whole; any turn may fork off the ones before."""
    session = session_of(model, make, n_batch)
    for length, max_tokens, taken in turns:
        prompt = [*bare_prompt(fork(length)), 3 + length % 100]
        stream = session.generate(request(prompt, max_tokens=max_tokens, logit_bias=()))
        pending = None
        for _, event in zip(range(taken), stream, strict=False):
            if isinstance(event, TextRun):
                pending = event.token_ids[-1]
        stream.close()  # type: ignore[attr-defined]
        assert_in_step(session)
        if pending is not None:
            assert_like_fresh(model, session, make, pending, depth)
        answer(model, session, prompt, max_tokens=max_tokens)
        if length % 2:  # the target goes on without the drafter, which must not be misled
            said = session.cache.tokens
            other = [*said[: len(said) - length % 7], 11, 12]
            resting = request(other, max_tokens=max_tokens, logit_bias=())
            list(session.generate(replace(resting, speculate=False)))
        # the answer becomes part of the next prompt, as in a chat
        answer(model, session, [*session.cache.tokens, 5, 6], max_tokens=5)
    session.close()
