"""Token ids to text, whole characters only."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from typing import Protocol


class PieceSource(Protocol):
    """What a detokenizer needs of a model."""

    def token_piece(self, token: int, *, special: bool) -> bytes:
        """The bytes the token adds to a text."""

    def token_text(self, token: int) -> str:
        """The token as the vocabulary spells it."""

    def is_control(self, token: int) -> bool:
        """Whether the token is a control token."""


class Pieces:
    """The bytes each token of one model adds to a text, looked up once per id.

    Control tokens add nothing, except those whose text is in `visible_controls`.
    """

    def __init__(self, source: PieceSource, visible_controls: Collection[str] = ()) -> None:
        self._source = source
        self._visible = frozenset(visible_controls)
        self._known: dict[int, bytes] = {}

    def __getitem__(self, token: int) -> bytes:
        piece = self._known.get(token)
        if piece is None:
            piece = self._known[token] = self._look_up(token)
        return piece

    def _look_up(self, token: int) -> bytes:
        if not self._source.is_control(token):
            return self._source.token_piece(token, special=True)
        if self._source.token_text(token) in self._visible:
            return self._source.token_piece(token, special=True)
        return b""


class Detokenizer:
    """Turns a stream of ids into text. A character split over tokens comes out once complete.

    Bytes that no UTF-8 text can contain become U+FFFD, one for each maximal part of a character
    (the Unicode standard's "substitution of maximal subparts", as Python's own decoder does).
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._whole = True  # no character is unfinished

    def feed(self, token: int) -> str:
        """The text that became complete with this token; may be empty."""
        piece = self._pieces[token]
        if self._whole and piece.isascii():
            return piece.decode("ascii")
        text = self._decoder.decode(piece)
        self._whole = not self._decoder.getstate()[0]
        return text

    def finish(self) -> str:
        """What an unfinished character leaves at the end: U+FFFD, or nothing."""
        return self._decoder.decode(b"", final=True)
