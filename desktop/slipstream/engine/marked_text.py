"""Text that knows of each character whether it was drafted, and the pieces it is given out in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from slipstream.engine.events import TextKind, TextPiece


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with a byte for each character: 1 where it came from an accepted draft token."""

    text: str = ""
    accepted: bytes = b""

    def __add__(self, other: MarkedText) -> MarkedText:
        return MarkedText(self.text + other.text, self.accepted + other.accepted)

    def __getitem__(self, part: slice) -> MarkedText:
        return MarkedText(self.text[part], self.accepted[part])

    def pieces(self, kind: TextKind) -> list[TextPiece]:
        """The text as pieces of one kind, cut where drafted and other characters meet."""
        marks = self.accepted
        if marks and marks.count(marks[0]) == len(marks):
            return [TextPiece(kind, self.text, bool(marks[0]))]
        found, start = [], 0
        for accepted, run in groupby(self.accepted):
            end = start + sum(1 for _ in run)
            found.append(TextPiece(kind, self.text[start:end], bool(accepted)))
            start = end
        return found


def merged(pieces: Sequence[TextPiece]) -> tuple[TextPiece, ...]:
    """The same text with neighbours joined that differ in nothing but their words."""
    if len(pieces) < 2:
        return tuple(pieces)
    groups = groupby(pieces, key=lambda piece: (piece.kind, piece.accepted))
    return tuple(
        TextPiece(kind, "".join(piece.text for piece in group), accepted)
        for (kind, accepted), group in groups
    )
