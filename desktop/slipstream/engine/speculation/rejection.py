"""Rejection sampling: accepts drafted tokens so that the text is distributed as the target's.

Leviathan et al., https://arxiv.org/abs/2211.17192, theorem 1 and appendix A.1; Chen et al.,
https://arxiv.org/abs/2302.01318.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from slipstream.engine.candidates import Distribution, Logits
from slipstream.engine.sampler_chain import SamplerChain
from slipstream.engine.speculation.sampling_guide import Proposal, SamplingGuide
from slipstream.engine.speculation.verify import Verdict

NEGLIGIBLE = 1e-12
"""A residual that sums to no more than this is rounding: both distributions are the same."""


def residual(target: Distribution, proposal: Distribution) -> Distribution:
    """What is drawn from after a rejection: max(p - q, 0), normalised, token by token.

    The two may know different tokens. Where nothing is left, p itself.
    """
    size = 1 + max(int(target.ids.max()), int(proposal.ids.max()))
    proposed = np.zeros(size)
    proposed[proposal.ids] = proposal.probabilities
    left = np.maximum(target.probabilities - proposed[target.ids], 0.0)
    return Distribution.weighted(target.ids, left) if left.sum() > NEGLIGIBLE else target


def certain(token: int) -> Distribution:
    """The distribution of a token that was not drawn."""
    return Distribution(np.array([token], dtype=np.int32), np.ones(1))


def verify_by_rejection(
    tokens: Sequence[int],
    proposals: Sequence[Proposal],
    target: Callable[[int], Distribution],
    remember: Callable[[int], None],
    ends_generation: Callable[[int], bool],
    random: Random,
) -> Verdict:
    """Accept each drafted token with min(1, p/q); draw another for the first that is not.

    `target(i)` is what the target draws from after the i-th drafted token (row 0 follows the
    pending token), asked for in order and once each, after `remember` was told all tokens before.
    `proposals` has for each drafted token what it was drawn from, float64 throughout.
    """
    written: list[int] = []
    for row, (token, proposal) in enumerate(zip(tokens, proposals, strict=True)):
        expected = target(row)
        drawn_from = certain(token) if proposal is None else proposal
        accepted = random.random() * drawn_from.of(token) < expected.of(token)
        if not accepted:
            token = residual(expected, drawn_from).draw(random.random())
        written.append(token)
        remember(token)
        if not accepted or ends_generation(token):
            return Verdict(tuple(written), row + accepted, ended=ends_generation(token))
    token = target(len(tokens)).draw(random.random())
    remember(token)
    return Verdict((*written, token), len(tokens), ended=ends_generation(token))


class RejectionSampling:
    """The rule over one answer: owns its random numbers, apart from those of the chain's draw.

    With the same seed and the same drafts it writes the same text, which is not plain decoding's.
    """

    def __init__(self, chain: SamplerChain, seed: int) -> None:
        self._chain = chain
        self._random = Random(seed)
        self._guide: SamplingGuide | None = None

    def guide(self) -> SamplingGuide:
        """Who chooses the tokens of the next draft; closed with the next call, or `close()`."""
        self.close()
        self._guide = SamplingGuide(self._chain, self._random)
        return self._guide

    def verify(
        self,
        tokens: Sequence[int],
        logits: Callable[[int], Logits],
        ends_generation: Callable[[int], bool],
    ) -> Verdict:
        """Verify the draft that the latest guide was given for.

        `logits(i)` is the target's row after the i-th drafted token, shape (n_vocab,).
        """
        assert self._guide is not None
        return verify_by_rejection(
            tokens,
            self._guide.proposals(tokens),
            lambda row: self._chain.distribution(logits(row)),
            self._chain.accept,
            ends_generation,
            self._random,
        )

    def close(self) -> None:
        """Free what the latest guide holds. Calling it twice is harmless."""
        if self._guide is not None:
            self._guide.close()
