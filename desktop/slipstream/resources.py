"""Finds files shipped beside the code: icons, styles, models. Knows nothing of their content."""

from __future__ import annotations

import sys
from pathlib import Path


def resource_path(*parts: str) -> Path:
    """The path of a shipped file, in a checkout and in a frozen build alike.

    A frozen build unpacks `resources/` beside the bundled modules (`sys._MEIPASS`); in a checkout
    it stands at the top of the repository. The path is not checked for existence.
    """
    bundle = getattr(sys, "_MEIPASS", None)
    base = Path(bundle) if bundle else Path(__file__).resolve().parents[2]
    return base.joinpath("resources", *parts)
