"""How long lines of text are broken."""

from __future__ import annotations

from PySide6.QtGui import QTextOption

_LONGEST_WORD = 5_000


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Between words, and within those that are longer than a line.

    Qt looks for the end of a word again at every line, so that pasting 5 MB without a space would
    stop the window for a quarter of an hour; where there is such a word, lines break anywhere.
    """
    if len(text) > _LONGEST_WORD and max(map(len, text.split()), default=0) > _LONGEST_WORD:
        return QTextOption.WrapMode.WrapAnywhere
    return QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
