"""How long lines of text are broken, and what is left out where there is no room."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics, QTextLayout, QTextOption

SEPARATOR = " · "  # between facts on one line
_LONGEST_WORD = 5_000


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Between words, and within those that are longer than a line.

    Qt looks for the end of a word again at every line, so that pasting 5 MB without a space would
    stop the window for a quarter of an hour; where there is such a word, lines break anywhere.
    """
    if len(text) > _LONGEST_WORD and max(map(len, text.split()), default=0) > _LONGEST_WORD:
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere


def broken_lines(text: str, font: QFont, width: int, most: int) -> list[str]:
    """Plain text on at most `most` lines of `width` pixels; the last one is elided at its end."""
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    starts: list[int] = []
    layout.beginLayout()
    line = layout.createLine()
    while line.isValid() and len(starts) <= most:
        line.setLineWidth(width)
        starts.append(line.textStart())
        line = layout.createLine()
    layout.endLayout()
    ends = [*starts[1:], len(text)]
    broken = [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]
    if len(broken) > most:
        rest = text[starts[most - 1] :]
        shown = QFontMetrics(font).elidedText(rest, Qt.TextElideMode.ElideRight, width)
        broken = [*broken[: most - 1], shown]
    return broken


def fitting_facts(facts: str, metrics: QFontMetrics, width: int) -> str:
    """As many of the facts, which “ · ” sets apart, as there is room for; the first is elided."""
    parts = facts.split(SEPARATOR)
    while len(parts) > 1 and metrics.horizontalAdvance(SEPARATOR.join(parts)) > width:
        parts.pop()
    return metrics.elidedText(SEPARATOR.join(parts), Qt.TextElideMode.ElideRight, width)
