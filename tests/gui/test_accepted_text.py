"""Accepted draft tokens are coloured exactly: in these texts just the capitals were drafted."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    Message,
    Role,
    Spans,
)
from slipstream.engine.events import TextKind, TextPiece
from slipstream.ui.live_answer import LiveAnswer
from slipstream.ui.theme import DARK, LIGHT, Tokens, contrast_ratio
from slipstream.ui.transcript.accepted import AcceptedText
from slipstream.ui.transcript.blocks import GrowingText, split_markdown
from slipstream.ui.transcript.document import build_document
from slipstream.ui.transcript.style import ReadingStyle
from slipstream.ui.transcript.view import TranscriptView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = {
    "plain": "one TWO three\nFOUR five",
    "hard break": "one TWO  \nthree FOUR",
    "emphasis": "a **bOLd** and *IT* and ***Both* x** ~~gONE~~ *lEFT",
    "code": "run `cODE X` or `` ` B `` or `unCLOSED",
    "escapes": r"a \* B \_c\_ D &amp; E &copy; f",
    "link": "see [thE TEXT](http://CAPITALS.example/c) for C and c",
    "autolink": "<http://x.example/Y> Z y",
    "heading": "## heADING ##\n\ntEXT",
    "setext": "heADING\n===\n\ntEXT",
    "list": "- one TWO\n- 1 X 1. 1\n  - deep IN\n    more OUT\n\n1. 1A\n2. B",
    "quote": "> sAID\n> > sAID again\n\nlast WORD",
    "table": "| a | A | a |\n|---|:-:|--:|\n| x | X\\|x | `aB` |\n| A | a | A",
    "fence": "```py\ndEF f():\n    rETURN 1\n```\nAFTER",
    "fence in list": "- item X\n  ```\n  cODE\n    Y\n  ```\n- more Z",
    "indented": "text\n\n    cODE\n    more X\n\nend Y",
    "tilde fence": "  ~~~\n  dEEP\n  ~~~\nX",
    "returns": "one TWO\r\nthree FOUR\r\n\r\n- FIVE\r\n",
    "reference": "[thE][r] X\n\n[r]: http://CAPITALS.example",
    "picture": "an ![ALT](x.png) image X",
    "wide": "漢字 KANJI 👩‍👩‍👧 X é É y",
}


def spans_of(text: str) -> Spans:
    """The capitals of a text, neighbours together."""
    spans: list[tuple[int, int]] = []
    for index, character in enumerate(text):
        if is_capital(character):
            if spans and spans[-1][1] == index:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
    return tuple(spans)


def is_capital(character: str) -> bool:
    return character.isupper()


def coloured(document: QTextDocument, style: ReadingStyle) -> list[tuple[str, bool]]:
    """Each letter of the document and whether it stands on the colour of accepted tokens."""
    found = []
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            ground = fragment.charFormat().background()
            is_marked = ground.color() == style.accepted and ground.style().value != 0
            found += [(letter, is_marked) for letter in fragment.text() if letter.isalpha()]
            iterator += 1
        block = block.next()
    return found


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("streamed", [False, True])
def test_just_the_accepted_characters_are_coloured(qapp: object, name: str, streamed: bool) -> None:
    text = TEXTS[name]
    style = ReadingStyle(LIGHT, shows_accepted=True)
    references: dict[str, object] = {}
    if streamed:
        growing, accepted = GrowingText(), AcceptedText()
        chance = random.Random(name)
        at = 0
        while at < len(text):
            end = min(len(text), at + chance.randint(1, 4))
            growing.append(text[at:end])
            for character in text[at:end]:
                accepted.append(character, accepted=is_capital(character))
            at = end
        blocks = [*growing.finished_blocks(), *growing.open_blocks()]
        references = growing.references
    else:
        blocks = split_markdown(text, references)
        accepted = AcceptedText.of(text, spans_of(text))
    letters = [
        letter
        for block in blocks
        for letter in coloured(
            build_document(block, references, style, accepted=accepted.marks_of(block)), style
        )
    ]
    if name == "picture":  # its words stand in for what is not shown
        letters = [(letter, mark) for letter, mark in letters if letter not in "ALTpicture"]
    assert letters
    assert any(mark for _, mark in letters)
    assert [(letter, mark) for letter, mark in letters if mark != is_capital(letter)] == []


def test_nothing_is_coloured_where_nothing_was_accepted(qapp: object) -> None:
    style = ReadingStyle(LIGHT, shows_accepted=True)
    (block,) = split_markdown("ONE two", {})
    assert AcceptedText.of("ONE two", ()).marks_of(block) == ()
    assert not any(mark for _, mark in coloured(build_document(block, {}, style), style))


@pytest.mark.parametrize("tokens", [LIGHT, DARK])
def test_coloured_words_are_readable(tokens: Tokens) -> None:
    style = ReadingStyle(tokens)
    ground = style.accepted.name()
    for words in (tokens.text, tokens.muted, style.accepted_link.name()):
        assert contrast_ratio(words, ground) >= 4.5
    assert contrast_ratio(ground, tokens.page) >= 1.1
    assert contrast_ratio(ground, tokens.code_block) >= 1.1


def message_of(answer: LiveAnswer) -> Message:
    from slipstream.engine.events import Finished

    return answer.message(Finished(FinishReason.EOG, 1, GenerationStatistics()), "")


def test_an_answer_keeps_where_it_was_drafted() -> None:
    question = Message("q", Role.USER, "?", NOW)
    answer = LiveAnswer("c", question, "a", "Tiny", "/m.gguf", {}, NOW)
    answer.add([TextPiece(TextKind.REASONING, "wHY", True), TextPiece(TextKind.ANSWER, "so ")])
    answer.add([TextPiece(TextKind.ANSWER, "IT ", True), TextPiece(TextKind.ANSWER, "IS", True)])
    answer.add([TextPiece(TextKind.ANSWER, " done")])
    record = message_of(answer).answer
    assert record is not None
    assert record.accepted_reasoning == ((0, 3),)
    assert record.accepted_text == ((3, 8),)


def test_the_view_colours_on_demand_and_keeps_its_place(qtbot: QtBot) -> None:
    text = "\n\n".join(f"paragraph {number} DRAFTED" for number in range(60))
    record = AnswerRecord("Tiny", "/m", FinishReason.EOG, 1, GenerationStatistics())
    from dataclasses import replace

    message = Message(
        "a", Role.ASSISTANT, text, NOW, "", replace(record, accepted_text=spans_of(text))
    )
    view = TranscriptView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    view.set_conversation([message])
    view.verticalScrollBar().setValue(300)
    plain = view.viewport().grab().toImage()
    view.show_accepted(True)
    assert view.verticalScrollBar().value() == 300
    shown = view.viewport().grab().toImage()
    assert shown != plain
    view.show_accepted(False)
    assert view.viewport().grab().toImage() == plain
