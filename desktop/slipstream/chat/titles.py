"""A title for a chat, made from the text that starts it."""

from __future__ import annotations

import re
import unicodedata

NEW_CHAT_TITLE = "New chat"
"""What a chat is called before it has a title of its own."""

LONGEST_TITLE = 48  # characters, the … of a cut included
_SHORTEST_SENTENCE = 12  # below that, a full stop is more likely one of "Dr." or "e.g."

_FENCE = re.compile(r"^\s*(```|~~~)")
_RULE = re.compile(r"^\s*([-*_=]\s*){3,}$")
_LINE_MARK = re.compile(r"^\s*(#{1,6}(\s+|$)|>\s*|[-*+]\s+(\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)+")
_CLOSING_MARK = re.compile(r"\s#+\s*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|~~|`+)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_SENTENCE = re.compile(r".+?(?:[.!?…]+[\"'”’)»]*(?=\s)|[。！？]+[」』）]*)")


def title_from_text(text: str) -> str:
    """The first line or sentence without Markdown marks, cut at a word to at most 48 characters.

    Never empty: a text without visible characters gives "New chat".
    """
    for line in text[:20_000].splitlines():
        title = _plain(line)
        if any(unicodedata.category(character)[0] not in "CZM" for character in title):
            return _shortened(title)
    return NEW_CHAT_TITLE


def _plain(line: str) -> str:
    """The line's words alone; nothing of a line that only structures the text."""
    if _FENCE.match(line) or _RULE.match(line):
        return ""
    line = _LINE_MARK.sub("", line[:1_000])
    line = _CLOSING_MARK.sub("", line)
    line = _LINK.sub(r"\1", line)
    for _ in range(3):  # marks may be nested
        line = _EMPHASIS.sub(r"\2", line)
    line = "".join(character for character in line if _shows(character))
    return " ".join(line.split())


def _shows(character: str) -> bool:
    """No control characters, surrogates, or marks that turn the direction of what follows."""
    return character.isspace() or not (
        unicodedata.category(character) in ("Cc", "Cs")
        or "\u202a" <= character <= "\u202e"
        or "\u2066" <= character <= "\u2069"
    )


def _shortened(title: str) -> str:
    if len(title) > LONGEST_TITLE:
        sentence = _SENTENCE.match(title)
        if not sentence or not _SHORTEST_SENTENCE <= len(sentence[0]) <= LONGEST_TITLE:
            return _cut(title)
        title = sentence[0]
    return title.rstrip(".,;:。").rstrip() or title


def _cut(title: str) -> str:
    end = LONGEST_TITLE - 1
    word_end = title.rfind(" ", 0, end + 1)
    if word_end >= end // 2:
        end = word_end
    else:
        while end > 1 and _joined(title[end - 1], title[end]):
            end -= 1
    return title[:end].rstrip(" .,;:-–—") + "…"


def _joined(before: str, after: str) -> bool:
    """Whether the two characters belong to one letter or emoji."""
    joiner = "\u200d"
    return joiner in (before, after) or unicodedata.category(after).startswith("M")
