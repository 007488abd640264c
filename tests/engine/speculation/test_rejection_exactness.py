"""The text that rejection sampling writes is distributed as plain decoding's, by chi-square."""

from __future__ import annotations

import ctypes
from collections import Counter

import numpy as np
import pytest

from engine.speculation.chi_square import p_value
from engine.speculation.tiny_sampling import (
    PROMPT,
    TARGET,
    RememberedChain,
    Tokens,
    as_chain,
    chain_of,
    one_round,
    probabilities,
    probabilities_by,
    settings_of,
    start,
)
from slipstream.engine.candidates import Distribution
from slipstream.engine.llama import lib
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation import rejection as module
from slipstream.engine.speculation import sampling_guide
from slipstream.engine.speculation.rejection import RejectionSampling

DRAWS = 200_000
FEWER = 20_000
UNLIKELY = 0.001
"""Counts less likely than this are called different; fixed seeds keep luck out of the tests."""

PENALTIES = {
    "repeat_penalty": 1.3,
    "frequency_penalty": 0.3,
    "presence_penalty": 0.2,
    "repeat_last_n": len(PROMPT),
}
EVERYTHING = {"top_k": 5, "top_p": 0.95, "min_p": 0.04, **PENALTIES}
EACH = {
    "nothing": {},
    "top-k": {"top_k": 3},
    "top-p": {"top_p": 0.8},
    "min-p": {"min_p": 0.2},
    "penalties": PENALTIES,
}


def rejected_texts(
    settings: SamplerSettings, length: int, draws: int, depth: int = 2
) -> Counter[Tokens]:
    """How often rejection sampling writes each sequence of `length` tokens."""
    chain = RememberedChain(settings)
    rejection = RejectionSampling(as_chain(chain), seed=3)
    counts: Counter[Tokens] = Counter()
    for _ in range(draws):
        chain.said = ()
        while len(chain.said) < length:
            one_round(rejection, chain.said, depth)
        counts[chain.said[:length]] += 1
    return counts


def rejected_texts_of_the_real_chain(
    settings: SamplerSettings, length: int, draws: int
) -> Counter[Tokens]:
    """The same without the shortcut."""
    counts: Counter[Tokens] = Counter()
    with chain_of(settings) as chain:
        rejection = RejectionSampling(chain, seed=3)
        for _ in range(draws):
            start(chain)
            said: Tokens = ()
            while len(said) < length:
                said += one_round(rejection, said, depth=2).tokens
            counts[said[:length]] += 1
        rejection.close()
    return counts


def likelihood(values: dict[str, float], length: int) -> float:
    settings = settings_of(**values)
    result = p_value(rejected_texts(settings, length, DRAWS), probabilities(settings, length))
    print(f"{values}, {length} deep: p = {result:.4f}")
    return result


def test_all_samplers_at_once() -> None:
    assert likelihood(EVERYTHING, 2) > UNLIKELY


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_each_sampler_three_tokens_deep(name: str) -> None:
    assert likelihood(EACH[name], 3) > UNLIKELY


@pytest.mark.slow
@pytest.mark.parametrize("confident", [0.0, 0.5, 1.1])
def test_however_much_is_drafted_outright(
    confident: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling_guide, "CONFIDENT", confident)
    assert likelihood(EVERYTHING, 3) > UNLIKELY


@pytest.mark.slow
def test_the_real_chain_without_the_shortcut() -> None:
    settings = settings_of(**EVERYTHING)
    counts = rejected_texts_of_the_real_chain(settings, 3, DRAWS)
    assert p_value(counts, probabilities(settings, 3)) > UNLIKELY


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_the_shortcut_writes_what_the_real_chain_does(values: dict[str, float]) -> None:
    settings = settings_of(**values)
    real = rejected_texts_of_the_real_chain(settings, 3, 500)
    assert rejected_texts(settings, 3, 500) == real


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_plain_decoding_draws_from_what_the_chain_leaves(values: dict[str, float]) -> None:
    settings = settings_of(**values)
    counts: Counter[Tokens] = Counter()
    with chain_of(settings) as chain:
        for _ in range(DRAWS):
            start(chain)
            said: Tokens = ()
            while len(said) < 2:
                native = chain._candidates.load(TARGET[(*PROMPT, *said)[-1]])
                lib.llama_sampler_apply(chain._chain, ctypes.byref(native))
                said += (int(native.data[native.selected].id),)
                chain.accept(said[-1])
            counts[said] += 1
    assert p_value(counts, probabilities(settings, 2)) > UNLIKELY


def test_xtc_draws_once_for_each_token() -> None:
    """It acts on half of the rows by chance, and the text is a mixture of both cases."""
    never, always = settings_of(), settings_of(xtc_probability=1.0, xtc_threshold=0.15)
    expected: Counter[Tokens] = Counter()
    for first in (never, always):
        for second in (never, always):
            for text, probability in probabilities_by(first, second).items():
                expected[text] += probability / 4  # type: ignore[assignment]
    assert len(probabilities(always, 1)) < len(probabilities(never, 1)), "it must act"
    settings = settings_of(xtc_probability=0.5, xtc_threshold=0.15)
    counts = rejected_texts_of_the_real_chain(settings, 2, FEWER)
    assert p_value(counts, expected) > UNLIKELY


def not_reduced(target: Distribution, _proposal: Distribution) -> Distribution:
    return target


def by_place(target: Distribution, proposal: Distribution) -> Distribution:
    """As llama.cpp's examples/speculative does: subtracts what stands at the same place."""
    mine, theirs = np.argsort(target.ids), np.argsort(proposal.ids)
    left = target.probabilities[mine].copy()
    shared = min(len(mine), len(theirs))
    left[:shared] -= proposal.probabilities[theirs][:shared]
    left = np.maximum(left, 0)
    return Distribution.weighted(target.ids[mine], left) if left.sum() > 0 else target


@pytest.mark.parametrize("wrong", [not_reduced, by_place])
def test_a_wrong_residual_would_be_noticed(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "residual", wrong)
    settings = settings_of(**EVERYTHING)
    counts = rejected_texts(settings, 2, FEWER)
    assert p_value(counts, probabilities(settings, 2)) < 1e-9
