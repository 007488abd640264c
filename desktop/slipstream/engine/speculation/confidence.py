"""A draft's likeliest token and how sure the drafter is of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CANDIDATES = 10
"""Over how many tokens the probability is taken, as in llama.cpp's common/speculative.cpp."""


def likeliest(logits: NDArray[np.float32]) -> int:
    """The token with the largest logit. `logits` has shape (n_vocab,)."""
    return int(logits.argmax())


def confidence(logits: NDArray[np.float32]) -> float:
    """Probability of the likeliest token among the ten likeliest."""
    count = min(CANDIDATES, logits.size)
    top = np.partition(logits, -count)[-count:].astype(np.float64)
    return float(1.0 / np.exp(top - top.max()).sum())
