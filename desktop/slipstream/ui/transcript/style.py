"""Fonts and colours of the transcript in the scheme in force, computed once per theme change."""

from __future__ import annotations

from PySide6.QtGui import QColor, QFont

from slipstream.ui.theme import (
    CAPTION_PX,
    LINE_HEIGHT,
    READING_PX,
    Tokens,
    interface_font,
    mix,
    monospace_font,
    reading_width,
    tabular_font,
)


class ReadingStyle:
    """What drawing a conversation needs to know about the look."""

    def __init__(
        self, tokens: Tokens, reading_px: int = READING_PX, *, shows_accepted: bool = False
    ) -> None:
        self.tokens = tokens
        self.shows_accepted = shows_accepted  # whether accepted draft tokens are coloured
        self.reading_px = reading_px
        self.body_font = interface_font(reading_px)
        caption_px = round(reading_px * CAPTION_PX / READING_PX)
        self.caption_font = tabular_font(caption_px)
        self.label_font = interface_font(caption_px)
        self.label_font.setWeight(QFont.Weight.DemiBold)
        self.code_font = monospace_font(round(reading_px * 0.88))
        self.line_height = round(reading_px * LINE_HEIGHT)
        self.code_line_height = round(reading_px * 0.88 * 1.5)
        self.text = QColor(tokens.text)
        self.muted = QColor(tokens.muted)
        self.accent = QColor(tokens.accent)
        self.border = QColor(tokens.border)
        self.page = QColor(tokens.page)
        self.user_block = QColor(tokens.user_block)
        self.code_block = QColor(tokens.code_block)
        self.inline_code = QColor(mix(tokens.text, tokens.page, 0.07))
        self.accepted = QColor(mix(tokens.accent, tokens.page, tokens.accepted_alpha))
        self.accepted_link = QColor(mix(tokens.text, tokens.accent, 0.15))  # readable on that
        self.selection = QColor(mix(tokens.accent, tokens.page, 0.26))
        self.heading_px = {1: reading_px + 7, 2: reading_px + 4, 3: reading_px + 2}

    def measure(self) -> int:
        """Width in pixels of the text column."""
        return reading_width(self.reading_px)
