"""The session and the target on the real starter model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from slipstream.chat.records import FinishReason, Message, Role
from slipstream.engine.events import Event, Finished, PrefillProgress, TextRun
from slipstream.engine.requests import AnswerRequest, LoadRequest
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.session import GenerationRequest
from slipstream.engine.target import Target

pytestmark = pytest.mark.model

PROMPTS = (
    "The capital of France is",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "def fibonacci(n):\n    ",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen",
    "1, 2, 3, 4, 5,",
    "Once upon a time, in a land far away, there lived a dragon who " * 12,
)
LENGTH = 24


@pytest.fixture(scope="module")
def target(starter: Path) -> Iterator[Target]:
    loaded = Target(LoadRequest(starter, n_ctx=1024))
    yield loaded
    loaded.close()


def greedy(max_tokens: int = LENGTH) -> SamplerSettings:
    return SamplerSettings(temperature=0, max_tokens=max_tokens)


def tokens_of(events: list[Event]) -> list[int]:
    return [token for event in events if isinstance(event, TextRun) for token in event.token_ids]


def test_greedy_ids_equal_llama_cpps_own(target: Target, starter: Path) -> None:
    from llama_cpp import Llama

    # flash attention as in llama.cpp's own programs; its rounding is not that of the other path
    reference = Llama(str(starter), n_ctx=1024, flash_attn=True, verbose=False)
    try:
        for prompt in PROMPTS:
            ids = reference.tokenize(prompt.encode(), add_bos=True, special=True)
            assert target.model.tokenize(prompt) == ids
            reference.reset()
            expected = list(islice(reference.generate(ids, temp=0.0), LENGTH))
            end = next((n for n, t in enumerate(expected) if t == reference.token_eos()), LENGTH)
            events = list(target.session.generate(GenerationRequest(ids, greedy())))
            assert tokens_of(events) == expected[: end + 1], prompt
    finally:
        reference.close()


def said(role: Role, text: str) -> Message:
    return Message("", role, text, datetime.now(UTC))


def test_a_second_turn_evaluates_only_what_is_new(target: Target) -> None:
    first = AnswerRequest((said(Role.USER, "Name a colour."),), settings=greedy())
    prepared = target.prepare(first)
    events = list(target.session.generate(prepared.request))
    answer = "".join(p.text for e in events if not isinstance(e, PrefillProgress) for p in e.pieces)
    assert answer.strip()
    second = AnswerRequest(
        (*first.messages, said(Role.ASSISTANT, answer), said(Role.USER, "And another?")),
        settings=greedy(),
    )
    again = target.prepare(second)
    assert again.text.startswith(prepared.text + answer)
    end = list(target.session.generate(again.request))[-1]
    assert isinstance(end, Finished)
    known = len(prepared.request.prompt)
    assert end.statistics.cached_prompt_tokens >= known
    assert end.statistics.prompt_tokens == len(again.request.prompt)


def test_the_model_ends_its_turn_by_itself(target: Target) -> None:
    request = AnswerRequest(
        (said(Role.USER, "What is the capital of France?"),),
        system_prompt="You are a helpful assistant.",
        settings=greedy(60),
    )
    events = list(target.session.generate(target.prepare(request).request))
    end = events[-1]
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.EOG
    assert target.model.is_end_of_generation(tokens_of(events)[-1])


def test_facts_tell_how_it_really_runs(target: Target, starter: Path) -> None:
    facts = target.facts
    assert (facts.path, facts.n_ctx, facts.n_ctx_train) == (starter, 1024, 8192)
    assert facts.n_threads >= 1
    assert facts.template_name == "the model file's own template"
    assert facts.notes == ()


def test_the_vocabulary_wants_no_bos(target: Target) -> None:
    prompt = target.prepare(AnswerRequest((said(Role.USER, "Hi"),))).request.prompt
    assert not target.model.adds_bos
    assert target.model.token_text(prompt[0]) == "<|im_start|>"
    assert target.model.token_text(prompt[1]) != "<|im_start|>"
