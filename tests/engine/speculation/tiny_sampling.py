"""Target and draft over a handful of tokens, by the real sampler chain and without any model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from slipstream.engine.candidates import Distribution, Logits
from slipstream.engine.llama import Model
from slipstream.engine.sampler_chain import SamplerChain
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.rejection import RejectionSampling
from slipstream.engine.speculation.verify import Verdict

N_VOCAB = 6
PROMPT = (1, 4, 1)
Tokens = tuple[int, ...]

_random = np.random.default_rng(5)
# what follows a token depends on it alone, but for penalties
TARGET = (1.5 * _random.standard_normal((N_VOCAB, N_VOCAB))).astype(np.float32)
DRAFT = (TARGET + 0.9 * _random.standard_normal((N_VOCAB, N_VOCAB))).astype(np.float32)
DRAFT[2, 3] += 4  # somewhere the draft is confident, and wrong


def settings_of(**values: object) -> SamplerSettings:
    """Settings under which nothing is cut off unless told so."""
    plain = {"temperature": 0.9, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    return SamplerSettings(**{**plain, **values})  # type: ignore[arg-type]


@contextmanager
def chain_of(
    settings: SamplerSettings, seed: int = 1, n_vocab: int = N_VOCAB
) -> Iterator[SamplerChain]:
    """A real chain, primed with the prompt."""
    model = cast(Model, SimpleNamespace(n_vocab=n_vocab, vocab=None, path=Path("tiny.gguf")))
    chain = SamplerChain(model, settings, seed, n_ctx=64)
    start(chain)
    try:
        yield chain
    finally:
        chain.close()


def start(chain: SamplerChain) -> None:
    """Let it see the prompt, which fills the penalties' window where that is as long."""
    for token in PROMPT:
        chain.accept(token)


class RememberedChain:
    """Asks a real chain once for each history and row, so that hundreds of thousands are quick."""

    def __init__(self, settings: SamplerSettings) -> None:
        self._settings = settings
        self._known: dict[tuple[Tokens, bytes], Distribution] = {}
        self.said: Tokens = ()

    def distribution(self, logits: Logits) -> Distribution:
        key = (self.said, logits.tobytes())
        if key not in self._known:
            with chain_of(self._settings) as chain:
                for token in self.said:
                    chain.accept(token)
                self._known[key] = chain.distribution(logits)
        return self._known[key]

    def accept(self, token: int) -> None:
        self.said += (token,)

    def for_draft(self) -> RememberedChain:
        copy = RememberedChain(self._settings)
        copy._known, copy.said = self._known, self.said
        return copy

    def close(self) -> None:
        pass


def never_ends(_token: int) -> bool:
    return False


def one_round(rejection: RejectionSampling, said: Tokens, depth: int) -> Verdict:
    """Draft `depth` tokens after `said` and verify them."""
    guide = rejection.guide()
    drafted: list[int] = []
    for _ in range(depth):
        last = (*PROMPT, *said, *drafted)[-1]
        drafted.append(guide.choose(DRAFT[last])[0])
    context = [(*PROMPT, *said)[-1], *drafted]
    return rejection.verify(drafted, lambda row: TARGET[context[row]], never_ends)


def probabilities(settings: SamplerSettings, length: int) -> dict[Tokens, float]:
    """How likely plain decoding writes each sequence of this length."""
    return probabilities_by(*[settings] * length)


def probabilities_by(*settings: SamplerSettings) -> dict[Tokens, float]:
    """The same with settings of its own for each token."""
    expected: dict[Tokens, float] = {(): 1.0}
    for chosen in settings:
        known = RememberedChain(chosen)
        longer: dict[Tokens, float] = {}
        for said, probability in expected.items():
            known.said = said
            row = known.distribution(TARGET[(*PROMPT, *said)[-1]])
            for token, share in zip(row.ids, row.probabilities, strict=True):
                longer[(*said, int(token))] = probability * float(share)
        expected = longer
    return expected


def as_chain(chain: Any) -> SamplerChain:
    return cast(SamplerChain, chain)
