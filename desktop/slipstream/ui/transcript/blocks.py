"""Cuts Markdown into blocks that can be shown one by one, at once or while the text still grows.

A block is a top-level Markdown block, one item of a top-level list, or a run of code lines. The
block structure of CommonMark is decided line by line and never revised, so of the blocks found
in whole lines all but the last are final: those are cut once and never looked at again. Knows
nothing of Qt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from markdown_it.token import Token

from slipstream.ui.transcript.source_map import source_mapped

CODE_LINES = 40  # lines of code shown as one block
PLAIN_LINES = 40  # lines of unformatted text shown as one block

_PARSER = source_mapped("commonmark", {"html": False, "maxNesting": 60})
_PARSER.enable(["table", "strikethrough"])
_PARSER.disable(["html_block", "html_inline"])


class BlockKind(Enum):
    """How a block is drawn."""

    PLAIN = auto()  # text as it is
    MARKDOWN = auto()
    HEADING = auto()
    LIST_ITEM = auto()
    QUOTE = auto()
    TABLE = auto()
    CODE = auto()
    RULE = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a message. `source` is Markdown, but for PLAIN and CODE the text itself.

    `continues` and `continued` say that the block before or after belongs to the same list,
    code block or plain text. `line` is the number of its first line in the message, from 0.
    """

    kind: BlockKind
    source: str
    language: str = ""
    continues: bool = False
    continued: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Cut:
    """A block with its first line in the text it was cut from; `prefix` reopens its fence."""

    block: Block
    line: int
    prefix: str = ""


def parse(source: str, references: dict[str, object]) -> list[Token]:
    """The Markdown tokens of one block, resolving links through `references`."""
    return _PARSER.parse(source, {"references": references})


def split_markdown(text: str, references: dict[str, object]) -> list[Block]:
    """All blocks of a finished text; link definitions found are added to `references`."""
    return [cut.block for cut in _cut(_normalised(text), references)]


def split_plain(text: str) -> list[Block]:
    """Blocks of a text that is shown as it is."""
    lines = _normalised(text).split("\n")
    starts = range(0, len(lines), PLAIN_LINES)
    return [
        Block(
            BlockKind.PLAIN,
            "\n".join(lines[start : start + PLAIN_LINES]),
            continues=start > 0,
            continued=start + PLAIN_LINES < len(lines),
            line=start,
        )
        for start in starts
    ]


class GrowingText:
    """A text that arrives in pieces, cut into blocks without going over finished ones again."""

    def __init__(self) -> None:
        self.references: dict[str, object] = {}
        self._finished: list[Block] = []
        self._open = ""  # the text after the finished blocks
        self._open_line = 0  # the number of its first line
        self._continues = False  # the first open block carries on from the last finished one

    def append(self, text: str) -> None:
        """Add what arrived."""
        self._open = _normalised(self._open + text)
        if "\n" in text:
            self._settle()

    def finished_blocks(self) -> Sequence[Block]:
        """Blocks that no later text can change; the list only ever grows."""
        return self._finished

    def open_blocks(self) -> list[Block]:
        """The blocks that may still change, as they look now."""
        blocks = [cut.block for cut in _cut(self._open, self.references, self._open_line)]
        if blocks and self._continues:
            blocks[0] = replace(blocks[0], continues=True)
        return blocks

    def _settle(self) -> None:
        whole_lines = self._open[: self._open.rfind("\n") + 1]
        cuts = _cut(whole_lines, self.references, self._open_line)
        if len(cuts) < 2:
            return
        blocks = [cut.block for cut in cuts[:-1]]
        if self._continues:
            blocks[0] = replace(blocks[0], continues=True)
        self._finished += blocks
        last = cuts[-1]
        self._continues = last.block.continues
        lines = self._open.split("\n")
        self._open = last.prefix + "\n".join(lines[last.line :])
        self._open_line += last.line - last.prefix.count("\n")


def _normalised(text: str) -> str:
    """Line ends and NUL as CommonMark wants them; a lone trailing \\r waits for its \\n."""
    if "\r" in text:
        held = text.endswith("\r")
        text = text[: -1 if held else None].replace("\r\n", "\n").replace("\r", "\n")
        text += "\r" if held else ""
    return text.replace("\0", "\ufffd")


_KINDS = {
    "heading_open": BlockKind.HEADING,
    "blockquote_open": BlockKind.QUOTE,
    "table_open": BlockKind.TABLE,
    "hr": BlockKind.RULE,
}


def _cut(text: str, references: dict[str, object], first_line: int = 0) -> list[_Cut]:
    tokens: list[Token] = []
    _PARSER.block.parse(text, _PARSER, {"references": references}, tokens)
    lines = text.split("\n")
    cuts: list[_Cut] = []
    in_list = False
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open") and token.level == 0:
            in_list = False  # the first item of this list comes next
        elif token.type == "list_item_open" and token.level == 1:
            start, end = _extent(token)
            if in_list:
                before = cuts[-1]
                cuts[-1] = _Cut(replace(before.block, continued=True), before.line)
            source = _slice(lines, start, end)
            line = first_line + start
            block = Block(BlockKind.LIST_ITEM, source, continues=in_list, line=line)
            cuts.append(_Cut(block, start))
            in_list = True
        elif token.level == 0 and token.type == "fence":
            cuts += _cut_code(token, lines, first_line)
        elif token.level == 0 and token.nesting >= 0 and token.map and token.type != "inline":
            start, end = _extent(token)
            kind = _KINDS.get(token.type, BlockKind.MARKDOWN)
            block = Block(kind, _slice(lines, start, end), line=first_line + start)
            cuts.append(_Cut(block, start))
    return cuts


def _cut_code(token: Token, lines: list[str], first_line: int) -> list[_Cut]:
    """A fenced block in runs of lines; each run knows the fence that would reopen it."""
    start, _ = _extent(token)
    fence = lines[start] + "\n"
    language = token.info.strip().split(" ")[0] if token.info.strip() else ""
    code = token.content.removesuffix("\n").split("\n")
    cuts = []
    for first in range(0, len(code), CODE_LINES):
        block = Block(
            BlockKind.CODE,
            "\n".join(code[first : first + CODE_LINES]),
            language,
            continues=first > 0,
            continued=first + CODE_LINES < len(code),
            line=first_line + start + 1 + first,
        )
        if first == 0:
            cuts.append(_Cut(block, start))
        else:
            cuts.append(_Cut(block, start + 1 + first, fence))
    return cuts


def _extent(token: Token) -> tuple[int, int]:
    assert token.map is not None
    return token.map[0], token.map[1]


def _slice(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[start:end]).rstrip("\n")
