"""Which characters of an answer came from the draft, through every stage that holds text back."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.engine.answer_text import AnswerText
from slipstream.engine.detokenizer import Pieces
from slipstream.engine.events import TextKind, TextPiece
from slipstream.engine.marked_text import MarkedText, merged
from slipstream.engine.reasoning import DEFAULT, ReasoningSplitter


class Spelled:
    """A vocabulary whose tokens are the given byte strings."""

    def __init__(self, *tokens: bytes) -> None:
        self._tokens = tokens

    def token_piece(self, token: int, *, special: bool) -> bytes:
        return self._tokens[token]

    def token_text(self, token: int) -> str:
        return ""

    def is_control(self, token: int) -> bool:
        return False


def written(
    tokens: list[tuple[bytes, bool]], stops: tuple[str, ...] = (), *, reasons: bool = False
) -> tuple[TextPiece, ...]:
    text = AnswerText(
        Pieces(Spelled(*(spelling for spelling, _ in tokens))),
        stops,
        (),
        DEFAULT if reasons else None,
    )
    pieces: list[TextPiece] = []
    for token, (_, accepted) in enumerate(tokens):
        pieces += text.feed(token, accepted=accepted)
        if text.ended:
            break
    return merged([*pieces, *text.finish()])


def test_a_piece_ends_where_drafted_and_sampled_tokens_meet() -> None:
    pieces = written([(b"one", False), (b" two", True), (b" three", True), (b" four", False)])
    assert pieces == (
        TextPiece(TextKind.ANSWER, "one"),
        TextPiece(TextKind.ANSWER, " two three", accepted=True),
        TextPiece(TextKind.ANSWER, " four"),
    )


def test_a_character_of_several_tokens_is_the_last_ones() -> None:
    assert written([(b"\xc3", True), (b"\xa9", False)]) == (TextPiece(TextKind.ANSWER, "é"),)
    assert written([(b"\xc3", False), (b"\xa9", True)]) == (
        TextPiece(TextKind.ANSWER, "é", accepted=True),
    )


def test_text_held_back_for_a_stop_string_keeps_its_marks() -> None:
    pieces = written([(b"a E", True), (b"N", False), (b"d", True)], ("END",))
    assert pieces == (
        TextPiece(TextKind.ANSWER, "a E", accepted=True),
        TextPiece(TextKind.ANSWER, "N"),
        TextPiece(TextKind.ANSWER, "d", accepted=True),
    )


def test_a_stop_string_takes_its_marks_with_it() -> None:
    assert written([(b"a ", False), (b"EN", True), (b"D", True)], ("END",)) == (
        TextPiece(TextKind.ANSWER, "a "),
    )


def test_tags_leave_no_marks_behind() -> None:
    pieces = written(
        [(b"<thi", True), (b"nk>\n", False), (b"why", True), (b"\n</think>", True), (b"so", False)],
        reasons=True,
    )
    assert pieces == (
        TextPiece(TextKind.REASONING, "why", accepted=True),
        TextPiece(TextKind.ANSWER, "so"),
    )


@pytest.mark.parametrize("reasons", [False, True])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_marks_stay_with_their_characters(reasons: bool, data: st.DataObject) -> None:
    """Drafted tokens are spelled in capitals here, so that every character tells its mark."""
    parts = data.draw(
        st.lists(
            st.one_of(
                st.text(string.ascii_uppercase, min_size=1, max_size=4),
                st.text(string.ascii_lowercase, min_size=1, max_size=4),
                st.sampled_from(["<think>", "</think>", "<thi", "nk>", "</", "\n", " "]),
            ),
            max_size=12,
        )
    )
    pieces = written([(part.encode(), part.isupper()) for part in parts], reasons=reasons)
    for piece in pieces:
        letters = "".join(filter(str.isalpha, piece.text))
        if "think" not in piece.text and letters:
            assert piece.accepted == letters.isupper()
    if not reasons:
        assert "".join(piece.text for piece in pieces) == "".join(parts)


def test_a_long_text_at_once_loses_nothing() -> None:
    text = "word " * 50_000
    splitter = ReasoningSplitter(DEFAULT)
    pieces = [*splitter.feed(text, bytes(len(text))), *splitter.finish()]
    assert "".join(piece.text for piece in pieces) == text


def test_marked_text_is_cut_at_every_change() -> None:
    marked = MarkedText("abcd", bytes([1, 1, 0, 1]))
    assert marked[1:].pieces(TextKind.ANSWER) == [
        TextPiece(TextKind.ANSWER, "b", accepted=True),
        TextPiece(TextKind.ANSWER, "c"),
        TextPiece(TextKind.ANSWER, "d", accepted=True),
    ]
