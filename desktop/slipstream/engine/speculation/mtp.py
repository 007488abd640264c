"""Drafts with the multi-token prediction (MTP, NextN) heads a model was trained with.

DeepSeek-V3, https://arxiv.org/abs/2412.19437, section 2.2; the order of things is that of
llama.cpp's `common_speculative_impl_draft_mtp` (common/speculative.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slipstream.engine.gguf import Header
from slipstream.engine.llama import Context, ContextSettings, Model, symbols
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.head_drafter import HeadDrafter, check_rollback
from slipstream.engine.speculation.hidden_batch import HiddenBatch
from slipstream.engine.speculation.hidden_states import (
    LAST,
    Rows,
    give_out,
    keep_back,
    output_state,
    states,
)
from slipstream.engine.speculation.mtp_compatibility import mtp_obstacle
from slipstream.errors import DraftMisfit


def check_mtp(heads: Header, target: Header) -> None:
    """Raise `DraftMisfit` for heads that cannot draft for this target.

    Both are the same header where the heads are inside the target's file.
    """
    obstacle = mtp_obstacle(heads, target)
    if obstacle is not None:
        raise DraftMisfit(
            "The MTP heads cannot draft for this model.",
            obstacle,
            "Choose heads made for this model, or use prompt lookup.",
        )


class MtpDrafter(HeadDrafter):
    """Owns the heads' context, and their model if told so; the target must outlive it.

    With one head each step feeds it its own state. Chained heads draft one token each: head i
    evaluates the draft so far in its own layer, whose cache no other head fills. Raises
    `DraftMisfit` where heads and target do not fit, or the target could not take back a draft.
    """

    # nothing is evaluated along with a draft's first pair: it would need logits too, since where
    # only the last of several rows has them, some architectures give out the first one's state
    _lag = 0

    def __init__(
        self,
        model: Model,
        target: Context,
        settings: DraftSettings,
        *,
        n_threads: int,
        n_threads_batch: int = 0,
        owns_model: bool,
    ) -> None:
        check_mtp(model.parts.whole, target.model.parts.whole)
        check_rollback(target)
        self._owns_model = owns_model
        self._heads = model.n_layer_nextn
        context = Context(
            model,
            ContextSettings(
                n_ctx=target.n_ctx,
                n_batch=target.n_batch,
                n_threads=n_threads,
                n_threads_batch=n_threads_batch,
                flash_attention=target.flash_attention,
            ),
            target.abort,
            mtp=True,
            other=target,
            n_outputs_max=1,
        )
        try:
            width = model.n_embd_out
            super().__init__(
                model, context, HiddenBatch(context.n_batch, width), target, settings, width
            )
            give_out(context, LAST, outputs_only=True)
            give_out(target, LAST)
        except BaseException:
            context.close()
            raise

    @property
    def kind(self) -> DrafterKind:
        """MTP heads."""
        return DrafterKind.MTP

    def _given_out(self, count: int) -> Rows:
        """The target's own last states, shape (count, n_embd_out)."""
        return states(self._target, LAST, count, self._width)

    def _longest(self) -> int:
        longest = super()._longest()
        return min(longest, self._heads) if self._heads > 1 else longest

    def _evaluate(self, tokens: Sequence[int], states: Rows, position: int) -> None:
        self._batch.fill(tokens, states, position, outputs=0)
        try:
            for head in range(self._heads):
                self._use_head(head, position)
                self._context.decode(self._batch)
        finally:
            self._use_first_head()

    def _propose(self, pending: int, wanted: int, guide: DraftGuide) -> list[tuple[int, float]]:
        if self._heads == 1:
            return super()._propose(pending, wanted, guide)
        self._catch_up()
        known = len(self._tokens)
        state = self._states.after(known - 1)
        assert state is not None
        drafted: list[tuple[int, float]] = []
        states = state[np.newaxis]
        try:
            for head in range(wanted):
                self._use_head(head, known)
                tokens = [pending, *(token for token, _ in drafted)]
                self._batch.fill(tokens, states, known, outputs=1)
                self._context.decode(self._batch)
                following = self._next_token(len(tokens) - 1, guide)
                if following is None:
                    break
                drafted.append(following)
                if not guide.goes_on(following[1]):
                    break
                latest = output_state(self._context, len(tokens) - 1, self._width)
                states = np.vstack([states, latest])
        finally:
            self._use_first_head()
        self._trim(known)  # only some of the layers hold the pending token's pair
        return drafted

    def _use_head(self, head: int, position: int) -> None:
        """Compute with this head's layer from `position` on, in the same cells as the others."""
        if self._heads > 1:
            if head:
                self._trim_cells(position)
            symbols["llama_set_nextn_layer_offset"](self._context.handle, head)

    def _use_first_head(self) -> None:
        if self._heads > 1:
            symbols["llama_set_nextn_layer_offset"](self._context.handle, 0)

    def close(self) -> None:
        """Let the target keep its states to itself again; free the context, then an own model."""
        if self._context.is_open and self._target.is_open:
            keep_back(self._target, LAST)
        self._context.close()
        if self._owns_model:
            self._model.close()
