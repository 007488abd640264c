"""A batch whose rows carry hidden states, with or without a token beside each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slipstream.engine.llama import lib

Rows = NDArray[np.float32]


class HiddenBatch:
    """A reusable batch of up to `capacity` states of `width` floats, of sequence 0.

    `llama_decode` takes token and state of a row together when both arrays are there
    (llama.cpp, src/llama-batch.cpp); the encoder takes states alone.
    """

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity = capacity
        self._tokens = (lib.llama_token * capacity)()
        self._floats = (ctypes.c_float * (capacity * width))()
        self._states: Rows = np.ctypeslib.as_array(self._floats).reshape(capacity, width)
        self._positions = (lib.llama_pos * capacity)()
        self._outputs = (ctypes.c_int8 * capacity)()
        self._sequence = (lib.llama_seq_id * 1)(0)
        self._sequences = (ctypes.POINTER(lib.llama_seq_id) * capacity)(
            *[self._sequence] * capacity
        )
        self._sequence_counts = (ctypes.c_int32 * capacity)(*[1] * capacity)
        self.native = lib.llama_batch(
            n_tokens=0,
            token=self._tokens,
            embd=self._floats,
            pos=self._positions,
            n_seq_id=self._sequence_counts,
            seq_id=self._sequences,
            logits=self._outputs,
        )

    def fill(
        self, tokens: Sequence[int], states: Rows, first_position: int, *, outputs: int
    ) -> None:
        """Hold pairs at consecutive positions; logits for the last `outputs` rows.

        `states` has shape (len(tokens), width). For EAGLE-3 that must be none or all of them: its
        decoder returns its rows from the first one on.
        """
        count = len(tokens)
        assert 0 < count <= self.capacity
        self._tokens[:count] = list(tokens)
        self._states[:count] = states
        self._positions[:count] = list(range(first_position, first_position + count))
        silent = count - outputs
        self._outputs[:count] = [0] * silent + [1] * outputs  # type: ignore[assignment]
        self.native.token = self._tokens
        self.native.pos = self._positions
        self.native.n_tokens = count

    def fill_states(self, states: Rows) -> None:
        """Hold states alone, shape (rows, width), for an encoder, which knows no positions."""
        count = len(states)
        assert 0 < count <= self.capacity
        self._states[:count] = states
        self._outputs[:count] = [1] * count
        self.native.token = None
        self.native.pos = None  # llama.cpp counts on from its memory, as its check demands
        self.native.n_tokens = count
