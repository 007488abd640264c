"""The conversation on the page: what it shows, how it follows, and what it refuses to do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import (
    QDesktopServices,
    QTextCursor,
    QTextDocument,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    Message,
    Role,
)
from slipstream.engine.events import TextKind, TextPiece
from slipstream.ui.theme import DARK, LIGHT, apply_theme
from slipstream.ui.transcript.blocks import Block, split_markdown
from slipstream.ui.transcript.document import build_document
from slipstream.ui.transcript.heights import HeightIndex
from slipstream.ui.transcript.item import Entry, Place
from slipstream.ui.transcript.style import ReadingStyle
from slipstream.ui.transcript.view import TranscriptView, open_link
from slipstream.ui.transcript.wording import numbers_line, progress_words, thought_line

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATISTICS = GenerationStatistics(
    prompt_tokens=128,
    cached_prompt_tokens=97,
    generated_tokens=212,
    prefill_seconds=0.1,
    time_to_first_token_seconds=0.41,
    decode_seconds=5.05,
    reasoning_seconds=3.2,
    reasoning_tokens=84,
)
PLAIN = {0xA0: " ", 0x2060: ""}
MARKDOWN = (
    "# Title\n\nSome **bold** and `code`.\n\n- one\n- two\n  1. deep\n\n"
    "```python\nprint(1)\n```\n\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n> quote\n\n---\n\nend"
)


def user(text: str) -> Message:
    return Message(f"u{text[:5]}", Role.USER, text, NOW)


def record(reason: FinishReason = FinishReason.EOG, stop_string: str = "") -> AnswerRecord:
    return AnswerRecord("Tiny · Q4", "/m.gguf", reason, 1, STATISTICS, stop_string)


def answer(text: str, reasoning: str = "") -> Message:
    return Message("a", Role.ASSISTANT, text, NOW, reasoning, record())


def piece(text: str) -> list[TextPiece]:
    return [TextPiece(TextKind.ANSWER, text)]


def thought(text: str) -> list[TextPiece]:
    return [TextPiece(TextKind.REASONING, text)]


def document_of(markdown: str) -> QTextDocument:
    (block,) = split_markdown(markdown, {})
    return build_document(block, {}, ReadingStyle(LIGHT))


def entries(view: TranscriptView, message: int) -> list[Entry]:
    return view._items[message].entries(view._column, view._style)


def shown(view: TranscriptView, message: int) -> list[Block]:
    return [entry.row.block for entry in entries(view, message) if entry.row is not None]


def place_of(view: TranscriptView, message: int, place: Place) -> QPoint:
    """A point of the viewport inside the first such entry of a message."""
    entry = next(entry for entry in entries(view, message) if entry.place is place)
    top = view._heights.start(message) + entry.top + 24 - view.verticalScrollBar().value()
    return QPoint(view._column_left() + 30, top + entry.height // 2)


@pytest.fixture
def view(qapp: QApplication, qtbot: QtBot) -> Iterator[TranscriptView]:
    apply_theme(qapp, "light")
    widget = TranscriptView()
    qtbot.addWidget(widget)
    widget.resize(800, 500)
    widget.show()
    yield widget
    apply_theme(qapp, "light")


# ---- what it says ----


def test_plain_text_names_who_said_what(view: TranscriptView) -> None:
    system = Message("s", Role.SYSTEM, "Be brief.", NOW)
    view.set_conversation([system, user("Hi\nthere"), answer("**Hello**", "thinking")])
    assert view.plain_text() == "You\nHi\nthere\n\nTiny · Q4\n**Hello**"
    assert view.answer_text() == "**Hello**"
    assert view.answer_text(0) == "**Hello**"
    assert view.answer_text(1) == ""


def test_streaming_shows_text_and_finish_its_numbers(view: TranscriptView) -> None:
    view.append_user(user("Hi"))
    view.begin_answer("Tiny · Q4")
    view.set_progress(300, 512)
    assert view._items[-1].progress_words() == "Reading 300 of 512 tokens"
    for text in ("Hel", "lo **wor", "ld**"):
        view.append_run(piece(text))
    assert view.answer_text() == "Hello **world**"
    assert not any(entry.place is Place.PROGRESS for entry in entries(view, 1))
    view.finish(answer("Hello **world**"))
    assert view.plain_text() == "You\nHi\n\nTiny · Q4\nHello **world**"
    assert entries(view, 1)[-1].place is Place.FOOTER


@pytest.mark.parametrize("step", [1, 3, 17])
def test_streamed_answer_ends_as_if_shown_at_once(view: TranscriptView, step: int) -> None:
    view.begin_answer("Tiny · Q4")
    for start in range(0, len(MARKDOWN), step):
        view.append_run(piece(MARKDOWN[start : start + step]))
    streamed = shown(view, 0)
    view.finish(answer(MARKDOWN))
    finished = [(e.place, e.top, e.height) for e in entries(view, 0)]
    assert streamed == shown(view, 0)
    view.set_conversation([answer(MARKDOWN)])
    assert streamed == shown(view, 0)
    assert finished == [(e.place, e.top, e.height) for e in entries(view, 0)]


def test_links_defined_at_the_end_work_after_finishing(view: TranscriptView) -> None:
    text = "See [docs].\n\nMore.\n\n[docs]: https://example.org\n"
    view.begin_answer("Tiny")
    for character in text:
        view.append_run(piece(character))
    view.finish(answer(text))
    row = entries(view, 0)[1].row
    assert row is not None
    document = row.document(view._style, view._cache)
    cursor = QTextCursor(document)
    cursor.setPosition(6)
    assert cursor.charFormat().anchorHref() == "https://example.org"


def test_an_answer_that_failed_before_it_began(view: TranscriptView) -> None:
    view.append_user(user("Hi"))
    failed = Message("a", Role.ASSISTANT, "", NOW, "", record(FinishReason.ERROR))
    view.finish(failed)
    assert view._items[-1].footer_words().endswith("failed")
    view.begin_answer("Tiny")
    view.finish(failed)
    assert view.answer_text() == ""


def test_text_without_begin_is_not_lost(view: TranscriptView) -> None:
    view.append_run(piece("text"))
    assert view.plain_text() == "Assistant\ntext"


def test_clear_and_empty_state(view: TranscriptView) -> None:
    view.set_empty_state("Ready", "Ask something.")
    view.set_conversation([user("Hi")])
    view.clear()
    assert view.plain_text() == ""
    assert not view.grab().isNull()


def test_numbers_under_the_answer() -> None:
    words = numbers_line(record()).translate(PLAIN)
    assert words == (
        "41.8 tok/s · first token 0.4 s · prompt 310 tok/s (128 tokens, 97 cached)"
        " · 212 tokens · complete"
    )


def test_numbers_leave_out_what_is_unknown() -> None:
    short = AnswerRecord("m", "", FinishReason.CANCELLED, 1, GenerationStatistics())
    assert numbers_line(short).translate(PLAIN) == "0 tokens · stopped"
    cached = GenerationStatistics(prompt_tokens=5, cached_prompt_tokens=5, generated_tokens=1)
    line = numbers_line(AnswerRecord("m", "", FinishReason.LENGTH, 1, cached))
    assert line.translate(PLAIN) == "prompt 5 tokens, 5 cached · 1 token · token limit reached"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (FinishReason.EOG, "complete"),
        (FinishReason.STOP, "stop string “END↵”"),
        (FinishReason.LENGTH, "token limit reached"),
        (FinishReason.CONTEXT, "context full"),
        (FinishReason.CANCELLED, "stopped"),
        (FinishReason.ERROR, "failed"),
    ],
)
def test_every_reason_has_words(reason: FinishReason, words: str) -> None:
    line = numbers_line(record(reason, "END\n")).translate(PLAIN)
    assert line.endswith(f" · {words}")


def test_reasoning_header_words() -> None:
    assert thought_line(None, thinking=True) == "Thinking…"
    assert thought_line(None, thinking=False) == "Thought"
    assert thought_line(STATISTICS, thinking=False) == "Thought for 3 s · 84 tokens"
    assert progress_words(0, 0) == "Waiting for the model…"


# ---- reasoning ----


def test_reasoning_is_folded_until_clicked(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([user("Hi"), answer("Answer", "First.\n\nSecond.")])
    assert [block.source for block in shown(view, 1)] == ["Answer"]
    for expected in (["First.", "Second.", "Answer"], ["Answer"]):
        qtbot.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view, 1, Place.FOLD)
        )
        assert [block.source for block in shown(view, 1)] == expected


def test_reasoning_is_toggled_by_key(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([answer("Answer", "Thoughts")])
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert [block.source for block in shown(view, 0)] == ["Thoughts", "Answer"]


def test_reasoning_streams_live_when_open(view: TranscriptView, qtbot: QtBot) -> None:
    view.begin_answer("Tiny")
    view.append_run(thought("Let me "))
    assert view._items[0].fold_words() == "Thinking…"
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view, 0, Place.FOLD))
    view.append_run(thought("see."))
    assert [block.source for block in shown(view, 0)] == ["Let me see."]
    view.append_run([*thought(" Yes."), *piece("Hello")])
    assert view._items[0].fold_words() == "Thought"
    view.finish(answer("Hello", "Let me see. Yes."))
    assert view._items[0].fold_words() == "Thought for 3 s · 84 tokens"
    assert [block.source for block in shown(view, 0)] == ["Let me see. Yes.", "Hello"]
    assert view.answer_text() == "Hello"


def test_unfolding_keeps_the_header_in_place(view: TranscriptView, qtbot: QtBot) -> None:
    long = "\n\n".join(f"thought {number}" for number in range(60))
    view.set_conversation([user("Hi\n" * 30), answer("Answer", long)])
    before = place_of(view, 1, Place.FOLD)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=before)
    assert place_of(view, 1, Place.FOLD) == before
    assert not view.is_at_end()


# ---- following ----


def fill(view: TranscriptView, paragraphs: int = 60) -> None:
    view.set_conversation([user("Hi")])
    view.begin_answer("Tiny")
    view.append_run(piece("".join(f"Paragraph {number}.\n\n" for number in range(paragraphs))))


def test_the_end_is_followed(view: TranscriptView) -> None:
    fill(view)
    bar = view.verticalScrollBar()
    for _ in range(5):
        view.append_run(piece("more\n\n"))
        assert bar.value() == bar.maximum()
    assert view.is_at_end()
    assert not view._jump_button.isVisible()


def test_scrolling_up_lets_go_and_the_button_returns(view: TranscriptView, qtbot: QtBot) -> None:
    fill(view)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 200)
    assert not view.is_at_end()
    assert view._jump_button.isVisible()
    value = bar.value()
    view.append_run(piece("more\n\n" * 10))
    view.finish(answer(view.answer_text()))
    assert bar.value() == value
    qtbot.mouseClick(view._jump_button, Qt.MouseButton.LeftButton)
    assert view.is_at_end()
    assert bar.value() == bar.maximum()
    assert not view._jump_button.isVisible()


def test_scrolling_back_to_the_end_follows_again(view: TranscriptView) -> None:
    fill(view)
    bar = view.verticalScrollBar()
    with_signal: list[bool] = []
    view.end_reached_changed.connect(with_signal.append)
    bar.setValue(0)
    bar.setValue(bar.maximum())
    assert view.is_at_end()
    assert with_signal == [False, True]


def test_home_and_end_keys(view: TranscriptView, qtbot: QtBot) -> None:
    fill(view)
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.is_at_end()


def test_sending_goes_to_the_end(view: TranscriptView) -> None:
    fill(view)
    view.finish(answer(view.answer_text()))
    view.verticalScrollBar().setValue(0)
    view.append_user(user("Next"))
    assert view.is_at_end()


def test_what_is_read_stays_when_the_width_changes(view: TranscriptView, qtbot: QtBot) -> None:
    messages = [user("Words that wrap when it is narrow. " * 12) for _ in range(60)]
    view.set_conversation(messages)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    index, number, _ = view._anchor() or (0, 0, 0)
    view.resize(420, 500)
    assert (view._anchor() or (0, 0, 0))[:2] == (index, number)


def test_scrolling_up_through_guessed_heights_never_jumps(view: TranscriptView) -> None:
    """The row at the top of the view moves by what was scrolled, no more."""
    view.set_conversation(
        [answer(MARKDOWN + f"\n\n{n}\n\n" + "long text " * 50) for n in range(50)]
    )
    bar = view.verticalScrollBar()

    def top_row() -> tuple[int, int, int]:
        found = view._anchor()
        assert found is not None
        return found

    def where(anchor: tuple[int, int, int]) -> int:
        return view._anchored_value((anchor[0], anchor[1], 0)) - bar.value()

    for _ in range(150):
        anchor = top_row()
        before = where(anchor)
        scrolled = min(90, bar.value())
        bar.setValue(bar.value() - scrolled)
        assert where(anchor) - before == pytest.approx(scrolled, abs=1)


# ---- rendering ----


def test_emphasis_code_and_links() -> None:
    document = document_of("a **b** *c* ~~d~~ `e` [f](https://x.org)")
    assert document.toPlainText() == "a b c d e f"
    formats = {}
    iterator = document.begin().begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        formats[fragment.text().strip()] = fragment.charFormat()
        iterator += 1
    assert formats["b"].fontWeight() > formats["a"].fontWeight()
    assert formats["c"].fontItalic()
    assert formats["d"].fontStrikeOut()
    assert formats["e"].fontFixedPitch()
    assert formats["f"].anchorHref() == "https://x.org"


def test_lists_keep_numbers_and_depth() -> None:
    blocks = split_markdown("3. three\n   - deep\n4. four", {})
    documents = [build_document(block, {}, ReadingStyle(LIGHT)) for block in blocks]
    first, second = documents[0].begin(), documents[1].begin()
    assert first.textList().itemText(first) == "3."
    assert second.textList().itemText(second) == "4."
    deep = first.next()
    assert deep.text() == "deep"
    assert deep.textList().format().indent() == 2


def test_items_with_several_blocks_and_empty_items() -> None:
    document = document_of("- first\n\n  second\n\n  ```\n  code\n  ```")
    assert document.toPlainText() == "first\nsecond\ncode"
    assert document.begin().next().textList() is None
    assert document_of("-").begin().textList() is not None
    nested = document_of("- - both")
    assert nested.toPlainText().strip() == "both"


def test_tables_have_cells_and_alignment() -> None:
    document = document_of("| a | b |\n|:-:|--:|\n| 1 | **2** |\n| 3 |\n")
    table = next(f for f in document.rootFrame().childFrames() if isinstance(f, QTextTable))
    assert (table.rows(), table.columns()) == (3, 2)
    cell = table.cellAt(1, 1).firstCursorPosition()
    assert cell.block().text() == "2"
    assert cell.blockFormat().alignment() == Qt.AlignmentFlag.AlignRight


def test_single_line_breaks_of_the_model_are_kept() -> None:
    assert document_of("roses\nviolets").toPlainText() == "roses\nviolets"


def test_markup_and_pictures_are_words_only() -> None:
    document = document_of("<img src=x> <b>b</b> ![cat](http://x.org/cat.png)")
    assert document.toPlainText() == "<img src=x> <b>b</b> [picture: cat]"
    assert document.loadResource(2, "file:///etc/hostname") is None
    assert "file:" in document_of("![x](file:///etc/passwd)").toPlainText()


def test_characters_qt_would_take_for_structure_are_defused() -> None:
    document = document_of("a\u2029b\ufdd0c\ufdd1d")
    assert document.blockCount() == 1


def test_right_to_left_paragraphs_read_right_to_left() -> None:
    for markdown, direction in (
        ("مرحبا بالعالم", Qt.LayoutDirection.RightToLeft),
        ("Hello", Qt.LayoutDirection.LeftToRight),
    ):
        assert document_of(markdown).begin().textDirection() == direction


def test_user_text_is_shown_as_typed(view: TranscriptView) -> None:
    view.set_conversation([user("# not a heading\n  *two*  spaces\n\n<b>")])
    row = entries(view, 0)[1].row
    assert row is not None
    text = row.document(view._style, view._cache).toPlainText()
    assert text == "# not a heading\n  *two*  spaces\n\n<b>"


@pytest.mark.parametrize(
    ("address", "opens"),
    [
        ("https://example.org", True),
        ("HTTP://example.org", True),
        ("mailto:a@b.org", True),
        ("file:///etc/passwd", False),
        ("javascript:alert(1)", False),
        ("smb://host/share", False),
        ("relative/path", False),
        ("", False),
    ],
)
def test_only_harmless_links_open(
    monkeypatch: pytest.MonkeyPatch, address: str, opens: bool
) -> None:
    opened: list[str] = []

    def remember(url: object) -> bool:
        opened.append(str(url))
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", remember)
    assert open_link(address) is opens
    assert bool(opened) is opens


def test_theme_change_repaints_in_its_colours(view: TranscriptView, qapp: QApplication) -> None:
    view.set_conversation([user("Hi"), answer(MARKDOWN)])
    apply_theme(qapp, "dark")
    image = view.grab().toImage()
    assert image.pixelColor(5, 250).name().upper() == DARK.page


# ---- selection ----


def drag(view: TranscriptView, qtbot: QtBot, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(view.viewport(), end)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=end)


def test_larger_text_takes_more_room_and_keeps_what_is_read(view: TranscriptView) -> None:
    view.resize(400, 400)
    view.set_conversation(
        [message for _ in range(30) for message in (user("Hi"), answer(MARKDOWN))]
    )
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    anchor, total = view._anchor(), view._heights.total()
    view.change_reading_size(6)
    assert view.reading_size == 21
    assert view._heights.total() > 1.2 * total
    assert view._anchor()[:2] == anchor[:2]  # type: ignore[index]
    assert not view.is_at_end()
    view.change_reading_size(0)
    assert view.reading_size == 15
    assert view._heights.total() == pytest.approx(total, rel=0.02)


def test_text_sizes_have_limits_and_are_told_when_they_change(view: TranscriptView) -> None:
    told: list[int] = []
    view.reading_size_changed.connect(told.append)
    view.set_reading_size(20)  # as remembered: nobody changed it
    view.change_reading_size(-100)
    view.change_reading_size(-1)
    view.change_reading_size(100)
    assert told == [11, 32]
    assert view.reading_size == 32


def test_the_wheel_with_control_changes_the_text_size(view: TranscriptView) -> None:
    def turn(by: int, keys: Qt.KeyboardModifier) -> None:
        QApplication.sendEvent(
            view.viewport(),
            QWheelEvent(
                QPointF(50, 50), QPointF(50, 50), QPoint(), QPoint(0, by),
                Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False,
            ),
        )  # fmt: skip

    turn(120, Qt.KeyboardModifier.ControlModifier)
    assert view.reading_size == 16
    turn(-120, Qt.KeyboardModifier.ControlModifier)
    turn(-120, Qt.KeyboardModifier.ControlModifier)
    assert view.reading_size == 14
    turn(120, Qt.KeyboardModifier.NoModifier)
    assert view.reading_size == 14


def test_words_are_selected_and_copied(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([user("Hello world"), answer("- one\n- two\n\nend")])
    row = place_of(view, 0, Place.TEXT)
    drag(view, qtbot, QPoint(view._column_left(), row.y()), QPoint(790, row.y()))
    assert view.selected_text() == "Hello world"
    assert not view.grab().isNull()
    view._copy_action.trigger()
    assert QApplication.clipboard().text() == "Hello world"


def test_selection_runs_across_messages(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([user("Hello world"), answer("- one\n- two\n\nend")])
    start = QPoint(view._column_left(), place_of(view, 0, Place.TEXT).y())
    drag(view, qtbot, start, QPoint(790, place_of(view, 1, Place.FOOTER).y()))
    assert "Hello world" in view.selected_text()
    assert "- two" in view.selected_text()


def test_selection_keeps_list_markers(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([answer("1. one\n2. two\n\nend")])
    left = view._column_left()
    first = next(entry for entry in entries(view, 0) if entry.place is Place.TEXT)
    start = QPoint(left - 10, first.top + 24 + first.height // 2)
    drag(view, qtbot, start, QPoint(790, start.y() + 26))
    assert view.selected_text() == "1. one\n2. two"


def test_select_all_gives_everything(view: TranscriptView) -> None:
    view.set_conversation([user("Hello"), answer("**World**"), user("Bye")])
    view._select_all_action.trigger()
    assert view.selected_text().replace("\n", " ").split() == [
        *("You", "Hello", "Tiny", "·", "Q4", "**World**", "You", "Bye")
    ]


def test_double_click_selects_a_word(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_conversation([user("Hello world")])
    point = QPoint(view._column_left() + 10, place_of(view, 0, Place.TEXT).y())
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.selected_text() == "Hello"


def test_a_click_on_a_link_opens_it(
    view: TranscriptView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def remember(url: object) -> bool:
        opened.append(url.toString())  # type: ignore[attr-defined]
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", remember)
    view.set_conversation([answer("[a rather long link](https://example.org/x)")])
    point = place_of(view, 0, Place.TEXT)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert opened == ["https://example.org/x"]


# ---- bounded work ----


def test_only_what_was_in_sight_is_laid_out(view: TranscriptView) -> None:
    view.set_conversation([answer(MARKDOWN) for _ in range(1000)])
    assert sum(item._is_parsed for item in view._items) < 20
    bar = view.verticalScrollBar()
    for _ in range(300):
        bar.setValue(bar.value() - 400)
    assert len(view._cache) <= 128


def test_finished_blocks_are_laid_out_once(
    view: TranscriptView, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Block] = []

    def count(block: Block, *rest: object) -> QTextDocument:
        built.append(block)
        return build_document(block, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("slipstream.ui.transcript.row.build_document", count)
    view.begin_answer("Tiny")
    for number in range(40):
        view.append_run(piece(f"Paragraph {number}.\n\n"))
    view.finish(answer(view.answer_text()))
    assert len(built) <= 41


def test_heights_are_found_by_position() -> None:
    index = HeightIndex()
    index.reset([10, 20, 30])
    index.append(40)
    assert index.total() == 100
    assert [index.find(y) for y in (-5, 0, 9, 10, 59, 60, 500)] == [0, 0, 0, 1, 2, 3, 3]
    index.set(1, 25)
    assert index.start(2) == 35
    assert index.total() == 105
    assert len(index) == 4
    starts = [index.start(number) for number in range(5)]
    assert all(a < b for a, b in itertools.pairwise(starts))


def test_it_has_a_name_and_takes_focus(view: TranscriptView) -> None:
    assert view.objectName() == "transcript"
    assert view.accessibleName()
    assert view.focusPolicy() == Qt.FocusPolicy.StrongFocus
    assert view._jump_button.accessibleName()
    assert view._jump_button.toolTip()
