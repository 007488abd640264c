"""Shows a losslessness check while it runs and what it found."""

from __future__ import annotations

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

from slipstream.engine.requests import LosslessnessReport
from slipstream.errors import UserError
from slipstream.ui.icons import icon_pixmap
from slipstream.ui.losslessness_words import candidates, explanation, headline
from slipstream.ui.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XL, set_kind, theme

_WIDTH = 440
_ICON = 22
_RUNNING = "Writing the answer again"


class LosslessnessDialog(QDialog):
    """Modeless. Closing it, or Cancel, while the check runs emits `cancelled`."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("losslessness_dialog")
        self.setWindowTitle("Check losslessness")
        self.setModal(False)
        self._running = False
        self._icon_name = ("info", "accent")
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON, _ICON)
        self.title_label = QLabel()
        set_kind(self.title_label, "heading")
        self.body_label = QLabel()
        set_kind(self.body_label, "muted")
        for label in (self.title_label, self.body_label):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self.body_label.setFixedWidth(_WIDTH)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Tokens written again")
        self.candidates = QWidget()
        self._table = QGridLayout(self.candidates)
        self._table.setContentsMargins(0, 0, 0, 0)
        self._table.setHorizontalSpacing(SPACE_L)
        self._table.setVerticalSpacing(SPACE_S)
        self._table.setColumnStretch(1, 1)
        self.button = QPushButton()
        self.button.setObjectName("losslessness_button")
        self.button.clicked.connect(self.reject)
        self._lay_out()
        theme().changed.connect(self._paint_icon)

    def _lay_out(self) -> None:
        heading = QHBoxLayout()
        heading.setSpacing(SPACE_S)
        heading.addWidget(self._icon)
        heading.addWidget(self.title_label, 1)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_XL, SPACE_L, SPACE_XL, SPACE_L)
        column.setSpacing(SPACE_M)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        column.addLayout(heading)
        column.addWidget(self.progress)
        column.addWidget(self.candidates)
        column.addWidget(self.body_label)
        column.addLayout(buttons)

    def show_running(self, draft: str) -> None:
        """A check has begun with this draft."""
        self._running = True
        self.progress.setRange(0, 0)
        self._show(
            _RUNNING,
            f"At temperature 0, first with {draft} and then without it, to compare the two.",
            ("info", "accent"),
        )
        self.progress.show()
        self.candidates.hide()
        self.button.setText("Cancel")
        self.show()
        self.raise_()

    @Slot(int, int)
    def show_progress(self, done: int, total: int) -> None:
        """So many tokens of at most `total` are written."""
        if self._running:
            self.progress.setRange(0, total)
            self.progress.setValue(done)

    @Slot(object)
    def show_outcome(self, outcome: object) -> None:
        """A `LosslessnessReport`, a `UserError`, or None for a check that was cancelled."""
        self._running = False
        self.progress.hide()
        self.candidates.hide()
        self.button.setText("Close")
        if isinstance(outcome, LosslessnessReport):
            self._show_report(outcome)
        elif isinstance(outcome, UserError):
            words = " ".join(part for part in (outcome.detail, outcome.hint) if part)
            self._show(outcome.title, words, ("error", "bad"))
        else:
            self._show("The check was cancelled", "Nothing was compared.", ("info", "accent"))

    def text(self) -> str:
        """All that is written in the dialog, a line each."""
        cells = [label.text() for label in self.candidates.findChildren(QLabel)]
        shown = cells if self.candidates.isVisibleTo(self) else []
        return "\n".join([self.title_label.text(), *shown, self.body_label.text()])

    def _show_report(self, report: LosslessnessReport) -> None:
        divergence = report.divergence
        icon = ("check", "good")
        if divergence is not None:
            icon = ("info", "accent") if divergence.is_rounding else ("warning", "warn")
            self._fill_table([*candidates(divergence)])
            self.candidates.show()
        self._show(headline(report), explanation(report), icon)

    def _fill_table(self, rows: list[tuple[str, str, str]]) -> None:
        while (item := self._table.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        for number, row in enumerate(rows):
            for column, words in enumerate(row):
                label = QLabel(words)
                label.setTextFormat(Qt.TextFormat.PlainText)
                if column == 0:
                    set_kind(label, "muted")
                if column == 2:
                    label.setAlignment(Qt.AlignmentFlag.AlignRight)
                self._table.addWidget(label, number, column)

    def _show(self, title: str, body: str, icon: tuple[str, str]) -> None:
        self.title_label.setText(title)
        self.body_label.setText(body)
        self.setAccessibleDescription(f"{title}. {body}")
        self._icon_name = icon
        self._paint_icon()

    @Slot()
    def _paint_icon(self) -> None:
        name, colour = self._icon_name
        self._icon.setPixmap(icon_pixmap(name, colour, _ICON, self.devicePixelRatioF()))

    def reject(self) -> None:
        """Esc, the button and the window's own close all come here."""
        if self._running:
            self._running = False
            self.cancelled.emit()
        super().reject()
