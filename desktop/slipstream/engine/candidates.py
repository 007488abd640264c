"""Rows of logits in the form the native samplers take, and what a chain of them leaves of a row.

Knows no settings and no speculation.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slipstream.engine.llama import lib
from slipstream.errors import EngineError

Logits = NDArray[np.float32]

_LAYOUT = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The tokens that may come next, in no particular order.

    `ids` and `probabilities` have shape (n,); every probability is above 0 and they sum to 1.
    """

    ids: NDArray[np.int32]
    probabilities: NDArray[np.float64]

    @classmethod
    def weighted(cls, ids: NDArray[np.int32], weights: NDArray[np.float64]) -> Distribution:
        """In proportion to these weights, of which at least one must be above 0."""
        drawable = weights > 0
        if not drawable.all():
            ids, weights = ids[drawable], weights[drawable]
        return cls(ids, weights / weights.sum())

    def of(self, token: int) -> float:
        """The token's probability, 0 where it cannot come next."""
        index = int((self.ids == token).argmax())
        return float(self.probabilities[index]) if self.ids[index] == token else 0.0

    def likeliest(self) -> tuple[int, float]:
        """The likeliest token and its probability."""
        index = self.probabilities.argmax()
        return int(self.ids[index]), float(self.probabilities[index])

    def draw(self, chance: float) -> int:
        """The token that a number drawn evenly from [0, 1) stands for."""
        index = int(self.probabilities.cumsum().searchsorted(chance, side="right"))
        return int(self.ids[min(index, len(self.ids) - 1)])


class Candidates:
    """A reusable array of all ids of a vocabulary with their logits."""

    def __init__(self, n_vocab: int) -> None:
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._data = np.zeros(n_vocab, dtype=_LAYOUT)
        pointer = self._data.ctypes.data_as(ctypes.POINTER(lib.llama_token_data))
        self._native = lib.llama_token_data_array(data=pointer)
        self._pointer = pointer
        self._address = self._data.ctypes.data

    def load(self, logits: Logits) -> Any:
        """The native array over a row, valid until the next call.

        `logits` has shape (n,); ids the vocabulary does not have are left out, as a draft model
        may know more tokens than its target.
        """
        count = min(len(logits), len(self._data))
        self._data["id"] = self._ids
        self._data["logit"][:count] = logits[:count]
        native = self._native
        native.data, native.size, native.selected, native.sorted = self._pointer, count, -1, False
        return native

    def distribution(self, chain: Any, logits: Logits) -> Distribution:
        """What a native chain without a draw at its end leaves of a row, which it sees once.

        Computed from the logits: the probabilities in the array are those of the last sampler that
        needed some, which need not be the last one. Raises `EngineError` for logits that are no
        numbers.
        """
        native = self.load(logits)
        lib.llama_sampler_apply(chain, ctypes.byref(native))
        # XTC takes tokens off the front by moving the pointer
        start = (ctypes.addressof(native.data.contents) - self._address) // _LAYOUT.itemsize
        left = self._data[start : start + native.size]
        scores = left["logit"].astype(np.float64)
        best = scores.max()
        if not np.isfinite(best):
            raise EngineError("The model's output is not a number.", f"Its best score is {best}.")
        return Distribution.weighted(left["id"].copy(), np.exp(scores - best))
