from __future__ import annotations

import pytest

from slipstream.engine.detokenizer import Detokenizer, Pieces


class Vocabulary:
    """Every token's piece is the bytes given; a negative id is a control token."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.looked_up: list[int] = []

    def token_piece(self, token: int, *, special: bool) -> bytes:
        self.looked_up.append(token)
        return self._pieces[token] if special or not self.is_control(token) else b""

    def token_text(self, token: int) -> str:
        return self._pieces[token].decode()

    def is_control(self, token: int) -> bool:
        return self._pieces[token].startswith(b"<|")


def decode(*pieces: bytes) -> list[str]:
    detokenizer = Detokenizer(Pieces(Vocabulary(*pieces)))
    return [detokenizer.feed(token) for token in range(len(pieces))] + [detokenizer.finish()]


def test_a_character_split_over_tokens_comes_out_whole() -> None:
    assert decode(b"\xf0\x9f", b"\x98", b"\x80!") == ["", "", "😀!", ""]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ((b"a\xffb",), "a�b"),
        ((b"\xe2\x82", b"x"), "�x"),  # an unfinished character is one fault
        ((b"\xc3",), "�"),  # and nothing is lost at the end
        ((b"\x80\x80",), "��"),
        ((b"\xed\xa0\x80",), "���"),  # a surrogate
    ],
)
def test_invalid_bytes_become_replacement_characters(pieces: tuple[bytes, ...], text: str) -> None:
    assert "".join(decode(*pieces)) == text


def test_control_tokens_are_silent_unless_they_are_wanted() -> None:
    vocabulary = Vocabulary(b"<|end|>", b"<|channel|>", b"text")
    hidden = Pieces(vocabulary)
    shown = Pieces(vocabulary, {"<|channel|>"})
    assert [hidden[0], hidden[1], hidden[2]] == [b"", b"", b"text"]
    assert [shown[0], shown[1], shown[2]] == [b"", b"<|channel|>", b"text"]


def test_a_piece_is_looked_up_once() -> None:
    vocabulary = Vocabulary(b"a")
    pieces = Pieces(vocabulary)
    assert pieces[0] + pieces[0] == b"aa"
    assert vocabulary.looked_up == [0]
