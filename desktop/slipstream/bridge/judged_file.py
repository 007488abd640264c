"""A file as the engine's thread judged it: may it draft, and what does it say of itself."""

from __future__ import annotations

from dataclasses import dataclass

from slipstream.engine.requests import DraftJudgement
from slipstream.library.model_file import ModelFile


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """`model` is None for a file that cannot be read."""

    judgement: DraftJudgement
    model: ModelFile | None
