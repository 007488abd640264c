"""The sizes of a model's attention, from which its cost and its memory follow."""

from __future__ import annotations

from dataclasses import dataclass

_SCORE_BYTES = 4  # F32


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads, those of keys and values (0: none), floats in each, layers."""

    n_head: int
    n_head_kv: int
    head_size: int
    n_layer: int

    def score_bytes(self, n_ctx: int, n_batch: int) -> int:
        """Memory for the scores of a batch, which flash attention never holds at once."""
        return self.n_head * n_ctx * n_batch * _SCORE_BYTES
