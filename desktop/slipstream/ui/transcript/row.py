"""One block of a message on the page: its height, known or guessed, and its document."""

from __future__ import annotations

from collections import OrderedDict
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QPainter,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)

from slipstream.ui.theme import RADIUS_CONTROL
from slipstream.ui.transcript.accepted import AcceptedText
from slipstream.ui.transcript.blocks import Block, BlockKind
from slipstream.ui.transcript.document import build_document
from slipstream.ui.transcript.style import ReadingStyle

_FUZZY = Qt.HitTestAccuracy.FuzzyHit
_CODE_PAD = 12  # inside a code block, pixels
_QUOTE_PAD = 16  # from a quotation's bar to its text, pixels
_GAPS = {  # above a block that is not the first, pixels
    BlockKind.HEADING: 20,
    BlockKind.CODE: 12,
    BlockKind.TABLE: 12,
    BlockKind.QUOTE: 12,
    BlockKind.RULE: 20,
}
_GAP = 11  # above every other block: three quarters of the text size


class Row:
    """A block with its place in a column of text. Created cheaply, laid out when in sight."""

    def __init__(
        self, block: Block, references: dict[str, object], accepted: AcceptedText, muted: bool
    ) -> None:
        self.block = block
        self._references = references
        self._accepted = accepted
        self._muted = muted
        self._document: QTextDocument | None = None
        self._height = 0
        self._measured_for = (-1, 0)  # the width and the text size `_height` is true for

    # ---- geometry ----

    def gap_above(self) -> int:
        """Space to the block before it."""
        if self.block.continues:
            return 4 if self.block.kind is BlockKind.LIST_ITEM else 0
        return _GAPS.get(self.block.kind, _GAP)

    def is_measured(self, width: int, style: ReadingStyle) -> bool:
        """Whether `height` is exact at this width and text size."""
        return self._measured_for == (width, style.reading_px)

    def height(self, width: int, style: ReadingStyle) -> int:
        """Height in pixels, guessed from the text's length while it is not measured."""
        if self.is_measured(width, style):
            return self._height
        if self.block.kind is BlockKind.RULE:
            return 9
        source = self.block.source
        per_line = max(8, int(width / (style.reading_px * 0.52)))
        lines = max(len(source) // per_line + 1, source.count("\n") + 1)
        return lines * style.line_height + self._pad_above() + self._pad_below()

    def measure(self, width: int, style: ReadingStyle, cache: DocumentCache) -> bool:
        """Make the height exact; True when that changed it."""
        before = self.height(width, style)
        if self.block.kind is BlockKind.RULE:
            self._height = 9
        else:
            document = self.document(style, cache)
            inner = max(40, width - self._pad_left() - self._pad_right())
            if document.textWidth() != inner:
                document.setTextWidth(inner)
            size = document.documentLayout().documentSize()
            self._height = ceil(size.height()) + self._pad_above() + self._pad_below()
        self._measured_for = (width, style.reading_px)
        return self._height != before

    def _pad_above(self) -> int:
        return (
            _CODE_PAD - 4 if self.block.kind is BlockKind.CODE and not self.block.continues else 0
        )

    def _pad_below(self) -> int:
        return _CODE_PAD if self.block.kind is BlockKind.CODE and not self.block.continued else 0

    def _pad_left(self) -> int:
        return {BlockKind.CODE: _CODE_PAD + 2, BlockKind.QUOTE: _QUOTE_PAD}.get(self.block.kind, 0)

    def _pad_right(self) -> int:
        return _CODE_PAD + 2 if self.block.kind is BlockKind.CODE else 0

    # ---- text ----

    def document(self, style: ReadingStyle, cache: DocumentCache) -> QTextDocument:
        """The laid-out text, built again when it was let go."""
        if self._document is None:
            muted = self._muted or self.block.kind is BlockKind.QUOTE
            marks = self._accepted.marks_of(self.block) if style.shows_accepted else ()
            self._document = build_document(self.block, self._references, style, muted, marks)
            width, _ = self._measured_for
            if width > 0:
                inner = max(40, width - self._pad_left() - self._pad_right())
                self._document.setTextWidth(inner)
        cache.touch(self)
        return self._document

    def release(self) -> None:
        """Let the document go; the height stays known."""
        self._document = None

    def character_at(
        self, x: float, y: float, style: ReadingStyle, cache: DocumentCache
    ) -> tuple[int, str]:
        """The text position nearest to a point of the row, and the link there or ""."""
        if self.block.kind is BlockKind.RULE:
            return 0, ""
        layout = self.document(style, cache).documentLayout()
        point = QPointF(x - self._pad_left(), y - self._pad_above())
        position = layout.hitTest(point, _FUZZY)
        return max(0, position), layout.anchorAt(point)

    def text_between(self, start: int, end: int, style: ReadingStyle, cache: DocumentCache) -> str:
        """The words between two positions, list markers included where their item is."""
        document = self.document(style, cache)
        end = min(end, document.characterCount() - 1)
        parts: list[str] = []
        block = document.findBlock(start)
        while block.isValid() and block.position() <= end:
            first = max(start, block.position())
            last = min(end, block.position() + block.length() - 1)
            text = block.text()[first - block.position() : last - block.position()]
            if block.textList() is not None and first == block.position():
                text = f"{_marker(block.textList().itemText(block))} {text}"
            if block.length() > 1 or self.block.kind is BlockKind.PLAIN:
                parts.append(text.replace("\u2028", "\n"))
            block = block.next()
        return "\n".join(parts)

    # ---- painting ----

    def paint(
        self,
        painter: QPainter,
        area: QRectF,
        clip: QRectF,
        selection: tuple[int, int] | None,
        style: ReadingStyle,
        cache: DocumentCache,
    ) -> None:
        """Draw the row into `area`; `clip` is the part of it in sight."""
        kind = self.block.kind
        if kind is BlockKind.RULE:
            painter.fillRect(QRectF(area.left(), area.center().y(), area.width(), 1), style.border)
            return
        if kind is BlockKind.CODE:
            self._paint_code_ground(painter, area, style)
        elif kind is BlockKind.QUOTE:
            painter.fillRect(QRectF(area.left(), area.top(), 3, area.height()), style.border)
        context = QAbstractTextDocumentLayout.PaintContext()
        document = self.document(style, cache)
        left, top = area.left() + self._pad_left(), area.top() + self._pad_above()
        context.clip = clip.translated(-left, -top)
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Text, style.muted if self._muted else style.text)
        context.palette = palette
        if selection is not None:
            context.selections = [_selection(document, selection, style)]
        painter.save()
        painter.translate(left, top)
        document.documentLayout().draw(painter, context)
        painter.restore()

    def _paint_code_ground(self, painter: QPainter, area: QRectF, style: ReadingStyle) -> None:
        """A rounded ground; runs of one code block meet with straight edges."""
        painter.setPen(style.border)
        painter.setBrush(style.code_block)
        ground = area.adjusted(0.5, 0.5, -0.5, -0.5)
        radius = RADIUS_CONTROL
        painter.save()
        painter.setClipRect(area)
        if self.block.continues:
            ground.setTop(ground.top() - radius)
        if self.block.continued:
            ground.setBottom(ground.bottom() + radius)
        painter.drawRoundedRect(ground, radius, radius)
        painter.restore()


