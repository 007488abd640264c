"""How a drafter chooses its tokens and when it stops; what it drafts with stays its own matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slipstream.engine.speculation.confidence import confidence, likeliest

Logits = NDArray[np.float32]


class DraftGuide:
    """Greedy: the likeliest token each time, to the longest draft the drafter allows.

    One guide serves one draft; a drafter that asks a model calls `choose` for each row of logits
    and `goes_on` after each token. A chosen token may be random. Then nothing that depends on
    which one it is may keep it, or one before it, from being verified: leaving some out would
    change how often the others are written.
    """

    def choose(self, logits: Logits) -> tuple[int, float]:
        """A token and the drafter's confidence in its likeliest one, which does not depend on it.

        The confidence is a probability among the ten likeliest. `logits` has shape (n_vocab,) and
        is only valid during the call.
        """
        return likeliest(logits), confidence(logits)

    def goes_on(self, confidence: float) -> bool:
        """Whether to draft another token after one of this confidence."""
        return True

    def keeps(self, count: int, least: int) -> bool:
        """Whether a finished draft of `count` tokens is verified where `least` are wanted."""
        return count >= least
