"""A modeless dialog for something the engine works on: progress, then a table and what it means."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import UserError
from slipstream.ui.icons import icon_pixmap
from slipstream.ui.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XL, set_kind, theme

_WIDTH = 440
_ICON = 22

Icon = tuple[str, str]
"""An icon's name and the theme's colour for it."""

INFO: Icon = ("info", "accent")
GOOD: Icon = ("check", "good")
WARNING: Icon = ("warning", "warn")
BAD: Icon = ("error", "bad")


class TaskDialog(QDialog):
    """Closing it, or Cancel, while the task runs emits `cancelled`.

    `stretched` is the column of the table that takes the room which is left.
    """

    cancelled = Signal()

    def __init__(self, title: str, name: str, *, stretched: int, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}_dialog")
        self.setWindowTitle(title)
        self.setModal(False)
        self._running = False
        self._icon_shown = INFO
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON, _ICON)
        self.title_label = QLabel()
        set_kind(self.title_label, "heading")
        self.body_label = QLabel()
        set_kind(self.body_label, "muted")
        self.body_label.setFixedWidth(_WIDTH)
        for label in (self.title_label, self.body_label):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Progress")
        self.table = QWidget()
        self._cells = QGridLayout(self.table)
        self._cells.setContentsMargins(0, 0, 0, 0)
        self._cells.setHorizontalSpacing(SPACE_L)
        self._cells.setVerticalSpacing(SPACE_S)
        self._cells.setColumnStretch(stretched, 1)
        self.close_button = QPushButton()
        self.close_button.setObjectName(f"{name}_close_button")
        self.close_button.clicked.connect(self.reject)
        self.buttons = QHBoxLayout()
        self.buttons.addStretch(1)
        self.buttons.addWidget(self.close_button)
        self._lay_out()
        theme().changed.connect(self._paint_icon)

    def _lay_out(self) -> None:
        heading = QHBoxLayout()
        heading.setSpacing(SPACE_S)
        heading.addWidget(self._icon)
        heading.addWidget(self.title_label, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_XL, SPACE_L, SPACE_XL, SPACE_L)
        column.setSpacing(SPACE_M)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        column.addLayout(heading)
        column.addWidget(self.progress)
        column.addWidget(self.table)
        column.addWidget(self.body_label)
        column.addLayout(self.buttons)

    def begin(self, title: str, body: str) -> None:
        """The task has begun."""
        self._running = True
        self.progress.setRange(0, 0)
        self.progress.show()
        self.table.hide()
        self.close_button.setText("Cancel")
        self.say(title, body, INFO)
        self.show()
        self.raise_()

    @Slot(int, int)
    def show_progress(self, done: int, total: int) -> None:
        """So much of `total` is done."""
        if self._running:
            self.progress.setRange(0, total)
            self.progress.setValue(done)

    def end(self) -> None:
        """The task is over; its outcome is said next."""
        self._running = False
        self.progress.hide()
        self.table.hide()
        self.close_button.setText("Close")

    def say(self, title: str, body: str, icon: Icon) -> None:
        """Show an outcome, or what is going on."""
        self.title_label.setText(title)
        self.body_label.setText(body)
        self.setAccessibleDescription(f"{title}. {body}")
        self._icon_shown = icon
        self._paint_icon()

    def say_error(self, error: UserError) -> None:
        """Show why the task failed."""
        self.say(error.title, " ".join(part for part in (error.detail, error.hint) if part), BAD)

    def show_table(self, rows: Sequence[Sequence[QLabel]]) -> None:
        """Show these labels in rows, in place of those before."""
        while (item := self._cells.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        for number, row in enumerate(rows):
            for column, label in enumerate(row):
                label.setTextFormat(Qt.TextFormat.PlainText)
                self._cells.addWidget(label, number, column)
        self.table.show()

    def text(self) -> str:
        """All that is written in the dialog, a line each."""
        cells = [label.text() for label in self.table.findChildren(QLabel)]
        shown = cells if self.table.isVisibleTo(self) else []
        return "\n".join([self.title_label.text(), *shown, self.body_label.text()])

    @Slot()
    def _paint_icon(self) -> None:
        name, colour = self._icon_shown
        self._icon.setPixmap(icon_pixmap(name, colour, _ICON, self.devicePixelRatioF()))

    def reject(self) -> None:
        """Esc, the button and the window's own close all come here."""
        if self._running:
            self._running = False
            self.cancelled.emit()
        super().reject()
