"""What can be wrong with a model file, in words for the person who picked it."""

from __future__ import annotations

import os
import unicodedata
from enum import StrEnum

from slipstream.errors import ModelFileError

FilePath = str | os.PathLike[str]

_BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class FileFault(StrEnum):
    """The kinds of fault, for tests, tables and icons; people read the sentences."""

    MISSING = "missing"
    NOT_A_FILE = "not_a_file"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    NOT_GGUF = "not_gguf"
    UNSUPPORTED_VERSION = "unsupported_version"
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    MISSING_PART = "missing_part"
    MIXED_PARTS = "mixed_parts"
    WRONG_KIND = "wrong_kind"


class GgufError(ModelFileError):
    """A model file that cannot be read or used.

    `path` is the file as it was asked for. `expected` and `found` are sizes in bytes where the
    fault is about one (for a cut-off header `expected` is the least that is missing), else None.
    """

    def __init__(
        self,
        kind: FileFault,
        path: FilePath,
        title: str,
        detail: str,
        hint: str,
        *,
        expected: int | None = None,
        found: int | None = None,
    ) -> None:
        super().__init__(title, detail, hint)
        self.kind = kind
        self.path = path
        self.expected = expected
        self.found = found


def printable(text: str, *, limit: int = 300) -> str:
    """Make `text` from outside safe to show: any file name, any metadata value.

    Bytes that are not UTF-8 (surrogate escapes) show as `\\xff`, control characters and
    direction overrides as escapes; more than `limit` characters are cut with an ellipsis.
    """
    cut = text[:limit]
    try:
        whole = cut.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        whole = cut.encode("utf-8", "backslashreplace").decode("utf-8")
    shown = "".join(_escape(c) if _is_unsafe(c) else c for c in whole)
    return shown + "…" if len(text) > limit else shown


def _is_unsafe(character: str) -> bool:
    if character.isprintable():
        return False
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"} or character in _BIDIRECTIONAL


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def file_name(path: FilePath) -> str:
    """The last part of `path`, printable; the whole path where there is no last part."""
    whole = os.fspath(path)
    return printable(os.path.basename(whole) or whole or "(no name)")
