"""The conversation as a page to read: paints what is in sight, follows the answer as it grows.

Knows records and text pieces only; nothing of engines, storage or threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    QUrl,
    Signal,
    Slot,
)
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QCursor,
    QDesktopServices,
    QFocusEvent,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QFrame,
    QMenu,
    QToolButton,
    QToolTip,
    QWidget,
)

from slipstream.chat.preferences import LARGEST_TEXT, SMALLEST_TEXT
from slipstream.chat.records import Message, Role
from slipstream.engine.events import TextPiece
from slipstream.ui.icons import icon_pixmap, set_icon
from slipstream.ui.theme import (
    RADIUS_CARD,
    RADIUS_CONTROL,
    READING_PX,
    SPACE_L,
    SPACE_XL,
    theme,
)
from slipstream.ui.transcript.heights import HeightIndex
from slipstream.ui.transcript.item import Entry, MessageItem, Place, answer_label, item_gap
from slipstream.ui.transcript.row import DocumentCache, Row
from slipstream.ui.transcript.selection import Position, Selection
from slipstream.ui.transcript.style import ReadingStyle

_TOP_MARGIN = SPACE_XL
_SIDE_MARGIN = 28  # room for the grounds' outset and the scroll bar
_OUTSET = 14  # how far grounds reach beyond the text column
_AT_END = 4  # pixels from the end that still count as the end
_SETTLE_ROUNDS = 12
_AROUND = 160  # pixels above and below the view that are laid out ahead
_SAFE_SCHEMES = ("http", "https", "mailto")
_BUTTON = 36


class TranscriptView(QAbstractScrollArea):
    """Shows one conversation.

    The bottom is followed while it is in sight; scrolling up lets go of it, `scroll_to_end` or
    the round button take it up again. Text is selected with the mouse across messages.
    """

    end_reached_changed = Signal(bool)  # whether the view follows the end
    reading_size_changed = Signal(int)  # pixels, after a person's change
    menu_opening = Signal(object, object)  # QMenu, and the Message it is for, None for none

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("transcript")
        self.setAccessibleName("Conversation")
        self.setAccessibleDescription(
            "Arrow and page keys scroll, End jumps to the newest text, "
            "Enter folds or unfolds the reasoning in sight, Ctrl+A and Ctrl+C select and copy."
        )
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumWidth(240)
        self.viewport().setMouseTracking(True)
        # every paint fills its ground, so nothing behind it needs painting
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.verticalScrollBar().setSingleStep(36)
        self._style = ReadingStyle(theme().current())
        self._items: list[MessageItem] = []
        self._heights = HeightIndex()
        self._cache = DocumentCache()
        self._column = 0
        self._following = True
        self._settling = False
        self._settled_value = 0  # where the last settling left the scroll bar
        self._settled_anchor: tuple[int, int, int] | None = None  # and what was at the top then
        self._selection = Selection()
        self._selecting = False
        self._pressed_link = ""
        self._empty_title, self._empty_body = "", ""
        self._late_text = QTimer(self)
        self._late_text.setSingleShot(True)
        self._late_text.setInterval(120)
        self._late_text.timeout.connect(self._show_late_text)
        self._jump_button = self._make_jump_button()
        self._copy_action = self._make_action("Copy", QKeySequence.StandardKey.Copy)
        self._copy_action.triggered.connect(self.copy_selection)
        self._select_all_action = self._make_action(
            "Select all", QKeySequence.StandardKey.SelectAll
        )
        self._select_all_action.triggered.connect(self.select_all)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        theme().changed.connect(self._on_theme_changed)

    # ---- the interface ----

    def set_conversation(self, messages: Sequence[Message]) -> None:
        """Show these messages from the end; an answer that was being written is dropped."""
        self._items = [
            MessageItem(message, answer_label(message))
            for message in messages
            if message.role is not Role.SYSTEM
        ]
        self._cache.clear()
        self._selection.clear()
        self._late_text.stop()
        self._following = True
        self._measure_all()
        self._settle()

    def append_user(self, message: Message) -> None:
        """Add what the person said and go to the end."""
        self._add(MessageItem(message, answer_label(message)))

    def begin_answer(self, model_name: str) -> None:
        """Make room for an answer of this model."""
        self._add(MessageItem(None, model_name or "Assistant"))

    def set_progress(self, done: int, total: int) -> None:
        """Show how many prompt tokens have been read, where the answer will stand."""
        item = self._live_item()
        if item is not None:
            item.progress = (done, total)
            self.viewport().update()

    def append_run(self, pieces: Sequence[TextPiece]) -> None:
        """Add the text that arrived since the last frame to the answer being written."""
        if not pieces:
            return
        if self._live_item() is None:
            self.begin_answer("")
        item = self._items[-1]
        item.append(pieces)
        if item.is_behind():
            self._late_text.start()
        self._settle(unchanged_above=item.changed_top())

    def finish(self, message: Message) -> None:
        """Replace the answer being written by its final form, with its numbers."""
        self._late_text.stop()
        item = self._live_item()
        if item is None:
            self._items.append(MessageItem(message, answer_label(message)))
            self._heights.append(0)
        else:
            item.finish(message)
        self._settle()

    def clear(self) -> None:
        """Show nothing but the empty state."""
        self.set_conversation(())

    def set_empty_state(self, title: str, body: str) -> None:
        """The words shown while there is no conversation."""
        self._empty_title, self._empty_body = title, body
        self.viewport().update()

    @Slot(bool)
    def show_accepted(self, shown: bool) -> None:
        """Colour what came from accepted draft tokens, or nothing."""
        self._restyle(shows_accepted=shown)

    @property
    def reading_size(self) -> int:
        """Size of the text in pixels."""
        return self._style.reading_px

    def set_reading_size(self, pixels: int) -> None:
        """Show text in this size, as far as it is a usable one; what is read stays in sight."""
        pixels = max(SMALLEST_TEXT, min(LARGEST_TEXT, pixels))
        if pixels != self.reading_size:
            self._restyle(reading_px=pixels)

    def change_reading_size(self, step: int) -> None:
        """Make the text so many pixels larger, or smaller, as a person asked; 0: the usual size."""
        before = self.reading_size
        self.set_reading_size(before + step if step else READING_PX)
        if self.reading_size != before:
            self.reading_size_changed.emit(self.reading_size)

    def plain_text(self) -> str:
        """The conversation as text: for each message a line saying who ("You" or the model's
        name), then its text as written, without reasoning and numbers; a blank line between."""
        return "\n\n".join(item.plain_text() for item in self._items)

    def answer_text(self, index: int = -1) -> str:
        """The text as written of one answer, by default the last; "" when there is none."""
        answers = [item for item in self._items if not item.is_user]
        try:
            return answers[index].text()
        except IndexError:
            return ""

    def is_at_end(self) -> bool:
        """Whether the end is in sight and will be followed."""
        return self._following

    @Slot()
    def scroll_to_end(self) -> None:
        """Show the end and follow it from now on."""
        self._set_following(True)
        self._settle()

    def selected_text(self) -> str:
        """The selected words; whole messages in between come as they were written."""
        return self._selection.text(self._items, self._column, self._style, self._cache)

    @Slot()
    def copy_selection(self) -> None:
        """Put the selected words on the clipboard."""
        text = self.selected_text()
        if text:
            QApplication.clipboard().setText(text)

    @Slot()
    def select_all(self) -> None:
        """Select the whole conversation."""
        self._selection.select_all(len(self._items))
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(self._style.measure() + 4 * _SIDE_MARGIN, 480)

    # ---- layout ----

    def _live_item(self) -> MessageItem | None:
        return self._items[-1] if self._items and self._items[-1].is_live else None

    def _add(self, item: MessageItem) -> None:
        self._items.append(item)
        self._heights.append(item.height(self._column, self._style) if self._column else 0)
        self._set_following(True)
        self._settle()

    def _measure_all(self) -> None:
        """Guess or recall the height of every message at the present width."""
        self._column = self._column_width()
        self._heights.reset(item.height(self._column, self._style) for item in self._items)

    def _column_width(self) -> int:
        """Measured on the whole widget, so that the scroll bar moves nothing when it appears."""
        return max(120, min(self._style.measure(), self.width() - 2 * _SIDE_MARGIN))

    def _column_left(self) -> int:
        return (self.width() - self._column) // 2

    def _settle(
        self, anchor: tuple[int, int, int] | None = None, unchanged_above: int | None = None
    ) -> None:
        """Make everything in sight exact without moving what is being read.

        `anchor` (message, entry, pixels from the entry's top to the top of the view) is what
        stays put; without one it is the end while that is followed, else what is at the top.
        `unchanged_above` says that only the last message changed, from that many pixels below its
        top, and nothing else needs painting unless the view scrolls.
        """
        if self._settling:
            return
        self._settling = True
        before = self.verticalScrollBar().value(), self._column
        try:
            bar = self.verticalScrollBar()
            if anchor is None and not self._following:
                anchor = self._anchor()
            if self._column != self._column_width():
                self._measure_all()
            for _ in range(_SETTLE_ROUNDS):
                self._update_range()
                if anchor is not None:
                    bar.setValue(self._anchored_value(anchor))
                elif self._following:
                    bar.setValue(bar.maximum())
                if not self._prepare_sight():
                    break
            self._update_range()
            if anchor is not None:
                bar.setValue(self._anchored_value(anchor))
            elif self._following:
                bar.setValue(bar.maximum())
            self._cache.trim()
        finally:
            self._settling = False
        self._settled_value = bar.value()
        self._settled_anchor = self._anchor()
        self._place_jump_button()
        if unchanged_above is None or before != (bar.value(), self._column):
            self.viewport().update()
        else:
            top = self._heights.start(len(self._items) - 1) + _TOP_MARGIN - bar.value()
            self.viewport().update(self.viewport().rect().adjusted(0, top + unchanged_above, 0, 0))

    def _update_range(self) -> None:
        if self._items:  # the last message changes most often, and at no cost
            last = len(self._items) - 1
            self._heights.set(last, self._items[last].height(self._column, self._style))
        bar = self.verticalScrollBar()
        view = self.viewport().height()
        total = self._heights.total() - item_gap() + _TOP_MARGIN + SPACE_XL if self._items else 0
        bar.setPageStep(view)
        bar.setRange(0, max(0, total - view))

    def _prepare_sight(self) -> bool:
        """Lay out what is in sight and a little around it; True when a height changed."""
        if not self._items:
            return False
        top = self.verticalScrollBar().value() - _TOP_MARGIN - _AROUND
        bottom = top + self.viewport().height() + 2 * _AROUND
        changed = False
        index = self._heights.find(top)
        while index < len(self._items):
            start = self._heights.start(index)
            if start > bottom:
                break
            item = self._items[index]
            if item.prepare(top - start, bottom - start, self._column, self._style, self._cache):
                changed = True
                self._heights.set(index, item.height(self._column, self._style))
            index += 1
        return changed

    def _anchor(self) -> tuple[int, int, int] | None:
        """What is at the top of the view."""
        if not self._items or not self._column:
            return None
        top = self.verticalScrollBar().value() - _TOP_MARGIN
        index = self._heights.find(top)
        within = top - self._heights.start(index)
        item = self._items[index]
        number = item.entry_number_at(within, self._column, self._style)
        entries = item.entries(self._column, self._style)
        return index, number, within - (entries[number].top if entries else 0)

    def _anchored_value(self, anchor: tuple[int, int, int]) -> int:
        index, number, offset = anchor
        if index >= len(self._items):
            return self.verticalScrollBar().maximum()
        entries = self._items[index].entries(self._column, self._style)
        top = entries[min(number, len(entries) - 1)].top if entries else 0
        return self._heights.start(index) + top + offset + _TOP_MARGIN

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.end_reached_changed.emit(following)

    @Slot(int)
    def _on_scrolled(self, value: int) -> None:
        if self._settling:
            return
        self._set_following(value >= self.verticalScrollBar().maximum() - _AT_END)
        # What was read stays where the scrolling puts it, although heights above it may change;
        # a long leap and the very top count from the top instead.
        moved = value - self._settled_value
        anchor = self._settled_anchor
        is_leap = abs(moved) > 2 * self.viewport().height()
        if anchor is None or self._following or is_leap or value == 0:
            self._settle()
        else:
            self._settle((anchor[0], anchor[1], anchor[2] + moved))

    @Slot()
    def _show_late_text(self) -> None:
        item = self._live_item()
        if item is not None:
            item.refresh(force=True)
            self._settle()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._restyle()

    def _restyle(
        self, *, shows_accepted: bool | None = None, reading_px: int | None = None
    ) -> None:
        """Draw everything anew; what is not given stays as it is."""
        before = self._style
        anchor = None if self._following else self._anchor()
        self._style = ReadingStyle(
            theme().current(),
            before.reading_px if reading_px is None else reading_px,
            shows_accepted=before.shows_accepted if shows_accepted is None else shows_accepted,
        )
        self._cache.clear()
        if self._items and self._column:
            self._measure_all()
        self._settle(anchor)

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._settle()

    # ---- painting ----

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(event.rect(), self._style.page)
        if not self._items:
            self._paint_empty_state(painter)
        else:
            self._paint_messages(painter, event.rect())
        if self.hasFocus():
            painter.setPen(QPen(self._style.accent, 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(self.viewport().rect().adjusted(1, 1, -1, -1), 4, 4)
        painter.end()

    def _paint_messages(self, painter: QPainter, clip: QRect) -> None:
        shift = _TOP_MARGIN - self.verticalScrollBar().value()
        index = self._heights.find(clip.top() - shift)
        while index < len(self._items):
            top = self._heights.start(index) + shift
            if top > clip.bottom():
                break
            self._paint_item(painter, clip, index, top)
            index += 1
        self._cache.trim()

    def _paint_item(self, painter: QPainter, clip: QRect, index: int, top: int) -> None:
        item, style, left = self._items[index], self._style, self._column_left()
        if item.is_user:
            height = item.height(self._column, style) - item_gap()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.user_block)
            ground = QRectF(left - _OUTSET, top, self._column + 2 * _OUTSET, height)
            painter.drawRoundedRect(ground, RADIUS_CARD, RADIUS_CARD)
        entries = item.entries(self._column, style)
        first = item.entry_number_at(clip.top() - top, self._column, style)
        for number in range(first, len(entries)):
            entry = entries[number]
            area = QRectF(left, top + entry.top, self._column, entry.height)
            if area.top() > clip.bottom():
                break
            if entry.row is not None:
                self._paint_row(painter, QRectF(clip), index, entry, area)
            else:
                self._paint_words(painter, item, entry, area)

    def _paint_row(
        self, painter: QPainter, clip: QRectF, index: int, entry: Entry, area: QRectF
    ) -> None:
        row = entry.row
        assert row is not None
        if entry.place is Place.REASONING:
            self._paint_reasoning_bar(painter, area, row, first=entry.index == 0)
            area = area.adjusted(16, 0, 0, 0)
        span = self._selection.span_in(index, entry.place is Place.TEXT, entry.index)
        row.paint(painter, area, clip, span, self._style, self._cache)

    def _paint_reasoning_bar(self, painter: QPainter, area: QRectF, row: Row, first: bool) -> None:
        gap = 0 if first else row.gap_above()
        bar = QRectF(area.left() + 3, area.top() - gap, 2, area.height() + gap)
        painter.fillRect(bar, self._style.border)

    def _paint_words(
        self, painter: QPainter, item: MessageItem, entry: Entry, area: QRectF
    ) -> None:
        style = self._style
        if entry.place is Place.LABEL:
            painter.setFont(style.label_font)
            painter.setPen(style.muted)
            words = QFontMetrics(style.label_font).elidedText(
                item.label, Qt.TextElideMode.ElideMiddle, self._column
            )
            painter.drawText(area, Qt.AlignmentFlag.AlignLeft, words)
        elif entry.place is Place.FOLD:
            self._paint_fold(painter, item, area)
        elif entry.place is Place.PROGRESS:
            self._paint_progress(painter, item, area)
        elif entry.place is Place.FOOTER:
            painter.setFont(style.caption_font)
            painter.setPen(style.muted)
            painter.drawText(area, int(Qt.TextFlag.TextWordWrap.value), item.footer_words())

    def _paint_fold(self, painter: QPainter, item: MessageItem, area: QRectF) -> None:
        style = self._style
        if self._is_hovered(area):
            width = QFontMetrics(style.caption_font).horizontalAdvance(item.fold_words()) + 32
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.inline_code)
            ground = QRectF(area.left() - 4, area.top(), width, area.height() - 2)
            painter.drawRoundedRect(ground, RADIUS_CONTROL, RADIUS_CONTROL)
        name = "chevron-down" if item.is_open else "chevron-right"
        arrow = icon_pixmap(name, "muted", 14, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(area.left(), area.top() + 5), arrow)
        painter.setFont(style.caption_font)
        painter.setPen(style.muted)
        words = area.adjusted(20, 0, 0, -2)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, item.fold_words())

    def _paint_progress(self, painter: QPainter, item: MessageItem, area: QRectF) -> None:
        style = self._style
        painter.setFont(style.caption_font)
        painter.setPen(style.muted)
        painter.drawText(area, Qt.AlignmentFlag.AlignTop, item.progress_words())
        done, total = item.progress
        if total > 0:
            bar = QRectF(area.left(), area.bottom() - 6, min(220, area.width()), 4)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.border)
            painter.drawRoundedRect(bar, 2, 2)
            bar.setWidth(max(4.0, bar.width() * min(1.0, done / total)))
            painter.setBrush(style.accent)
            painter.drawRoundedRect(bar, 2, 2)

    def _paint_empty_state(self, painter: QPainter) -> None:
        style = self._style
        width = min(440, self.width() - 2 * _SIDE_MARGIN)
        box = QRect(0, 0, width, 10_000)
        wrap = int(Qt.TextFlag.TextWordWrap.value) | int(Qt.AlignmentFlag.AlignHCenter.value)
        title_font = QFont(style.body_font)
        title_font.setPixelSize(style.reading_px + 5)
        title_font.setWeight(QFont.Weight.DemiBold)
        title_height = QFontMetrics(title_font).boundingRect(box, wrap, self._empty_title).height()
        body_height = (
            QFontMetrics(style.body_font).boundingRect(box, wrap, self._empty_body).height()
        )
        left = (self.width() - width) // 2
        top = max(_TOP_MARGIN, (self.viewport().height() - title_height - body_height) // 2 - 16)
        painter.setFont(title_font)
        painter.setPen(style.text)
        painter.drawText(QRect(left, top, width, title_height), wrap, self._empty_title)
        painter.setFont(style.body_font)
        painter.setPen(style.muted)
        body = QRect(left, top + title_height + 10, width, body_height)
        painter.drawText(body, wrap, self._empty_body)

    # ---- the jump button ----

    def _make_jump_button(self) -> QToolButton:
        button = QToolButton(self)
        button.setObjectName("jump_to_end_button")
        button.setAccessibleName("Jump to the end")
        button.setToolTip("Jump to the newest text (End)")
        button.setFixedSize(_BUTTON, _BUTTON)
        button.setIconSize(QSize(18, 18))
        button.setCursor(Qt.CursorShape.ArrowCursor)
        button.setProperty("kind", "round")
        set_icon(button, "jump-to-end")
        button.clicked.connect(self.scroll_to_end)
        button.hide()
        return button

    def _place_jump_button(self) -> None:
        view = self.viewport().geometry()
        x = (self.width() - _BUTTON) // 2
        self._jump_button.move(x, view.bottom() - _BUTTON - SPACE_L)
        bar = self.verticalScrollBar()
        self._jump_button.setVisible(not self._following and bar.maximum() > 0)

    # ---- mouse ----

    def _is_hovered(self, area: QRectF) -> bool:
        if not self.viewport().underMouse():
            return False
        return area.contains(QPointF(self.viewport().mapFromGlobal(QCursor.pos())))

    def _entry_at(self, point: QPoint) -> tuple[int, Entry, QPointF] | None:
        """The message and entry nearest to a point of the viewport, and the point within it."""
        if not self._items:
            return None
        y = point.y() + self.verticalScrollBar().value() - _TOP_MARGIN
        index = self._heights.find(y)
        within = y - self._heights.start(index)
        item = self._items[index]
        number = item.entry_number_at(within, self._column, self._style)
        chosen = item.entries(self._column, self._style)[number]
        return index, chosen, QPointF(point.x() - self._column_left(), within - chosen.top)

    def _position_at(self, point: QPoint) -> tuple[Position, str] | None:
        """The text position nearest to a point, and the link exactly there."""
        found = self._entry_at(point)
        if found is None:
            return None
        index, entry, within = found
        if entry.row is None:  # labels and numbers stand before and after all text
            is_after = entry.place in (Place.FOOTER, Place.PROGRESS)
            return Position(index, int(is_after), 1 << 30 if is_after else 0, 0), ""
        is_text = entry.place is Place.TEXT
        x = within.x() - (0 if is_text else 16)
        character, link = entry.row.character_at(x, within.y(), self._style, self._cache)
        return Position(index, int(is_text), entry.index, character), link

    def _fold_at(self, point: QPoint) -> tuple[int, Entry] | None:
        found = self._entry_at(point)
        if found is None or found[1].place is not Place.FOLD:
            return None
        index, entry, within = found
        is_inside = 0 <= within.y() < entry.height and -8 <= within.x() <= self._column
        return (index, entry) if is_inside else None

    def _toggle_fold(self, index: int) -> None:
        """Fold or unfold the reasoning of a message, its header staying where it is."""
        item = self._items[index]
        for number, entry in enumerate(item.entries(self._column, self._style)):
            if entry.place is Place.FOLD:
                top = self._heights.start(index) + entry.top + _TOP_MARGIN
                anchor = (index, number, self.verticalScrollBar().value() - top)
                break
        else:
            return
        self._selection.clear()
        item.toggle()
        self._heights.set(index, item.height(self._column, self._style))
        if item.is_live and self._following:
            self._settle()
            return
        self._settle(anchor)
        bar = self.verticalScrollBar()
        self._set_following(bar.value() >= bar.maximum() - _AT_END)
        self._place_jump_button()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        point = event.position().toPoint()
        fold = self._fold_at(point)
        if fold is not None:
            self._toggle_fold(fold[0])
            return
        found = self._position_at(point)
        if found is None:
            return
        position, self._pressed_link = found
        extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._selection.press(position, extend)
        self._selecting = True
        self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        if self._selecting:
            self._scroll_towards(point)
            found = self._position_at(point)
            if found is not None:
                self._selection.drag(found[0])
                self.viewport().update()
            return
        self._choose_cursor(point)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._selecting = False
        link, self._pressed_link = self._pressed_link, ""
        if link and self._selection.is_empty():
            found = self._position_at(event.position().toPoint())
            if found is not None and found[1] == link:
                open_link(link)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        found = self._position_at(event.position().toPoint())
        entry = self._entry_at(event.position().toPoint())
        if found is None or entry is None or entry[1].row is None:
            return
        position = found[0]
        cursor = QTextCursor(entry[1].row.document(self._style, self._cache))
        cursor.setPosition(position.character)
        cursor.select(QTextCursor.SelectionType.WordUnderCursor)
        self._selection.press(position.moved(cursor.selectionStart()), False)
        self._selection.drag(position.moved(cursor.selectionEnd()))
        self.viewport().update()

    def _scroll_towards(self, point: QPoint) -> None:
        """Scroll while a selection is dragged beyond the view."""
        bar = self.verticalScrollBar()
        if point.y() < 0:
            bar.setValue(bar.value() + max(-60, point.y()))
        elif point.y() > self.viewport().height():
            bar.setValue(bar.value() + min(60, point.y() - self.viewport().height()))

    def _choose_cursor(self, point: QPoint) -> None:
        shape = Qt.CursorShape.IBeamCursor
        if self._fold_at(point) is not None:
            shape = Qt.CursorShape.PointingHandCursor
        else:
            found = self._position_at(point)
            if found is not None and found[1]:
                shape = Qt.CursorShape.PointingHandCursor
        was_hand = self.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
        if self.viewport().cursor().shape() != shape:
            self.viewport().setCursor(shape)
        if was_hand or shape == Qt.CursorShape.PointingHandCursor:
            self.viewport().update()  # the fold under the pointer is tinted

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = self._position_at(event.pos())
            fold = self._fold_at(event.pos())
            words = found[1] if found is not None else ""
            if fold is not None:
                words = "Show or hide what the model thought before answering"
            QToolTip.showText(event.globalPos(), words, self.viewport())
            return True
        return super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        self._copy_action.setEnabled(not self._selection.is_empty())
        menu.addAction(self._copy_action)
        menu.addAction(self._select_all_action)
        found = self._entry_at(self.viewport().mapFromGlobal(event.globalPos()))
        self.menu_opening.emit(menu, self._items[found[0]].message if found else None)
        menu.exec(event.globalPos())
        self._copy_action.setEnabled(True)
        menu.deleteLater()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
            return
        turned = event.angleDelta().y()
        if turned:
            self.change_reading_size(1 if turned > 0 else -1)
        event.accept()

    # ---- keyboard ----

    def _make_action(self, words: str, keys: QKeySequence.StandardKey) -> QAction:
        action = QAction(words, self)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.addAction(action)
        return action

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._toggle_fold_in_sight()
        else:
            super().keyPressEvent(event)

    def _toggle_fold_in_sight(self) -> None:
        """Toggle the last reasoning whose header is in sight."""
        if not self._items:
            return
        top = self.verticalScrollBar().value() - _TOP_MARGIN
        bottom = top + self.viewport().height()
        index = self._heights.find(bottom)
        while index >= 0 and self._heights.start(index + 1) > top:
            for entry in self._items[index].entries(self._column, self._style):
                y = self._heights.start(index) + entry.top
                if entry.place is Place.FOLD and top <= y <= bottom:
                    self._toggle_fold(index)
                    return
            index -= 1

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()


def open_link(address: str) -> bool:
    """Open a link of an answer in the system's browser or mailer; refuse every other kind."""
    url = QUrl(address)
    if url.scheme().lower() not in _SAFE_SCHEMES:
        return False
    return QDesktopServices.openUrl(url)
