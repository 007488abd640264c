"""Reads hidden states out of llama.cpp contexts and remembers the latest of them."""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from slipstream.engine.llama import Context, symbols
from slipstream.errors import EngineError

Rows = NDArray[np.float32]


LAST = -1
"""Stands for the states after the last layer where a layer's number stands for those before it."""

_wanted: WeakKeyDictionary[Context, Counter[int]] = WeakKeyDictionary()


def give_out(context: Context, *layers: int, outputs_only: bool = False) -> None:
    """Let a context give out the states before these layers, or after all (`LAST`), of all rows.

    `outputs_only`: `LAST` of the rows with an output. A layer must exist and its architecture
    must fill its states, or llama.cpp aborts the process. Several drafters may ask for the same;
    during a change of drafters the old one is there until the new one is.
    """
    counts = _wanted.setdefault(context, Counter())
    for layer in layers:
        _set(context, layer, True, outputs_only)
        counts[layer] += 1


def keep_back(context: Context, *layers: int) -> None:
    """Undo one `give_out` of these layers."""
    counts = _wanted.setdefault(context, Counter())
    for layer in layers:
        counts[layer] -= 1
        if counts[layer] == 0:
            _set(context, layer, False, False)


def _set(context: Context, layer: int, wanted: bool, outputs_only: bool) -> None:
    if layer == LAST:
        symbols["llama_set_embeddings_nextn"](context.handle, wanted, outputs_only)
    else:
        symbols["llama_set_embeddings_layer_inp"](context.handle, layer, wanted)


def states(context: Context, layer: int, count: int, width: int) -> Rows:
    """A copy of the states of the latest decode, shape (count, width); `layer` may be `LAST`."""
    if not _wanted.get(context, Counter())[layer]:  # for a layer, llama.cpp would abort
        return _copied(None, count, width)
    if layer == LAST:
        pointer = symbols["llama_get_embeddings_nextn"](context.handle)
    else:
        pointer = symbols["llama_get_embeddings_layer_inp"](context.handle, layer)
    return _copied(pointer, count, width)


def output_state(context: Context, row: int, width: int) -> Rows:
    """A copy of the state of one output row of the latest decode, shape (width,)."""
    pointer = symbols["llama_get_embeddings_nextn_ith"](context.handle, row)
    copied: Rows = _copied(pointer, 1, width)[0]
    return copied


def _copied(pointer: Any, count: int, width: int) -> Rows:
    # the buffer holds the latest decode only and may move with the next
    if not pointer:
        raise EngineError(
            "llama.cpp gave out no hidden states.",
            "Drafting with the target's hidden states cannot go on.",
            "Choose another way of drafting.",
        )
    return np.ctypeslib.as_array(pointer, shape=(count, width)).copy()


class StateHistory:
    """The target's states after its latest tokens, by position, at most `capacity` of them."""

    def __init__(self, capacity: int, width: int) -> None:
        self._rows: Rows = np.zeros((capacity, width), dtype=np.float32)
        self._first = 0
        self._end = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return self._rows.nbytes

    def copy(self) -> StateHistory:
        """Another that holds the same."""
        other = StateHistory(*self._rows.shape)
        other._rows[:] = self._rows
        other._first, other._end = self._first, self._end
        return other

    def extend(self, first_position: int, states: Rows) -> None:
        """Hold these from `first_position` on, and nothing after them."""
        if first_position != self._end:
            self.truncate(first_position)
        if first_position != self._end:
            self._first = first_position
        self._end = first_position + len(states)
        self._first = max(self._first, self._end - len(self._rows))
        kept = range(max(first_position, self._first), self._end)
        self._rows[[position % len(self._rows) for position in kept]] = states[
            kept.start - first_position :
        ]

    def truncate(self, length: int) -> None:
        """Forget the states from position `length` on."""
        self._end = min(self._end, length)
        self._first = min(self._first, self._end)

    def after(self, position: int) -> Rows | None:
        """The state after the token at this position, shape (width,); None where it is gone."""
        if not self._first <= position < self._end:
            return None
        row: Rows = self._rows[position % len(self._rows)]
        return row
