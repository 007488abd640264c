"""Drafting with the real starter model: the same file, another quantisation, the text itself."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from models.quantised import quantised
from slipstream.chat.records import Message, Role, SpeculationStatistics
from slipstream.engine.events import Finished, TextRun
from slipstream.engine.llama import Batch, lib
from slipstream.engine.requests import AnswerRequest, DraftRequest, LoadRequest, Pace
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings
from slipstream.engine.speculation.verify_rule import VerifyRule
from slipstream.engine.target import Target

pytestmark = pytest.mark.model

SYSTEM = "You are a helpful assistant."
QUESTION = "Explain what a rainbow is."
TEXT = (
    "The old lighthouse stood at the end of the pier. Every evening its keeper climbed the ninety "
    "steps and lit the lamp. Ships far out at sea saw the light and turned away from the rocks."
)
REWRITE = f"Repeat the following text exactly, word for word:\n\n{TEXT}"
ROUNDING = 0.05
"""Logits: how far apart two candidates may be for the number of rows in a batch to swap them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quantised")


@pytest.fixture(scope="module")
def target(starter: Path) -> Iterator[Target]:
    loaded = Target(LoadRequest(starter, n_ctx=1024))
    yield loaded
    loaded.close()


def answer(target: Target, text: str, length: int) -> tuple[list[int], SpeculationStatistics]:
    request = AnswerRequest(
        (Message("", Role.USER, text, datetime.now(UTC)),),
        system_prompt=SYSTEM,
        settings=SamplerSettings(temperature=0, max_tokens=length),
    )
    events = list(target.session.generate(target.prepare(request).request))
    last = events[-1]
    assert isinstance(last, Finished)
    tokens = [t for event in events if isinstance(event, TextRun) for t in event.token_ids]
    return tokens, last.speculation


def margin_at(target: Target, text: str, said: list[int], one: int, other: int) -> float:
    """How far apart the target's logits for two tokens are after `said`, decoded at once."""
    request = AnswerRequest((Message("", Role.USER, text, datetime.now(UTC)),), SYSTEM)
    prompt = [*target.prepare(request).request.prompt, *said]
    target.session.cache.trim(0)
    batch = Batch(len(prompt))
    batch.fill(prompt, 0, all_outputs=False)
    context = target.session.context
    context.decode(batch)
    logits = np.ctypeslib.as_array(context.logits(-1), shape=(target.model.n_vocab,))
    gap = abs(float(logits[one] - logits[other]))
    context.clear()
    return gap


def assert_same_or_rounding(
    target: Target, text: str, plain: list[int], drafted: list[int]
) -> None:
    """The same tokens, or a first difference between candidates that rounding can swap."""
    for index, (one, other) in enumerate(zip(plain, drafted, strict=False)):
        if one != other:
            gap = margin_at(target, text, plain[:index], one, other)
            print(f"first divergence at {index}: {one} and {other}, {gap:.3f} apart")
            assert gap < ROUNDING
            return
    assert len(plain) == len(drafted)


def test_a_draft_equal_to_the_target_is_accepted(target: Target, starter: Path) -> None:
    plain, _ = answer(target, QUESTION, 64)
    facts = target.set_draft(
        DraftRequest(None, starter, DraftSettings(n_draft_max=4), pace=Pace.FIXED)
    )
    assert facts.kind is DrafterKind.DRAFT_MODEL
    drafted, figures = answer(target, QUESTION, 64)
    target.set_draft(DraftRequest())
    assert_same_or_rounding(target, QUESTION, plain, drafted)
    assert figures.verified > 20
    assert figures.acceptance_rate is not None
    assert figures.acceptance_rate >= 0.99


def test_prompt_lookup_pays_on_a_text_to_repeat(target: Target) -> None:
    plain, _ = answer(target, REWRITE, 80)
    target.set_draft(
        DraftRequest(DrafterKind.PROMPT_LOOKUP, None, DraftSettings(n_draft_max=6), pace=Pace.FIXED)
    )
    drafted, figures = answer(target, REWRITE, 80)
    target.set_draft(DraftRequest())
    assert_same_or_rounding(target, REWRITE, plain, drafted)
    assert figures.mean_accepted_length is not None
    assert figures.mean_accepted_length > 2


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.8, 1.0])
def test_rejection_sampling_accepts_more_than_comparing(
    starter: Path, folder: Path, temperature: float
) -> None:
    f16 = quantised(starter, folder, "f16", lib.LLAMA_FTYPE_MOSTLY_F16)
    q4_0 = quantised(starter, folder, "q4_0", lib.LLAMA_FTYPE_MOSTLY_Q4_0)
    target = Target(LoadRequest(f16, n_ctx=1024))
    accepted, rounds = Counter[VerifyRule](), Counter[VerifyRule]()
    try:
        target.set_draft(DraftRequest(None, q4_0, DraftSettings(n_draft_max=4), pace=Pace.FIXED))
        for seed, rule in itertools.product(range(3), (VerifyRule.COMPARE, VerifyRule.REJECT)):
            for text in (QUESTION, "Write a short story about a lighthouse keeper."):
                settings = SamplerSettings(temperature=temperature, max_tokens=64, seed=seed)
                asked = AnswerRequest(
                    (Message("", Role.USER, text, datetime.now(UTC)),), SYSTEM, settings,
                    verify=rule,
                )  # fmt: skip
                *_, last = target.session.generate(target.prepare(asked).request)
                assert isinstance(last, Finished)
                assert last.verify is rule
                accepted[rule] += last.speculation.accepted
                rounds[rule] += last.speculation.rounds
    finally:
        target.close()
    each = {rule: accepted[rule] / rounds[rule] for rule in rounds}
    print(f"accepted per round at temperature {temperature}: {each}")
    assert each[VerifyRule.REJECT] > each[VerifyRule.COMPARE]


def test_an_f16_target_with_a_q4_0_draft(starter: Path, folder: Path) -> None:
    f16 = quantised(starter, folder, "f16", lib.LLAMA_FTYPE_MOSTLY_F16)
    q4_0 = quantised(starter, folder, "q4_0", lib.LLAMA_FTYPE_MOSTLY_Q4_0)
    target = Target(LoadRequest(f16, n_ctx=1024))
    try:
        plain, _ = answer(target, QUESTION, 48)
        target.set_draft(DraftRequest(None, q4_0, DraftSettings(n_draft_max=3), pace=Pace.FIXED))
        drafted, figures = answer(target, QUESTION, 48)
        target.set_draft(DraftRequest())
        assert_same_or_rounding(target, QUESTION, plain, drafted)
    finally:
        target.close()
    assert figures.acceptance_rate is not None
    assert 0.25 < figures.acceptance_rate <= 1.0
    assert figures.acceptance_by_position[0] >= figures.acceptance_by_position[-1]
