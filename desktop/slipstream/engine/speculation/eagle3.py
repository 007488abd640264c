"""Drafts with an EAGLE-3 head, which reads the states of three of the target's layers.

Li et al., https://arxiv.org/abs/2503.01840; the order of things is that of llama.cpp's
`common_speculative_impl_draft_eagle3` (common/speculative.cpp).
"""

from __future__ import annotations

import numpy as np

from slipstream.engine.gguf import Header
from slipstream.engine.llama import Context, ContextSettings, Model
from slipstream.engine.model_parts import ModelParts
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings
from slipstream.engine.speculation.eagle3_compatibility import eagle3_obstacle, target_layers
from slipstream.engine.speculation.head_drafter import HeadDrafter, check_rollback
from slipstream.engine.speculation.hidden_batch import HiddenBatch
from slipstream.engine.speculation.hidden_states import (
    LAST,
    Rows,
    give_out,
    keep_back,
    states,
)
from slipstream.errors import DraftMisfit

HEAD_BATCH = 64
"""Rows per pass of the head: each gets logits whether wanted or not, for up to 250,000 tokens."""


def check_eagle3(head: ModelParts, target: Header) -> None:
    """Raise `DraftMisfit` for a head that cannot draft for this target.

    llama.cpp would abort the process or read states that nobody has filled.
    """
    obstacle = eagle3_obstacle(head, target)
    if obstacle is not None:
        raise DraftMisfit(
            "This EAGLE-3 head cannot draft for this model.",
            obstacle,
            "Choose a head made for this model, or use prompt lookup.",
        )


class Eagle3Drafter(HeadDrafter):
    """Owns the head and its context; the target must outlive it.

    The encoder makes one state of the target's three; the decoder drafts from it, and then from
    its own. Raises `DraftMisfit` where the two do not fit.
    """

    _lag = 1  # the pair of a token stands where its state stood
    _joined = 8  # llama.cpp computes logits for all rows of this kind, wanted or not

    def __init__(
        self,
        head: Model,
        target: Context,
        settings: DraftSettings,
        *,
        n_threads: int,
        n_threads_batch: int = 0,
    ) -> None:
        check_eagle3(head.parts, target.model.parts.whole)
        check_rollback(target)
        layers = target_layers(head.parts.whole)
        assert layers is not None
        n_layer = target.model.n_layer
        self._layers = tuple(LAST if layer == n_layer else layer for layer in layers)
        context = Context(
            head,
            ContextSettings(
                n_ctx=target.n_ctx,
                n_batch=HEAD_BATCH,
                n_threads=n_threads,
                n_threads_batch=n_threads_batch,
                flash_attention=target.flash_attention,
            ),
            target.abort,
            other=target,
        )
        try:
            width = head.n_embd
            super().__init__(
                head, context, HiddenBatch(context.n_batch, width), target, settings, width
            )
            self._encoder_batch = HiddenBatch(
                context.n_ubatch, len(self._layers) * target.model.n_embd
            )
            give_out(context, LAST, outputs_only=True)
            give_out(target, *self._layers)
        except BaseException:
            context.close()
            raise

    @property
    def kind(self) -> DrafterKind:
        """An EAGLE-3 head."""
        return DrafterKind.EAGLE3

    def _given_out(self, count: int) -> Rows:
        """The states of three layers side by side, shape (count, 3 × width of the target)."""
        width = self._target.model.n_embd
        return np.hstack([states(self._target, layer, count, width) for layer in self._layers])

    def _read(self, given: Rows) -> Rows:
        """The encoder's states, shape (rows, width of the head)."""
        encoded = np.empty((len(given), self._width), dtype=np.float32)
        for start in range(0, len(given), self._encoder_batch.capacity):
            rows = given[start : start + self._encoder_batch.capacity]
            self._encoder_batch.fill_states(rows)
            self._context.encode(self._encoder_batch)
            encoded[start : start + len(rows)] = states(self._context, LAST, len(rows), self._width)
        return encoded

    def close(self) -> None:
        """Let the target keep its states to itself again; free the context, then the head."""
        if self._context.is_open and self._target.is_open:
            keep_back(self._target, *self._layers)
        self._context.close()
        self._model.close()