class DocumentCache:
    """The rows whose documents are kept; `trim` leaves the `limit` latest."""

    def __init__(self, limit: int = 128) -> None:
        self._limit = limit
        self._rows: OrderedDict[Row, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def touch(self, row: Row) -> None:
        """Note that the row's document is in use."""
        self._rows[row] = None
        self._rows.move_to_end(row)

    def trim(self) -> None:
        """Let the documents go that were not used for longest."""
        while len(self._rows) > self._limit:
            row, _ = self._rows.popitem(last=False)
            row.release()

    def clear(self) -> None:
        """Let all documents go."""
        for row in self._rows:
            row.release()
        self._rows.clear()


def _marker(text: str) -> str:
    return text if text and text[0].isalnum() else "•"


def _selection(
    document: QTextDocument, span: tuple[int, int], style: ReadingStyle
) -> QAbstractTextDocumentLayout.Selection:
    last = document.characterCount() - 1
    cursor = QTextCursor(document)
    cursor.setPosition(min(span[0], last))
    cursor.setPosition(min(span[1], last), QTextCursor.MoveMode.KeepAnchor)
    char_format = QTextCharFormat()
    char_format.setBackground(style.selection)
    selection = QAbstractTextDocumentLayout.Selection()
    selection.cursor = cursor
    selection.format = char_format
    return selection
