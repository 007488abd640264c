from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from engine.speculation.chi_square import p_value
from engine.speculation.tiny_sampling import N_VOCAB, PROMPT, TARGET, chain_of, settings_of
from slipstream.engine.candidates import Distribution
from slipstream.engine.speculation.rejection import residual, verify_by_rejection
from slipstream.engine.speculation.sampling_guide import CONFIDENT, Proposal, SamplingGuide
from slipstream.engine.speculation.verify import Verdict
from slipstream.errors import EngineError

END = 99


def spread(**shares: float) -> Distribution:
    """t3=0.5 is token 3 with probability a half, in the order given."""
    ids = np.array([int(name[1:]) for name in shares], dtype=np.int32)
    return Distribution(ids, np.array(list(shares.values())))


def shares_of(distribution: Distribution) -> dict[int, float]:
    pairs = zip(distribution.ids, distribution.probabilities, strict=True)
    return {int(token): pytest.approx(float(share)) for token, share in pairs}


class Chances(Random):
    """Random numbers that were decided beforehand."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self._values = list(values)

    def random(self) -> float:
        return self._values.pop(0)


def verdict_of(
    tokens: list[int], proposals: list[Proposal], rows: list[Distribution], *chances: float
) -> tuple[Verdict, list[str]]:
    """The verdict, and in which order rows were asked for and tokens remembered."""
    steps: list[str] = []

    def target(row: int) -> Distribution:
        steps.append(f"row {row}")
        return rows[row]

    verdict = verify_by_rejection(
        tokens,
        proposals,
        target,
        lambda token: steps.append(f"token {token}"),
        lambda token: token == END,
        Chances(*chances),
    )
    return verdict, steps


def test_the_residual_is_aligned_by_token_not_by_place() -> None:
    target, proposal = spread(t3=0.5, t1=0.3, t7=0.2), spread(t1=0.6, t9=0.2, t3=0.2)
    assert shares_of(residual(target, proposal)) == {3: 0.3 / 0.5, 7: 0.2 / 0.5}


def test_of_a_token_that_was_not_drawn_all_is_taken_away() -> None:
    assert shares_of(residual(spread(t3=0.5, t1=0.3, t7=0.2), spread(t3=1.0))) == {
        1: 0.6,
        7: 0.4,
    }


def test_where_both_are_equal_rounding_is_not_drawn_from() -> None:
    target = spread(t1=0.1, t2=0.9)
    almost = Distribution(target.ids, target.probabilities * (1 - 1e-15))
    assert residual(target, almost) is target


def test_small_probabilities_are_compared_in_double_precision() -> None:
    tiny = 1e-60  # 0 in single precision
    proposal = Distribution(np.array([1, 2], dtype=np.int32), np.array([2 * tiny, 1.0]))
    row = Distribution(np.array([1, 2], dtype=np.int32), np.array([tiny, 1.0]))
    accepted, _ = verdict_of([1], [proposal], [row, row], 0.49, 0.5)
    rejected, _ = verdict_of([1], [proposal], [row, row], 0.51, 0.5)
    assert (accepted.accepted, rejected.accepted) == (1, 0)


def test_each_row_is_asked_for_once_after_all_tokens_before_it() -> None:
    even = spread(t1=0.5, t2=0.5)
    verdict, steps = verdict_of([1, 2], [even, even], [even] * 3, 0.9, 0.9, 0.7)
    assert verdict == Verdict((1, 2, 2), 2, ended=False)  # with a bonus drawn at 0.7
    assert steps == ["row 0", "token 1", "row 1", "token 2", "row 2", "token 2"]


def test_after_a_rejection_nothing_further_is_looked_at() -> None:
    row, proposal = spread(t1=0.2, t2=0.8), spread(t1=0.8, t2=0.2)
    verdict, steps = verdict_of([1, 1], [proposal, proposal], [row] * 3, 0.25, 0.0)
    assert verdict == Verdict((2,), 0, ended=False)  # 0.25 is not below 0.2 / 0.8
    assert steps == ["row 0", "token 2"]


def test_a_token_the_target_cannot_write_is_never_accepted() -> None:
    verdict, _ = verdict_of([5], [spread(t5=1.0)], [spread(t1=1.0)], 0.0, 0.0)
    assert verdict == Verdict((1,), 0, ended=False)


def test_a_token_that_was_not_drawn_is_accepted_with_the_targets_probability() -> None:
    row = spread(t1=0.3, t2=0.7)
    assert verdict_of([1], [None], [row, row], 0.29, 0.0)[0].accepted == 1
    assert verdict_of([1], [None], [row, row], 0.3, 0.0)[0] == Verdict((2,), 0, ended=False)


def test_an_end_stops_whether_accepted_drawn_or_a_bonus() -> None:
    end, other = spread(t99=1.0), spread(t1=1.0)
    accepted, _ = verdict_of([END, 1], [None, None], [end, other, other], 0.5)
    assert accepted == Verdict((END,), 1, ended=True)
    drawn, _ = verdict_of([1], [None], [end, other], 0.5, 0.5)
    assert drawn == Verdict((END,), 0, ended=True)
    bonus, _ = verdict_of([1], [None], [other, end], 0.5, 0.5)
    assert bonus == Verdict((1, END), 1, ended=True)


def test_zero_chance_never_draws_what_cannot_come() -> None:
    weighted = Distribution.weighted(np.arange(4, dtype=np.int32), np.array([0, 1.0, 3.0, 0]))
    assert shares_of(weighted) == {1: 0.25, 2: 0.75}
    assert (weighted.draw(0.0), weighted.draw(0.25), weighted.draw(1 - 2**-53)) == (1, 2, 2)


def test_probabilities_are_those_after_the_last_sampler() -> None:
    """Temperature after top-p leaves those of top-p in llama.cpp's own array."""
    row = np.array([2, 1, 0, -1, -2, -9], dtype=np.float32)
    with chain_of(settings_of(temperature=0.5, top_p=0.9)) as chain:
        left = shares_of(chain.distribution(row))
    weights = np.exp(2 * row[:3].astype(float))
    assert left == {token: weights[token] / weights.sum() for token in range(3)}


