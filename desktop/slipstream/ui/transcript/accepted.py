"""Which characters of a text came from accepted draft tokens, line by line. Knows nothing of Qt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from slipstream.chat.records import Spans
from slipstream.ui.transcript.blocks import Block, BlockKind


class AcceptedText:
    """A mark for each character, 1 where it was drafted; lines as `blocks` counts them."""

    def __init__(self) -> None:
        self._marks = bytearray()
        self._starts = [0]  # of each line
        self._any = False
        self._after_return = False  # a line end may still get its second half

    @classmethod
    def of(cls, text: str, spans: Spans) -> AcceptedText:
        """The marks of a finished text."""
        made, end = cls(), 0
        for start, stop in spans:
            made.append(text[end:start], accepted=False)
            made.append(text[start:stop], accepted=True)
            end = stop
        made.append(text[end:], accepted=False)
        return made

    def append(self, text: str, *, accepted: bool) -> None:
        """Add what arrived."""
        if not text:
            return
        if self._after_return and text[0] == "\n":
            text = text[1:]
        self._after_return = text.endswith("\r")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        begin = len(self._marks)
        self._marks += bytes([accepted]) * len(text)
        self._starts += [begin + found.end() for found in re.finditer("\n", text)]
        self._any |= accepted

    def marks_of(self, block: Block) -> tuple[bytes, ...]:
        """For each line of the block's source the marks of its characters; () when none is set.

        Lines of a code block may have lost white space in front.
        """
        if not self._any:
            return ()
        marks = []
        for number, line in enumerate(block.source.split("\n"), block.line):
            whole = self._line(number)
            if block.kind is BlockKind.CODE:
                whole = whole[max(0, len(whole) - len(line)) :]
            marks.append(whole[: len(line)].ljust(len(line), b"\0"))
        return tuple(marks) if any(map(any, marks)) else ()

    def _line(self, number: int) -> bytes:
        if number >= len(self._starts):
            return b""
        last = number + 1 == len(self._starts)
        end = len(self._marks) if last else self._starts[number + 1] - 1
        return bytes(self._marks[self._starts[number] : end])


def runs(marks: bytes) -> list[tuple[int, int, bool]]:
    """Start, end and value of each stretch of equal marks."""
    found, start = [], 0
    for value, group in groupby(marks):
        end = start + len(list(group))
        found.append((start, end, bool(value)))
        start = end
    return found


def marks_within(content: str, source: str, marks: bytes, begin: int = 0) -> tuple[bytes, int]:
    """The marks of `content`, found in its source line from `begin` on, and where it ends there.

    What the line spells with more characters, a `\\|` in a table, is matched one by one.
    """
    start = source.find(content, begin)
    if start >= 0:
        end = start + len(content)
        return marks[start:end], end
    found, end = bytearray(), begin
    for character in content:
        at = source.find(character, end)
        found.append(marks[at] if at >= 0 else 0)
        end = at + 1 if at >= 0 else end
    return bytes(found), end


def marks_at_end(content: str, source: str, marks: bytes) -> bytes:
    """The marks of `content`, which is the end of its source line but for white space."""
    shown, whole = content.rstrip(), source.rstrip()
    if whole.endswith(shown):
        start = len(whole) - len(shown)
        return marks[start : start + len(content)].ljust(len(content), b"\0")
    return marks_within(content, source, marks)[0]


def joined(lines: Sequence[bytes]) -> bytes:
    """The marks of lines joined by line ends, which have none."""
    return b"\0".join(lines)
