"""One message of the conversation: what it shows, from top to bottom, and where."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from operator import attrgetter

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics

from slipstream.chat.records import Message, Role, Spans
from slipstream.engine.events import TextKind, TextPiece
from slipstream.ui.transcript.accepted import AcceptedText
from slipstream.ui.transcript.blocks import Block, GrowingText, split_markdown, split_plain
from slipstream.ui.transcript.row import DocumentCache, Row
from slipstream.ui.transcript.style import ReadingStyle
from slipstream.ui.transcript.wording import numbers_line, progress_words, thought_line

USER_LABEL = "You"
_ITEM_GAP = 30  # between messages
_LABEL_GAP = 4
_USER_PAD = 12  # inside the tinted block, above and below
_FOLD_HEIGHT = 26
_REASONING_INDENT = 16
_PROGRESS_HEIGHT = 28
_NONE = 1 << 30  # no row has changed
_COSTLY_OPEN_TEXT = 4096  # characters; above, an unfinished block is drawn less often


class Place(Enum):
    """What stands at a place of a message."""

    LABEL = auto()
    FOLD = auto()  # the header of the reasoning
    REASONING = auto()
    TEXT = auto()
    PROGRESS = auto()
    FOOTER = auto()


@dataclass(slots=True)
class Entry:
    """A stretch of a message from top to bottom; `index` is the row's within its section."""

    place: Place
    top: int
    height: int
    row: Row | None = None
    index: int = 0


