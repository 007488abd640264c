"""How a drafter chooses its tokens and when it stops; what it drafts with stays its own matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slipstream.engine.speculation.confidence import confidence, likeliest

Logits = NDArray[np.float32]


class DraftGuide:
    """Greedy: the likeliest token each time, to the longest draft the drafter allows.

    One guide serves one draft; a drafter that asks a model calls `choose` for each row of logits
    and `goes_on` after each token.
    """

    def choose(self, logits: Logits) -> tuple[int, float]:
        """A token and the drafter's confidence in it, its probability among the ten likeliest.

        `logits` has shape (n_vocab,) and is only valid during the call.
        """
        return likeliest(logits), confidence(logits)

    def goes_on(self, confidence: float) -> bool:
        """Whether to draft another token after one of this confidence."""
        return True
