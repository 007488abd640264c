"""A draft's likeliest token and how sure the drafter is of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CANDIDATES = 10
"""Over how many tokens the probability is taken, as in llama.cpp's common/speculative.cpp."""

_NEGLIGIBLE = 12.0
"""A logit this far below the largest adds less than 0.00001 to the sum of ten."""


def likeliest(logits: NDArray[np.float32]) -> int:
    """The token with the largest logit. `logits` has shape (n_vocab,)."""
    return int(logits.argmax())


def confidence(logits: NDArray[np.float32], top: float | None = None) -> float:
    """Probability of the likeliest token among the ten likeliest; `top` is its logit if known."""
    best = logits.max() if top is None else top
    near = logits[logits > best - _NEGLIGIBLE]
    if near.size > CANDIDATES:
        near = np.partition(near, -CANDIDATES)[-CANDIDATES:]
    return float(1.0 / np.exp(near.astype(np.float64) - float(best)).sum())
