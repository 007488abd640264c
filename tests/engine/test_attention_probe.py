"""Attention is really computed, and its cost depends on what there is to compute."""

from __future__ import annotations

import pytest

from slipstream.engine import processor_share
from slipstream.engine.attention_probe import AttentionSeconds, measure_attention
from slipstream.engine.attention_shape import AttentionShape

SMALL = AttentionShape(n_head=4, n_head_kv=2, head_size=64, n_layer=2)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else the machine does must not matter here."""
    monkeypatch.setattr(processor_share, "_UNDISTURBED", 0.0)


def measured(shape: AttentionShape) -> AttentionSeconds:
    seconds = measure_attention(shape, 1)
    assert seconds is not None
    return seconds


def test_beside_a_busy_program_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_share, "_UNDISTURBED", 1e9)
    assert measure_attention(SMALL, 1) is None


def test_both_kinds_are_measured() -> None:
    seconds = measured(SMALL)
    assert 0 < seconds.flash < 1
    assert 0 < seconds.plain < 1


def test_more_heads_and_layers_take_longer() -> None:
    large = AttentionShape(n_head=32, n_head_kv=8, head_size=128, n_layer=8)
    small_seconds, large_seconds = measured(SMALL), measured(large)
    # 64 times the work; a factor of 4 leaves room for any noise
    assert large_seconds.flash > 4 * small_seconds.flash
    assert large_seconds.plain > 4 * small_seconds.plain


def test_layers_that_do_not_fit_in_memory_are_extrapolated() -> None:
    huge = AttentionShape(n_head=64, n_head_kv=64, head_size=128, n_layer=200)
    assert measured(huge).flash > 0


@pytest.mark.parametrize(
    "shape",
    [
        AttentionShape(n_head=4, n_head_kv=0, head_size=64, n_layer=2),  # recurrent
        AttentionShape(n_head=4, n_head_kv=3, head_size=64, n_layer=2),
        AttentionShape(n_head=4, n_head_kv=2, head_size=0, n_layer=2),
        AttentionShape(n_head=4, n_head_kv=2, head_size=64, n_layer=0),
    ],
)
def test_other_shapes_are_not_measured(shape: AttentionShape) -> None:
    assert measure_attention(shape, 1) is None


def test_scores_take_a_float_for_each_head_row_and_token() -> None:
    assert SMALL.score_bytes(1024, 512) == 4 * 1024 * 512 * 4


def test_many_threads_and_large_heads_fit_into_the_memory_that_is_set_aside() -> None:
    """llama.cpp would write past it: the process died at the fifteenth computation."""
    large = AttentionShape(n_head=4, n_head_kv=4, head_size=256, n_layer=1)
    assert measure_attention(large, 24) is not None
