"""The look: colours, spacing, type sizes and the style sheet made from them. Nothing else sets a colour."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

SPACE_XS, SPACE_S, SPACE_M, SPACE_L, SPACE_XL, SPACE_XXL = 4, 8, 12, 16, 24, 32
RADIUS_CONTROL, RADIUS_CARD = 6, 10
CONTROL_PX, READING_PX, CAPTION_PX, FIGURE_PX = 13, 15, 12, 28
MEASURE_CHARACTERS = 76  # width of the text column


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one scheme, as #RRGGBB."""

    page: str
    surface: str
    raised: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    good: str
    warn: str
    bad: str
    user_block: str
    code_block: str
    accepted_alpha: float  # opacity of the accent behind an accepted draft token


LIGHT = Tokens(
    page="#FBFBFA",
    surface="#FFFFFF",
    raised="#F2F2F0",
    border="#E2E1DD",
    text="#1C1C1A",
    muted="#64635F",
    accent="#0F766E",
    on_accent="#FFFFFF",
    good="#15803D",
    warn="#B45309",
    bad="#B42318",
    user_block="#EEF4F3",
    code_block="#F5F5F3",
    accepted_alpha=0.14,
)
DARK = Tokens(
    page="#161716",
    surface="#1D1F1E",
    raised="#262928",
    border="#363A38",
    text="#ECECE9",
    muted="#A2A39F",
    accent="#2DD4BF",
    on_accent="#06211E",
    good="#4ADE80",
    warn="#FBBF24",
    bad="#F87171",
    user_block="#1F2927",
    code_block="#1A1C1B",
    accepted_alpha=0.18,
)
