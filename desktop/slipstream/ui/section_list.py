"""A list in titled sections: rows of a few lines under headers that cannot be chosen.

The chat list and the model menu are made of it; it knows neither chats nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from slipstream.ui.icons import icon_pixmap
from slipstream.ui.painting import focus_ring, rounded
from slipstream.ui.theme import (
    CAPTION_PX,
    CONTROL_PX,
    SPACE_S,
    disabled_text,
    interface_font,
    mix,
    theme,
)
from slipstream.ui.wrapping import broken_lines, fitting_facts

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = int(Qt.ItemDataRole.UserRole)
_HEADER_HEIGHT, _LINE_HEIGHT, _TWO_LINES_HEIGHT = 30, 32, 48
_TITLE_LINE, _NOTE_LINE, _NOTE_LINES = 18, 16, 3
_BESIDE = SPACE_S + SPACE_S // 2  # between the row's edge and its words


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row: its key, up to two lines, an icon and a tooltip; or the header of a section.

    `caption` is one line of facts, `note` a sentence below it that may take three.
    """

    key: str
    title: str
    caption: str = ""
    note: str = ""
    tooltip: str = ""
    icon: str = ""
    header: bool = False
    enabled: bool = True
    editable: bool = False


class SectionListModel(QAbstractListModel):
    """The rows of a list. `renamed` (key, title) reports a title that a person typed."""

    renamed = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ListRow] = []

    @property
    def rows(self) -> tuple[ListRow, ...]:
        """All rows from top to bottom, headers included."""
        return tuple(self._rows)

    def set_rows(self, rows: Sequence[ListRow]) -> None:
        """Replaces all rows."""
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def index_of(self, key: str) -> QModelIndex:
        """Where the row with a key is; invalid if it is not there."""
        for number, row in enumerate(self._rows):
            if row.key == key and not row.header:
                return self.index(number)
        return QModelIndex()

    def row_at(self, index: Index) -> ListRow | None:
        """The row at an index; None for an invalid one."""
        return self._rows[index.row()] if index.isValid() else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row_at(index)
        if row is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.tooltip or None
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(part for part in (row.title, row.caption, row.note) if part)
        return row if role == ROW_ROLE else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        row = self.row_at(index)
        if row is None or row.header or not row.enabled:
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return flags | Qt.ItemFlag.ItemIsEditable if row.editable else flags

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self.row_at(index)
        title = str(value).strip()
        if row is None or not title or title == row.title:
            return False
        self.renamed.emit(row.key, title)
        return True


class SectionListDelegate(QStyledItemDelegate):
    """Paints the rows; long titles lose their end, or their middle where that tells files apart."""

    def __init__(
        self,
        parent: QWidget | None = None,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        super().__init__(parent)
        self._elide = elide

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row = index.data(ROW_ROLE)
        if row.header:
            return QSize(80, _HEADER_HEIGHT)
        if row.note:
            view = option.widget
            assert isinstance(view, QListView)
            lines = _note_lines(row, view.viewport().width())
            titles = _TITLE_LINE * (2 if row.caption else 1)
            return QSize(80, 12 + titles + len(lines) * _NOTE_LINE)
        return QSize(80, _TWO_LINES_HEIGHT if row.caption else _LINE_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: ListRow = index.data(ROW_ROLE)
        tokens = theme().current()
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        area = rect.adjusted(SPACE_S, 0, -SPACE_S, 0)
        painter.save()
        if row.header:
            painter.setFont(interface_font(CAPTION_PX))
            painter.setPen(QColor(tokens.muted))
            below = area.adjusted(SPACE_S // 2, 0, 0, -6)
            painter.drawText(below, _BOTTOM_LEFT, row.title)
            painter.restore()
            return
        view = option.widget
        focused = bool(state & QStyle.StateFlag.State_HasFocus) and view.hasFocus()
        box = QRectF(rect.adjusted(SPACE_S // 2, 1, -SPACE_S // 2, -1))
        if state & QStyle.StateFlag.State_Selected:
            rounded(painter, box, QColor(mix(tokens.accent, tokens.surface, 0.16)))
            if not focused:
                bar = QRectF(box.left(), box.center().y() - 8, 3, 16)
                rounded(painter, bar, QColor(tokens.accent), None, 1.5)
        elif state & QStyle.StateFlag.State_MouseOver and row.enabled:
            rounded(painter, box, QColor(mix(tokens.text, tokens.surface, 0.06)))
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # that of each text
        text = area.adjusted(SPACE_S // 2, 0, -SPACE_S // 2, 0)
        if row.icon:
            picture = icon_pixmap(row.icon, "muted", 16, painter.device().devicePixelRatio())
            painter.drawPixmap(text.left(), text.center().y() - 7, picture)
            text.setLeft(text.left() + 16 + SPACE_S)
        faded = QColor(disabled_text(tokens))
        painter.setPen(QColor(tokens.text) if row.enabled else faded)
        if not row.caption and not row.note:
            self._words(painter, text, row.title, CONTROL_PX, self._elide)
        else:
            line = QRect(text.left(), text.top() + 6, text.width(), _TITLE_LINE)
            self._words(painter, line, row.title, CONTROL_PX, self._elide)
            painter.setPen(QColor(tokens.muted))
            painter.setFont(interface_font(CAPTION_PX))
            if row.caption:
                line.translate(0, _TITLE_LINE)
                facts = fitting_facts(row.caption, painter.fontMetrics(), line.width())
                painter.drawText(line, _MIDDLE_LEFT, facts)
            line.translate(0, _TITLE_LINE)
            line.setHeight(_NOTE_LINE)
            for words in _note_lines(row, rect.width()):
                painter.drawText(line, _MIDDLE_LEFT, words)
                line.translate(0, _NOTE_LINE)
        if focused:
            focus_ring(painter, box, tokens)
        painter.restore()

    def _words(
        self, painter: QPainter, area: QRect, words: str, px: int, elide: Qt.TextElideMode
    ) -> None:
        font = interface_font(px)
        painter.setFont(font)
        shown = QFontMetrics(font).elidedText(words, elide, area.width())
        painter.drawText(area, _MIDDLE_LEFT, shown)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName("Title")
        editor.setToolTip("Enter keeps the title, Escape leaves it as it was")
        editor.setMaxLength(200)
        return editor

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        assert isinstance(editor, QLineEdit)
        model.setData(index, editor.text())

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        editor.setGeometry(option.rect.adjusted(4, 0, -4, 0))


def _note_lines(row: ListRow, width: int) -> list[str]:
    """The note as it is broken in a row of a width, which has no icon."""
    if not row.note:
        return []
    room = max(width - 2 * _BESIDE, 40)
    return broken_lines(row.note, interface_font(CAPTION_PX), room, _NOTE_LINES)


_MIDDLE_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_BOTTOM_LEFT = Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft


class SectionListView(QListView):
    """A list view dressed for sections: no frame of its own, whole rows, no sideways scrolling."""

    def __init__(self, delegate: SectionListDelegate, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        delegate.setParent(self)
        self.setItemDelegate(delegate)
        self.setMouseTracking(True)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setUniformItemSizes(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setStyleSheet("QListView, QListView:focus { border: none; background: transparent; }")
