"""Runs a session with any drafter and compares it with plain decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.events import Event, Finished, TextRun
from slipstream.engine.llama import ContextSettings, Model
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.session import GenerationRequest, GenerationSession
from slipstream.engine.speculation.drafter import Drafter

MakeDrafter = Callable[[GenerationSession], Drafter]
ENDLESS = ((2, -float("inf")),)  # the SentencePiece end of sequence, so that answers are long


def prompt_of(length: int) -> list[int]:
    return [3 + (7 * index) % 100 for index in range(length)]


def request(prompt: Sequence[int], **values: object) -> GenerationRequest:
    chosen = {"temperature": 0.0, "max_tokens": 20, "logit_bias": ENDLESS, **values}
    return GenerationRequest(prompt, SamplerSettings(**chosen))  # type: ignore[arg-type]


def session_of(model: Model, make: MakeDrafter | None = None, n_batch: int = 64):
    session = GenerationSession(model, ContextSettings(n_ctx=512, n_batch=n_batch, n_threads=1))
    if make is not None:
        session.set_drafter(make(session))
    return session


def tokens_of(events: Sequence[Event]) -> list[int]:
    return [token for event in events if isinstance(event, TextRun) for token in event.token_ids]


def speculation_of(events: Sequence[Event]) -> SpeculationStatistics:
    last = events[-1]
    assert isinstance(last, Finished)
    return last.speculation


def plain_tokens(model: Model, prompt: Sequence[int], **values: object) -> list[int]:
    session = session_of(model)
    tokens = tokens_of(list(session.generate(request(prompt, **values))))
    session.close()
    return tokens


def assert_same_as_plain(
    model: Model, session: GenerationSession, prompt: Sequence[int], **values: object
) -> SpeculationStatistics:
    """One answer equals plain decoding's, and the caches are in step afterwards."""
    events = list(session.generate(request(prompt, **values)))
    tokens = tokens_of(events)
    assert tokens == plain_tokens(model, prompt, **values)
    said = [*prompt, *tokens]
    assert session.cache.tokens == said[: len(session.cache)]
    assert session.context.length() == len(session.cache) >= len(said) - 1
    figures = speculation_of(events)
    assert figures.accepted <= figures.verified <= figures.drafted
    flags = [flag for e in events if isinstance(e, TextRun) for flag in e.accepted_flags]
    assert len(flags) == len(tokens)
    assert sum(flags) == figures.accepted
    assert sum(figures.accepted_at) == figures.accepted
    if tokens:
        assert figures.rounds + figures.plain_passes + figures.accepted + 1 >= len(tokens)
    return figures
