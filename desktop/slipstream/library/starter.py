"""Finds the starter model that comes with the app."""

from __future__ import annotations

import sys
from pathlib import Path

STARTER_FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def resources_folder() -> Path:
    """`resources/` of the frozen app, else of the source checkout around this package."""
    unpacked = getattr(sys, "_MEIPASS", None)
    root = Path(unpacked) if isinstance(unpacked, str) else Path(__file__).resolve().parents[3]
    return root / "resources"


def starter_model_path() -> Path | None:
    """The starter model's file, or None where it was not bundled or fetched."""
    path = resources_folder() / "models" / STARTER_FILE_NAME
    return path if path.is_file() else None
