"""What the app remembers between starts, as plain values; `storage` reads and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_THREADS = 512
"""llama.cpp computes with no more: GGML_MAX_N_THREADS."""


SMALLEST_TEXT, LARGEST_TEXT = 11, 32
"""Sizes the text of conversations can have, in pixels."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """Remembered choices. Paths are absolute; `sampler` holds `SamplerSettings` fields by name,
    `drafts` a table for each target's path with `DraftSettings` fields and the draft's `key`."""

    last_model: str = ""
    recent_models: tuple[str, ...] = ()  # newest first
    n_ctx: int = 0  # context size in tokens, 0 = chosen by the app
    n_threads: int = 0  # for one token at a time, 0 = as measured
    n_threads_batch: int = 0  # for several at once, 0 = as many, or as measured
    theme: str = "system"  # system, light or dark
    reading_px: int = 15  # size of the text of conversations, in pixels
    system_prompt: str = ""
    sampler: Mapping[str, object] = field(default_factory=dict)
    template_variables: Mapping[str, object] = field(default_factory=dict)
    drafts: Mapping[str, object] = field(default_factory=dict)  # by target: key, depth, p_min
    recent_drafts: tuple[str, ...] = ()  # newest first
    shows_accepted: bool = False  # whether accepted draft tokens are coloured in answers
    last_chat: str = ""
    window_geometry: str = ""  # base64 of QWidget.saveGeometry
    window_layout: str = ""  # base64 of QSplitter.saveState
