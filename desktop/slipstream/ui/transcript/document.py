"""Turns one block of a message into a QTextDocument. Reads nothing from disk or network, ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it.token import Token
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextList,
    QTextListFormat,
    QTextOption,
    QTextTable,
    QTextTableFormat,
)

from slipstream.ui.transcript.accepted import joined, marks_at_end, marks_within, runs
from slipstream.ui.transcript.blocks import Block, BlockKind, parse
from slipstream.ui.transcript.source_map import content_offsets
from slipstream.ui.transcript.style import ReadingStyle
from slipstream.ui.wrapping import wrap_mode

_LINE_BREAK = "\u2028"
# Characters QTextCursor.insertText would take for the end of a paragraph or of a frame.
_UNSAFE = str.maketrans(
    {"\u2029": " ", "\ufdd0": "\ufffd", "\ufdd1": "\ufffd", "\r": " ", "\n": _LINE_BREAK}
)
_HALF_GAP = 4  # between items, pixels
_GAP = 10  # between paragraphs inside a block, pixels
_INDENT = 24  # of a list level, pixels


class SealedDocument(QTextDocument):
    """A document that refuses every resource, whatever its text asks for."""

    def loadResource(self, _type: int, _name: QUrl | str) -> Any:
        return None


def build_document(
    block: Block,
    references: dict[str, object],
    style: ReadingStyle,
    muted: bool = False,
    accepted: Sequence[bytes] = (),
) -> QTextDocument:
    """The block as a document without margins, not laid out yet.

    `accepted` marks for each line of the source the characters to be coloured; () for none.
    """
    document = SealedDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setIndentWidth(_INDENT)
    option = QTextOption()
    option.setWrapMode(wrap_mode(block.source))
    document.setDefaultTextOption(option)
    colour = style.muted if muted else style.text
    if block.kind is BlockKind.CODE:
        document.setDefaultFont(style.code_font)
        _insert_lines(document, block.source, style, joined(accepted))
    elif block.kind is BlockKind.PLAIN:
        document.setDefaultFont(style.body_font)
        _insert_paragraphs(document, block.source, style.line_height, colour)
    elif block.kind is not BlockKind.RULE:
        document.setDefaultFont(style.body_font)
        writer = _MarkdownWriter(document, style, colour, block.source, accepted)
        if block.kind is BlockKind.QUOTE:
            writer.leave_outer_quote_to_the_row()
        writer.write(parse(block.source, references))
    return document


def _line_format(height: int) -> QTextBlockFormat:
    block_format = QTextBlockFormat()
    block_format.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
    return block_format


def _insert_lines(document: QTextDocument, text: str, style: ReadingStyle, accepted: bytes) -> None:
    """All lines as one paragraph, so that they stay one block of colour."""
    cursor = QTextCursor(document)
    cursor.setBlockFormat(_line_format(style.code_line_height))
    char_format = QTextCharFormat()
    char_format.setForeground(style.text)
    _insert(cursor, text, char_format, style, accepted)


def _insert(
    cursor: QTextCursor,
    text: str,
    char_format: QTextCharFormat,
    style: ReadingStyle,
    accepted: bytes,
) -> None:
    """Insert text, on another ground where `accepted` has a mark for the character."""
    text = text.translate(_UNSAFE)  # of the same length
    if not any(accepted):
        cursor.insertText(text, char_format)
        return
    marked = QTextCharFormat(char_format)
    marked.setBackground(QBrush(style.accepted))
    if marked.isAnchor():
        marked.setForeground(style.accepted_link)
    for start, end, is_accepted in runs(accepted):
        cursor.insertText(text[start:end], marked if is_accepted else char_format)


def _insert_paragraphs(document: QTextDocument, text: str, height: int, colour: QColor) -> None:
    """Every line its own paragraph, so that each finds its own reading direction."""
    cursor = QTextCursor(document)
    char_format = QTextCharFormat()
    char_format.setForeground(colour)
    cursor.setBlockFormat(_line_format(height))
    for number, line in enumerate(text.split("\n")):
        if number:
            cursor.insertBlock()
        cursor.insertText(line.translate(_UNSAFE), char_format)


class _MarkdownWriter:
    """Writes Markdown tokens into an empty document."""

    def __init__(
        self,
        document: QTextDocument,
        style: ReadingStyle,
        colour: QColor,
        source: str,
        accepted: Sequence[bytes],
    ) -> None:
        self._document = document
        self._style = style
        self._source = source.split("\n") if accepted else []
        self._accepted = accepted
        self._cell_end = (0, 0)  # the line of the table cell before, and where in it that ended
        self._cursor = QTextCursor(document)
        self._base = QTextCharFormat()
        self._base.setForeground(colour)
        self._colour = colour
        self._fresh = True  # the document's first block is still unused
        self._lists: list[QTextListFormat] = []
        self._made_lists: list[QTextList | None] = []
        self._item_waits = False  # the next block carries the list marker
        self._item_blocks = 0  # blocks written since the marker
        self._quotes = 0
        self._table: QTextTable | None = None
        self._cell = (0, 0)

    def leave_outer_quote_to_the_row(self) -> None:
        """Indent only quotations inside the outermost one."""
        self._quotes = -1

    def write(self, tokens: list[Token]) -> None:
        self._cursor.beginEditBlock()
        for position, token in enumerate(tokens):
            handler = getattr(self, f"_on_{token.type}", None)
            if handler is not None:
                handler(token, tokens, position)
        self._cursor.endEditBlock()

    # ---- blocks ----

    def _start_block(self, gap: int, char_format: QTextCharFormat | None = None) -> None:
        """Open a paragraph at the current depth, with `gap` above unless it is the first."""
        block_format = _line_format(self._style.line_height)
        depth = len(self._lists)
        marks = self._item_waits and bool(depth)
        if self._quotes > 0:
            block_format.setLeftMargin(16 * self._quotes)
        if depth and not marks:
            block_format.setIndent(depth)
        if not self._fresh:
            block_format.setTopMargin(gap)
        char_format = char_format or self._base
        if self._fresh:
            self._cursor.setBlockFormat(block_format)
            self._cursor.setBlockCharFormat(char_format)
            self._fresh = False
        else:
            self._cursor.insertBlock(block_format, char_format)
        if marks:
            made = self._made_lists[-1]
            if made is None:
                self._made_lists[-1] = self._cursor.createList(self._lists[-1])
            else:
                made.add(self._cursor.block())
            self._item_waits = False
        self._item_blocks += 1

    def _on_paragraph_open(self, token: Token, _tokens: list[Token], _position: int) -> None:
        first_in_item = bool(self._lists) and self._item_waits
        self._start_block(_HALF_GAP if token.hidden or first_in_item else _GAP)

    def _on_heading_open(self, token: Token, _tokens: list[Token], _position: int) -> None:
        level = int(token.tag[1])
        self._heading = QTextCharFormat(self._base)
        font = QFont(self._style.body_font)
        font.setPixelSize(self._style.heading_px.get(level, self._style.reading_px))
        font.setWeight(QFont.Weight.DemiBold)
        self._heading.setFont(font)
        self._start_block(_GAP + 2, self._heading)

    def _on_inline(self, token: Token, tokens: list[Token], position: int) -> None:
        opener = tokens[position - 1].type if position else ""
        base = self._base
        if opener == "heading_open":
            base = self._heading
        elif opener == "th_open":
            base = QTextCharFormat(self._base)
            base.setFontWeight(QFont.Weight.DemiBold)
        is_cell = opener in ("th_open", "td_open")
        self._write_inline(token, base, self._marks_of(token, is_cell) if self._accepted else b"")

    def _on_fence(self, token: Token, _tokens: list[Token], _position: int) -> None:
        char_format = QTextCharFormat(self._base)
        char_format.setFont(self._style.code_font)
        self._start_block(_GAP, char_format)
        block_format = self._cursor.blockFormat()
        block_format.setBackground(QBrush(self._style.code_block))
        block_format.setBottomMargin(_HALF_GAP)
        block_format.setLineHeight(
            self._style.code_line_height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value
        )
        self._cursor.setBlockFormat(block_format)
        content = token.content.removesuffix("\n")
        marks = b""
        if self._accepted and token.map is not None:
            first = token.map[0] + (token.type == "fence")
            marks = self._marks_of_lines(content.split("\n"), first)
        self._insert(content, char_format, marks)

    _on_code_block = _on_fence

    def _on_hr(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        self._start_block(_GAP)
        block_format = self._cursor.blockFormat()
        block_format.setProperty(
            QTextFormat.Property.BlockTrailingHorizontalRulerWidth,
            QTextLength(QTextLength.Type.PercentageLength, 100),
        )
        self._cursor.setBlockFormat(block_format)

    def _on_blockquote_open(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        self._quotes += 1

    def _on_blockquote_close(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        self._quotes -= 1

    # ---- lists ----

    def _on_bullet_list_open(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        depth = len(self._lists)
        styles = (
            QTextListFormat.Style.ListDisc,
            QTextListFormat.Style.ListCircle,
            QTextListFormat.Style.ListSquare,
        )
        self._open_list(styles[min(depth, 2)])

    def _on_ordered_list_open(self, token: Token, _tokens: list[Token], _position: int) -> None:
        start = token.attrs.get("start", 1)
        self._open_list(QTextListFormat.Style.ListDecimal).setStart(int(start))

    def _open_list(self, style: QTextListFormat.Style) -> QTextListFormat:
        list_format = QTextListFormat()
        list_format.setStyle(style)
        list_format.setIndent(len(self._lists) + 1)
        self._lists.append(list_format)
        self._made_lists.append(None)
        return list_format

    def _on_bullet_list_close(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        self._lists.pop()
        self._made_lists.pop()

    _on_ordered_list_close = _on_bullet_list_close

    def _on_list_item_open(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        if self._item_waits:  # "- - text": the outer marker needs a line of its own
            outer, made = self._lists.pop(), self._made_lists.pop()
            self._start_block(_HALF_GAP)
            self._lists.append(outer)
            self._made_lists.append(made)
        self._item_waits = True

    def _on_list_item_close(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        if self._item_waits:
            self._start_block(_HALF_GAP)

    # ---- tables ----

    def _on_table_open(self, _token: Token, tokens: list[Token], position: int) -> None:
        rows, columns = _table_shape(tokens, position)
        table_format = QTextTableFormat()
        table_format.setCellPadding(6)
        table_format.setCellSpacing(0)
        table_format.setBorderCollapse(True)
        table_format.setBorder(1)
        table_format.setBorderBrush(QBrush(self._style.border))
        table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        table_format.setHeaderRowCount(1)
        self._shrink_block()
        self._table = self._cursor.insertTable(max(rows, 1), max(columns, 1), table_format)
        self._fresh = False
        self._cell = (-1, 0)

    def _on_tr_open(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        self._cell = (self._cell[0] + 1, 0)

    def _on_th_open(self, token: Token, _tokens: list[Token], _position: int) -> None:
        table = self._table
        if table is None:
            return
        row, column = self._cell
        self._cell = (row, column + 1)
        if row >= table.rows() or column >= table.columns():
            return
        self._cursor = table.cellAt(row, column).firstCursorPosition()
        block_format = QTextBlockFormat()
        sides = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}
        alignment = str(token.attrs.get("style", "")).removeprefix("text-align:")
        if alignment in sides:
            block_format.setAlignment(sides[alignment])
        self._cursor.setBlockFormat(block_format)
        self._cursor.setBlockCharFormat(self._base)

    _on_td_open = _on_th_open

    def _on_table_close(self, _token: Token, _tokens: list[Token], _position: int) -> None:
        if self._table is None:
            return
        self._cursor = self._table.lastCursorPosition()
        self._cursor.movePosition(QTextCursor.MoveOperation.NextBlock)
        self._shrink_block()
        self._table = None

    def _shrink_block(self) -> None:
        """Qt keeps a paragraph before and after a table; make an empty one invisible."""
        if self._cursor.block().length() > 1:
            return
        block_format = QTextBlockFormat()
        block_format.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        char_format = QTextCharFormat()
        font = QFont(self._style.body_font)
        font.setPixelSize(1)
        char_format.setFont(font)
        self._cursor.setBlockFormat(block_format)
        self._cursor.setBlockCharFormat(char_format)

    # ---- inline ----

    def _insert(self, text: str, char_format: QTextCharFormat, accepted: bytes = b"") -> None:
        _insert(self._cursor, text, char_format, self._style, accepted)

    def _marks_of(self, inline: Token, is_cell: bool) -> bytes:
        """For each character of the inline source whether it was drafted."""
        assert inline.map is not None
        first = inline.map[0]
        if not is_cell:
            return self._marks_of_lines(inline.content.split("\n"), first)
        begin = self._cell_end[1] if self._cell_end[0] == first else 0
        source, accepted = self._source[first], self._accepted[first]
        marks, end = marks_within(inline.content, source, accepted, begin)
        self._cell_end = (first, end)
        return marks

    def _marks_of_lines(self, lines: list[str], first: int) -> bytes:
        return joined(
            [
                marks_at_end(line, self._source[number], self._accepted[number])
                if number < len(self._source)
                else bytes(len(line))
                for number, line in enumerate(lines, first)
            ]
        )

    def _write_inline(self, inline: Token, base: QTextCharFormat, accepted: bytes) -> None:
        stack = [base]
        for child in inline.children or []:
            top = stack[-1]
            marks = _marks_within_inline(child, inline.content, accepted) if accepted else b""
            if child.nesting == 1:
                stack.append(self._opened(child, top))
            elif child.nesting == -1:
                if len(stack) > 1:
                    stack.pop()
            elif child.type in ("softbreak", "hardbreak"):
                self._insert("\n", top)
            elif child.type == "code_inline":
                code = QTextCharFormat(top)
                code.setFontFamilies(self._style.code_font.families())
                code.setProperty(
                    QTextFormat.Property.FontPixelSize, self._style.code_font.pixelSize()
                )
                code.setFontFixedPitch(True)
                code.setBackground(QBrush(self._style.inline_code))
                self._insert(child.content, code, marks)
            elif child.type == "image":
                self._write_image(child, top)
            else:
                self._insert(child.content, top, marks)

    def _opened(self, token: Token, above: QTextCharFormat) -> QTextCharFormat:
        char_format = QTextCharFormat(above)
        if token.type == "strong_open":
            char_format.setFontWeight(QFont.Weight.Bold)
        elif token.type == "em_open":
            char_format.setFontItalic(True)
        elif token.type == "s_open":
            char_format.setFontStrikeOut(True)
        elif token.type == "link_open":
            self._make_link(char_format, str(token.attrs.get("href", "")))
        return char_format

    def _write_image(self, token: Token, above: QTextCharFormat) -> None:
        """Pictures are never loaded: their words stand in, as a link to where they are."""
        char_format = QTextCharFormat(above)
        char_format.setFontItalic(True)
        self._make_link(char_format, str(token.attrs.get("src", "")))
        self._insert(f"[picture: {token.content or 'no description'}]", char_format)

    def _make_link(self, char_format: QTextCharFormat, address: str) -> None:
        char_format.setAnchor(True)
        char_format.setAnchorHref(address)
        char_format.setForeground(self._style.accent)
        char_format.setFontUnderline(True)


def _marks_within_inline(token: Token, source: str, accepted: bytes) -> bytes:
    """For each character of a token's content whether it was drafted."""
    offsets = content_offsets(token, source)
    if offsets is None:
        return b""
    marks = accepted[offsets.start : offsets.stop]
    return marks if len(marks) == len(token.content) else marks[:1] * len(token.content)


def _table_shape(tokens: list[Token], position: int) -> tuple[int, int]:
    rows = columns = 0
    for token in tokens[position:]:
        if token.type == "tr_open":
            rows += 1
        elif token.type == "th_open":
            columns += 1
        elif token.type == "table_close":
            break
    return rows, columns