def test_xtc_takes_tokens_off_the_front() -> None:
    with chain_of(settings_of(xtc_probability=1.0, xtc_threshold=0.2)) as chain:
        left = chain.distribution(np.array([3, 3, 1, 0, 0, 0], dtype=np.float32))
    assert len(left.ids) == N_VOCAB - 1  # all but one of the two likely ones
    assert len({0, 1} & set(left.ids.tolist())) == 1


def test_logits_that_are_no_numbers_are_refused() -> None:
    with chain_of(settings_of()) as chain, pytest.raises(EngineError, match="not a number"):
        chain.distribution(np.full(N_VOCAB, np.nan, dtype=np.float32))


@pytest.mark.parametrize("extra", [0, 3])
def test_what_is_drafted_is_drawn_from_what_is_remembered(extra: int) -> None:
    """Also where the draft knows more tokens than the target: those are never proposed."""
    row = np.concatenate([TARGET[PROMPT[-1]], np.full(extra, 9, dtype=np.float32)])
    settings = settings_of(repeat_penalty=1.5)
    random, counts = Random(7), Counter[int]()
    with chain_of(settings) as chain:
        expected = chain.distribution(row)
        for _ in range(5_000):
            guide = SamplingGuide(chain, random)
            token, _confidence = guide.choose(row)
            counts[token] += 1
            (proposal,) = guide.proposals([token])
            assert proposal is not None
            assert shares_of(proposal) == shares_of(expected)
            guide.close()
    pairs = zip(expected.ids.tolist(), expected.probabilities.tolist(), strict=True)
    assert p_value(counts, dict(pairs)) > 0.001


def test_what_is_drafted_reaches_the_penalties_of_the_draft_alone() -> None:
    row = TARGET[0]
    with chain_of(settings_of(presence_penalty=2.0)) as chain:
        before = shares_of(chain.distribution(row))
        guide = SamplingGuide(chain, Random(1))
        chosen = [guide.choose(row)[0] for _ in range(2)]
        first, second = guide.proposals(chosen)
        guide.close()
        assert first is not None
        assert second is not None
        assert shares_of(first) == before
        assert second.of(chosen[0]) < first.of(chosen[0])
        assert shares_of(chain.distribution(row)) == before


def test_the_draft_alone_decides_what_is_taken_outright() -> None:
    """Whatever would be drawn: to look at the drawn token first would bias the text."""
    sure = np.array([6, 0, 0, 0, 0, 0], dtype=np.float32)
    unsure = np.array([1, 0, 0, 0, 0, 0], dtype=np.float32)
    with chain_of(settings_of()) as chain:
        assert chain.distribution(sure).likeliest()[1] > CONFIDENT
        for seed in range(30):
            guide = SamplingGuide(chain, Random(seed))
            assert guide.choose(sure)[0] == 0
            token, confidence = guide.choose(unsure)
            outright, drawn = guide.proposals([0, token])
            assert outright is None
            assert drawn is not None
            assert confidence == guide.choose(unsure)[1], "it must not tell which was drawn"
            guide.close()


def test_a_draft_of_drawn_tokens_is_verified_however_short() -> None:
    sure = np.array([6, 0, 0, 0, 0, 0], dtype=np.float32)
    with chain_of(settings_of()) as chain:
        guide = SamplingGuide(chain, Random(1))
        assert not guide.keeps(0, 1)
        guide.choose(sure)
        assert not guide.keeps(1, 2)
        guide.choose(np.zeros(N_VOCAB, dtype=np.float32))
        assert not guide.keeps(1, 2), "the drawn one was left out for what the draft is unsure of"
        assert guide.keeps(2, 3)
        guide.close()


def test_tokens_of_somebody_else_were_not_drawn() -> None:
    flat = np.zeros(N_VOCAB, dtype=np.float32)
    with chain_of(settings_of()) as chain:
        guide = SamplingGuide(chain, Random(1))
        assert guide.proposals([4, 5]) == (None, None)
        token, _ = guide.choose(flat)
        mine, other = guide.proposals([token, 5])
        assert mine is not None
        assert other is None
        guide.close()
