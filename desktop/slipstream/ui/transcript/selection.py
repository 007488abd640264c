"""Which words of the conversation are selected, across rows and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slipstream.ui.transcript.item import MessageItem, Place
from slipstream.ui.transcript.row import DocumentCache
from slipstream.ui.transcript.style import ReadingStyle

_FAR = 1 << 30


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters; `section` is 0 in the reasoning and 1 in the text."""

    message: int
    section: int
    row: int
    character: int

    def moved(self, character: int) -> Position:
        """The same row, another character."""
        return replace(self, character=character)


class Selection:
    """From where the mouse was pressed to where it is."""

    def __init__(self) -> None:
        self._anchor: Position | None = None
        self._end: Position | None = None

    def clear(self) -> None:
        """Select nothing."""
        self._anchor = self._end = None

    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return self._anchor == self._end

    def press(self, position: Position, extend: bool) -> None:
        """Begin at `position`, or move the end there when extending."""
        if not extend or self._anchor is None:
            self._anchor = position
        self._end = position

    def drag(self, position: Position) -> None:
        """Move the end."""
        self._end = position

    def select_all(self, messages: int) -> None:
        """Select everything."""
        self._anchor = Position(0, 0, 0, 0)
        self._end = Position(max(0, messages - 1), 1, _FAR, _FAR)

    def span_in(self, message: int, is_text: bool, row: int) -> tuple[int, int] | None:
        """The selected characters of one row, or None."""
        ends = self._ends()
        if ends is None:
            return None
        first, last = ends
        place = (message, int(is_text), row)
        first_place = (first.message, first.section, first.row)
        last_place = (last.message, last.section, last.row)
        if place < first_place or place > last_place:
            return None
        start = first.character if place == first_place else 0
        end = last.character if place == last_place else _FAR
        return (start, end) if end > start else None

    def text(
        self, items: Sequence[MessageItem], width: int, style: ReadingStyle, cache: DocumentCache
    ) -> str:
        """The selected words. Messages selected from end to end come as they were written."""
        ends = self._ends()
        if ends is None:
            return ""
        first, last = ends
        parts = []
        for index in range(first.message, min(last.message + 1, len(items))):
            item = items[index]
            starts_before = (index, 0, 0, 0) >= (first.message, *_rest(first))
            ends_after = index < last.message or last.row == _FAR
            if starts_before and ends_after and first.message != last.message:
                parts.append(item.plain_text())
            else:
                parts.append(self._text_in(item, index, width, style, cache))
        return "\n\n".join(part for part in parts if part)

    def _text_in(
        self, item: MessageItem, index: int, width: int, style: ReadingStyle, cache: DocumentCache
    ) -> str:
        text = ""
        for entry in item.entries(width, style):
            if entry.row is None:
                continue
            span = self.span_in(index, entry.place is Place.TEXT, entry.index)
            if span is not None:
                if text:
                    text += "\n" if entry.row.block.continues else "\n\n"
                text += entry.row.text_between(*span, style, cache)
        return text

    def _ends(self) -> tuple[Position, Position] | None:
        if self._anchor is None or self._end is None or self._anchor == self._end:
            return None
        return min(self._anchor, self._end), max(self._anchor, self._end)


def _rest(position: Position) -> tuple[int, int, int]:
    return position.section, position.row, position.character
