"""The bytes of a GGUF header, read in windows and checked step by step against the real file size.

The file is never mapped: a mapped file that shrinks, or a disk that vanishes, kills the process.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, NoReturn, cast

from slipstream.engine.gguf_errors import FileFault, FilePath, GgufError, file_name
from slipstream.engine.gguf_values import NUMBER_CODES, ByteOrder, Scalar, ValueType

MAX_HEADER_BYTES = 256 * 2**20
"""A larger header is taken for damage; the largest seen have about 30 MiB."""

MAX_ARRAY_STRINGS = 2**22
"""Strings in all arrays together (large vocabularies have 1/4 million, their merges 1/2)."""

MAX_TEXT_BYTES = 32 * 2**20
"""Keys, names and texts decoded for one header, together."""

MAX_ARRAY_NUMBERS = 2**22
"""Numbers of one array that are decoded on request."""

WINDOW_BYTES = 2**20
NEWEST_VERSION = 3
DOWNLOAD_AGAIN = "Download it again."


class HeaderStream:
    """A window over the file's bytes that checks every step against the file's real size."""

    def __init__(self, file: BinaryIO, path: FilePath, size: int) -> None:
        self._file = file
        self.path = path
        self.size = size
        self._window = b""
        self._base = 0
        self._at = 0
        self._text_left = MAX_TEXT_BYTES
        self._strings_left = MAX_ARRAY_STRINGS
        self.use(ByteOrder.LITTLE, NEWEST_VERSION)

    def use(self, order: ByteOrder, version: int) -> None:
        """Set how numbers are stored from here on; lengths had 4 bytes in version 1, 8 since."""
        mark = "<" if order is ByteOrder.LITTLE else ">"
        self._mark = mark
        self._numbers = {kind: struct.Struct(mark + code) for kind, code in NUMBER_CODES.items()}
        self._length = struct.Struct(mark + ("I" if version == 1 else "Q"))

    @property
    def position(self) -> int:
        return self._base + self._at

    @property
    def length_bytes(self) -> int:
        return self._length.size

    def jump(self, position: int) -> None:
        """Go to `position`, which must lie in the file and in what a header can span."""
        if position > MAX_HEADER_BYTES:
            self.damaged(
                f"Its header claims to be larger than {MAX_HEADER_BYTES:,} bytes, "
                "more than any model needs."
            )
        if position > self.size:
            self.truncated(position, at_least=True)
        if self._base <= position <= self._base + len(self._window):
            self._at = position - self._base
        else:
            self._window, self._base, self._at = b"", position, 0

    def skip(self, count: int) -> None:
        self.jump(self.position + count)

    def _need(self, count: int) -> None:
        """Make sure that `count` bytes lie in the window from here on."""
        if self._at + count <= len(self._window):
            return
        start = self.position
        self.jump(start + count)
        self._file.seek(start)
        wanted = min(max(count, WINDOW_BYTES), self.size - start)
        pieces = []
        while wanted > 0:
            piece = self._file.read(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        self._window = b"".join(pieces)
        self._base, self._at = start, 0
        if len(self._window) < count:
            self.size = start + len(self._window)
            self.truncated(start + count, at_least=True)

    def take(self, count: int) -> bytes:
        self._need(count)
        piece = self._window[self._at : self._at + count]
        self._at += count
        return piece

    def number(self, kind: int) -> int | float | bool:
        layout = self._numbers[kind]
        self._need(layout.size)
        (value,) = layout.unpack_from(self._window, self._at)
        self._at += layout.size
        return cast("int | float | bool", value)

    def uint32(self) -> int:
        return cast(int, self.number(ValueType.UINT32))

    def uint64(self) -> int:
        return cast(int, self.number(ValueType.UINT64))

    def length(self) -> int:
        self._need(self._length.size)
        (value,) = self._length.unpack_from(self._window, self._at)
        self._at += self._length.size
        return cast(int, value)

    def text_bytes(self, count: int) -> bytes:
        """The next `count` bytes, paid for from the budget for decoded text."""
        if count > self._text_left:
            self.jump(self.position + count)
            self.damaged(f"Its header holds more than {MAX_TEXT_BYTES:,} bytes of text.")
        self._text_left -= count
        return self.take(count)

    def numbers(self, kind: ValueType, count: int) -> tuple[Scalar, ...]:
        """Decode the next `count` numbers of one type."""
        if count > MAX_ARRAY_NUMBERS:
            self.damaged(f"It holds a list of {count:,} numbers, more than any model has.")
        code = NUMBER_CODES[kind]
        raw = self.take(count * self._numbers[kind].size)
        return struct.unpack(f"{self._mark}{count}{code}", raw)

    def skip_numbers(self, kind: ValueType, count: int) -> None:
        self.skip(count * self._numbers[kind].size)

    def strings(self, count: int, errors: str) -> tuple[str, ...]:
        return tuple(self.text_bytes(self.length()).decode("utf-8", errors) for _ in range(count))

    def skip_strings(self, count: int) -> None:
        """Pass over `count` strings at about 65 ns each: a tight loop per window."""
        if count > self._strings_left:
            self.damaged(f"Its header claims a list of {count:,} texts, more than any model has.")
        self._strings_left -= count
        self.check_end(self.position + count * self._length.size)
        head = self._length.size
        unpack = self._length.unpack_from
        while count:
            self._need(head)
            window, at = self._window, self._at
            try:
                for count in range(count, 0, -1):  # noqa: B020, B007
                    at += unpack(window, at)[0] + head
                count = 0
            except (struct.error, OverflowError):
                pass  # the next length lies beyond the window: `count` strings are left
            self.jump(self._base + at)

    def check_end(self, end: int) -> None:
        """Fail now if what is known to follow cannot end at `end`."""
        if end > MAX_HEADER_BYTES or end > self.size:
            self.jump(end)

    def damaged(self, detail: str) -> NoReturn:
        raise GgufError(
            FileFault.DAMAGED,
            self.path,
            f"“{file_name(self.path)}” is damaged.",
            detail,
            DOWNLOAD_AGAIN,
            expected=None,
            found=self.size,
        )

    def truncated(self, expected: int, *, at_least: bool = False) -> NoReturn:
        share = f" ({self.size * 100 // expected} %)" if not at_least else ""
        raise GgufError(
            FileFault.TRUNCATED,
            self.path,
            f"“{file_name(self.path)}” is incomplete.",
            f"It needs {'at least ' if at_least else ''}{expected:,} bytes, but the file has "
            f"{self.size:,}{share}; the download or the copy probably stopped early.",
            DOWNLOAD_AGAIN,
            expected=expected,
            found=self.size,
        )