class Section:
    """The rows of one text, whole or growing."""

    def __init__(self, muted: bool) -> None:
        self.rows: list[Row] = []
        self._accepted = AcceptedText()
        self._muted = muted
        self._parts: list[str] = []
        self._has_words = False
        self._growing = GrowingText()
        self._finished_rows = 0
        self._cost = 0.0  # seconds the last drawing of the unfinished part took
        self._next = 0.0  # when it may be drawn again
        self.is_behind = False  # text arrived that is not shown yet

    def text(self) -> str:
        """All text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def append(self, text: str, *, accepted: bool) -> None:
        """Add what arrived, drafted or not; `refresh` shows it."""
        self._parts.append(text)
        self._accepted.append(text, accepted=accepted)
        self._has_words = self._has_words or bool(text.strip())
        self._growing.append(text)
        self.is_behind = True

    def is_blank(self) -> bool:
        """Whether there is nothing to read so far."""
        return not self._has_words

    def refresh(self, force: bool = False) -> int:
        """Bring the rows up to date and return the first that changed, or their number.

        A long unfinished block may take no more than a quarter of the time, so it is skipped
        while it is not its turn, unless `force`.
        """
        now = time.perf_counter()
        finished = self._growing.finished_blocks()
        if not force and now < self._next and len(finished) == self._finished_rows:
            return len(self.rows)
        blocks = self._growing.open_blocks()
        fresh = [*finished[self._finished_rows :], *blocks]
        changed = self._replace(self._finished_rows, fresh, self._growing.references)
        self._finished_rows = len(finished)
        self.is_behind = False
        self._cost = time.perf_counter() - now
        is_costly = sum(len(block.source) for block in blocks) > _COSTLY_OPEN_TEXT
        self._next = now + 4 * self._cost if is_costly else 0.0
        return changed

    def show_plain(self, text: str) -> None:
        """Show a finished text as it is."""
        self._show(text, split_plain(text), {}, ())

    def show_markdown(self, text: str, accepted: Spans) -> None:
        """Show a finished text, of which `accepted` came from accepted draft tokens."""
        references: dict[str, object] = {}
        self._show(text, split_markdown(text, references), references, accepted)

    def _show(
        self,
        text: str,
        blocks: Sequence[Block],
        references: dict[str, object],
        accepted: Spans,
    ) -> None:
        self._parts = [text]
        self._has_words = bool(text.strip())
        self._accepted = AcceptedText.of(text, accepted)
        self.rows = []
        self._replace(0, blocks, references)
        self.is_behind = False

    def conclude(self, text: str, accepted: Spans) -> None:
        """Show the final text; what was streamed is kept when it is just that.

        Cutting is the same at once and in pieces, but for links whose definition came later.
        """
        if text == self.text() and not self._growing.references:
            self.refresh(force=True)
            return
        self.show_markdown(text, accepted)

    def charge(self, seconds: float) -> None:
        """Add the layout of the unfinished block to its cost."""
        if self._next:
            self._next += 4 * seconds

    def _replace(self, first: int, blocks: Sequence[Block], references: dict[str, object]) -> int:
        """Put `blocks` from row `first` on; the number of rows that stayed as they were."""
        old = self.rows[first:]
        kept = 0
        for row, block in zip(old, blocks, strict=False):
            if row.block != block:
                break
            kept += 1
        fresh = [Row(block, references, self._accepted, self._muted) for block in blocks[kept:]]
        self.rows[first + kept :] = fresh
        return first + kept


class MessageItem:
    """A message with its label, reasoning, text and numbers. Parsed when first in sight."""

    def __init__(self, message: Message | None, label: str) -> None:
        self.message = message
        self.label = label
        self.is_user = message is not None and message.role is not Role.ASSISTANT
        self.is_open = False  # the reasoning is unfolded
        self.progress = (0, 0)
        self.answer = Section(muted=False)
        self.reasoning = Section(muted=True)
        self._is_parsed = message is None
        self._shape = (False, True)  # has reasoning, is waiting: what the layout was made for
        self._entries: list[Entry] = []
        self._text_top = 0
        self._first_text = 0  # entries before the rows of the text
        self._changed_row = _NONE  # the first row of the text that is not laid out as it is
        self._laid_out: tuple[int, ReadingStyle] | None = None
        self._height = 0

    # ---- content ----

    @property
    def is_live(self) -> bool:
        """Whether the answer is still being written."""
        return self.message is None

    def text(self) -> str:
        """The text as written, without reasoning."""
        return self.message.text if self.message is not None else self.answer.text()

    def plain_text(self) -> str:
        """The label line and the text as written."""
        return f"{self.label}\n{self.text()}"

    def append(self, pieces: Sequence[TextPiece]) -> None:
        """Add text that arrived while the answer is live."""
        for piece in pieces:
            reasons = piece.kind is TextKind.REASONING
            section = self.reasoning if reasons else self.answer
            section.append(piece.text, accepted=piece.accepted)
        self.refresh()

    def refresh(self, force: bool = False) -> None:
        """Show what arrived; see `Section.refresh`."""
        if self.answer.is_behind:
            self._changed_row = min(self._changed_row, self.answer.refresh(force))
        if self.reasoning.is_behind and self.is_open:
            self.reasoning.refresh(force)
            self._laid_out = None
        shape = (self.has_reasoning(), self.is_waiting())
        if shape != self._shape:
            self._shape = shape
            self._laid_out = None

    def changed_top(self) -> int:
        """Where what was refreshed last begins, in pixels from the message's top."""
        above = self._first_text + self._changed_row - 1
        if self._laid_out is None or not self._first_text <= above < len(self._entries):
            return 0
        return self._entries[above].top

    def is_behind(self) -> bool:
        """Whether text that should be seen is not shown yet."""
        return self.answer.is_behind or (self.is_open and self.reasoning.is_behind)

    def finish(self, message: Message) -> None:
        """Turn the live answer into the final message."""
        self.message = message
        self.label = answer_label(message, self.label)
        record = message.answer
        self.answer.conclude(message.text, record.accepted_text if record else ())
        self.reasoning.conclude(message.reasoning, record.accepted_reasoning if record else ())
        self._laid_out = None

    def toggle(self) -> None:
        """Fold or unfold the reasoning."""
        self.is_open = not self.is_open
        if self.is_live:
            self.reasoning.refresh(force=True)
        self._laid_out = None

    def has_reasoning(self) -> bool:
        """Whether there is reasoning to fold."""
        if self.message is not None:
            return bool(self.message.reasoning.strip())
        return not self.reasoning.is_blank()

    def fold_words(self) -> str:
        """The header of the reasoning."""
        record = self.message.answer if self.message is not None else None
        thinking = self.is_live and self.answer.is_blank()
        return thought_line(record.statistics if record else None, thinking)

    def footer_words(self) -> str:
        """The numbers under a finished answer; "" when there are none."""
        if self.message is None or self.message.answer is None:
            return ""
        return numbers_line(self.message.answer)

    def progress_words(self) -> str:
        """What is shown before the first token."""
        return progress_words(*self.progress)

    def is_waiting(self) -> bool:
        """Whether nothing of the live answer has arrived."""
        return self.is_live and self.answer.is_blank() and not self.has_reasoning()

    def _parse(self) -> None:
        assert self.message is not None
        message, record = self.message, self.message.answer
        if self.is_user:
            self.answer.show_plain(message.text)
        else:
            self.answer.show_markdown(message.text, record.accepted_text if record else ())
            reasoned = record.accepted_reasoning if record else ()
            self.reasoning.show_markdown(message.reasoning, reasoned)
        self._is_parsed = True
        self._laid_out = None

    # ---- geometry ----

    def height(self, width: int, style: ReadingStyle) -> int:
        """Height in pixels in a column of `width`, the space below included."""
        if self._is_parsed:
            self.entries(width, style)
            return self._height
        text = self.text()
        per_line = max(8, int(width / (style.reading_px * 0.52)))
        lines = len(text) // per_line + text.count("\n") + 1
        return lines * style.line_height + 60 + _ITEM_GAP

    def entries(self, width: int, style: ReadingStyle) -> list[Entry]:
        """What stands where, from top to bottom."""
        if self._laid_out != (width, style):
            self._laid_out = (width, style)
            self._lay_out_head(width, style)
            self._lay_out_text(0, width, style)
        elif self._changed_row < _NONE:
            self._lay_out_text(self._changed_row, width, style)
        self._changed_row = _NONE
        return self._entries

    def entry_number_at(self, position: int, width: int, style: ReadingStyle) -> int:
        """The entry at a distance from the message's top, or the last one beginning above it."""
        entries = self.entries(width, style)
        return max(0, bisect_right(entries, position, key=attrgetter("top")) - 1)

    def prepare(
        self, top: int, bottom: int, width: int, style: ReadingStyle, cache: DocumentCache
    ) -> bool:
        """Make heights between `top` and `bottom` exact; True when the message's height changed."""
        if not self._is_parsed:
            before = self.height(width, style)
            self._parse()
            if self.height(width, style) != before:
                return True
        before = self.height(width, style)
        changed = False
        started = time.perf_counter()
        entries = self.entries(width, style)
        for number in range(self.entry_number_at(top, width, style), len(entries)):
            entry = entries[number]
            if entry.top > bottom:
                break
            row = entry.row
            row_width = row_width_in(entry.place, width)
            if row is None or row.is_measured(row_width, style):
                continue
            if row.measure(row_width, style, cache):
                changed = True
                if entry.place is Place.TEXT:
                    self._changed_row = min(self._changed_row, entry.index)
                else:
                    self._laid_out = None
        if changed and self.is_live:
            self.answer.charge(time.perf_counter() - started)
        return changed or self.height(width, style) != before

    def _lay_out_head(self, width: int, style: ReadingStyle) -> None:
        """Label and reasoning."""
        self._entries = []
        y = _USER_PAD if self.is_user else 0
        y = self._add(Place.LABEL, y, QFontMetrics(style.label_font).height())
        y += 2 if self.is_user else _LABEL_GAP
        if self.has_reasoning():
            y = self._add(Place.FOLD, y, _FOLD_HEIGHT)
            if self.is_open:
                inner = row_width_in(Place.REASONING, width)
                for index, row in enumerate(self.reasoning.rows):
                    y += row.gap_above() if index else 0
                    y = self._add(Place.REASONING, y, row.height(inner, style), row, index)
                y += _LABEL_GAP * 3
        self._first_text = len(self._entries)
        self._text_top = y

    def _lay_out_text(self, first: int, width: int, style: ReadingStyle) -> None:
        """The rows of the text from `first` on, and what stands below them."""
        del self._entries[self._first_text + first :]
        y = self._text_top
        if first:
            above = self._entries[-1]
            y = above.top + above.height
        for index in range(first, len(self.answer.rows)):
            row = self.answer.rows[index]
            y += row.gap_above() if index else 0
            y = self._add(Place.TEXT, y, row.height(width, style), row, index)
        if self.is_waiting():
            y = self._add(Place.PROGRESS, y + 4, _PROGRESS_HEIGHT)
        footer = self.footer_words()
        if footer:
            box = QRect(0, 0, width, 10_000)
            wrap = int(Qt.TextFlag.TextWordWrap.value)
            metrics = QFontMetrics(style.caption_font)
            y = self._add(Place.FOOTER, y + 10, metrics.boundingRect(box, wrap, footer).height())
        if self.is_user:
            y += _USER_PAD
        self._height = y + _ITEM_GAP

    def _add(
        self, place: Place, top: int, height: int, row: Row | None = None, index: int = 0
    ) -> int:
        """Add an entry and return where it ends."""
        self._entries.append(Entry(place, top, height, row, index))
        return top + height


def row_width_in(place: Place, width: int) -> int:
    """The width rows of a section have in a column of `width`."""
    return width - _REASONING_INDENT if place is Place.REASONING else width


def item_gap() -> int:
    """Space below every message, part of its height."""
    return _ITEM_GAP


def answer_label(message: Message, otherwise: str = "") -> str:
    """Who the message is from: "You", or the model's name."""
    if message.role is Role.USER:
        return USER_LABEL
    if message.role is Role.SYSTEM:
        return "System"
    return (message.answer.model_name if message.answer else "") or otherwise or "Assistant"
