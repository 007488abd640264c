"""Strings one per line: how line breaks, tabs and other invisible characters are written."""

from __future__ import annotations

import re

from slipstream.errors import UsageError

_WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_READ = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r", "s": " "}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.?)")


def escape(text: str) -> str:
    """The text on one line; a blank at its end is written as \\s so that it can be seen."""
    written = "".join(_WRITTEN.get(character) or _visible(character) for character in text)
    return f"{written[:-1]}\\s" if written.endswith(" ") else written


def unescape(line: str) -> str:
    """The text a line stands for. Raises `UsageError` for an unknown escape."""
    return _ESCAPE.sub(_read, line)


def escape_lines(texts: tuple[str, ...]) -> str:
    """Several strings, one per line."""
    return "\n".join(escape(text) for text in texts)


def unescape_lines(text: str) -> tuple[str, ...]:
    """The strings of all lines that are not empty. Raises `UsageError`."""
    return tuple(unescape(line) for line in text.split("\n") if line)


def _visible(character: str) -> str:
    code = ord(character)
    if character.isprintable() or code > 0xFFFF:
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _read(match: re.Match[str]) -> str:
    what = match[1]
    if len(what) > 1:
        code = int(what[1:], 16)
        if code <= 0x10FFFF:
            return chr(code)
    elif what in _READ:
        return _READ[what]
    raise UsageError(
        f"“\\{what}” means nothing here.",
        "Known are \\n, \\t, \\r, \\s for a blank, \\x41 and \\u20ac.",
        "Write \\\\ for a backslash.",
    )
