"""Shows the search for the best draft while it runs and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

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

from slipstream.engine.requests import DraftFinding
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.errors import UserError
from slipstream.ui.elided_label import ElidedLabel
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XL, set_kind

_WIDTH = 440
_PAYS = 1.02  # gains below are within what repeating a measurement changes
_NAMES = {
    str(DrafterKind.PROMPT_LOOKUP): "Prompt lookup",
    str(DrafterKind.MTP): "Built-in MTP",
}


class DraftSearchDialog(QDialog):
    """Modeless. Closing it while the search runs emits `cancelled`; `chosen` carries a key."""

    cancelled = Signal()
    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("draft_search_dialog")
        self.setWindowTitle("Find the best draft")
        self.setModal(False)
        self._running = False
        self._best = ""
        self.title_label = QLabel()
        set_kind(self.title_label, "heading")
        self.body_label = QLabel()
        set_kind(self.body_label, "muted")
        for label in (self.title_label, self.body_label):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            label.setFixedWidth(_WIDTH)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Answers written for the search")
        self.findings = QWidget()
        self._table = QGridLayout(self.findings)
        self._table.setContentsMargins(0, 0, 0, 0)
        self._table.setHorizontalSpacing(SPACE_L)
        self._table.setVerticalSpacing(SPACE_S)
        self._table.setColumnStretch(0, 1)
        self.use_button = QPushButton()
        self.use_button.setObjectName("draft_search_use_button")
        set_kind(self.use_button, "primary")
        self.use_button.clicked.connect(self._use)
        self.close_button = QPushButton()
        self.close_button.setObjectName("draft_search_close_button")
        self.close_button.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.close_button)
        buttons.addWidget(self.use_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_XL, SPACE_L, SPACE_XL, SPACE_L)
        column.setSpacing(SPACE_M)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        for part in (self.title_label, self.progress, self.findings, self.body_label):
            column.addWidget(part)
        column.addLayout(buttons)

    def show_running(self, model: str) -> None:
        """The search has begun for this target."""
        self._running = True
        self.progress.setRange(0, 0)
        self.progress.show()
        self.findings.hide()
        self.use_button.hide()
        self.close_button.setText("Cancel")
        self._say(
            "Measuring",
            f"{model} writes a few short answers with every draft that fits it, and the same ones "
            "without. This takes some minutes with a large model.",
        )
        self.show()
        self.raise_()

    @Slot(int, int)
    def show_progress(self, done: int, total: int) -> None:
        """So many answers of `total` are written."""
        if self._running:
            self.progress.setRange(0, total)
            self.progress.setValue(done)

    @Slot(object)
    def show_outcome(self, outcome: object) -> None:
        """A tuple of `DraftFinding`, a `UserError`, or None for a search that was cancelled."""
        self._running = False
        self.progress.hide()
        self.findings.hide()
        self.use_button.hide()
        self.close_button.setText("Close")
        if isinstance(outcome, UserError):
            words = " ".join(part for part in (outcome.detail, outcome.hint) if part)
            self._say(outcome.title, words)
        elif isinstance(outcome, tuple):
            self._show_findings(outcome)
        else:
            self._say("The search was cancelled", "Nothing was changed.")

    def text(self) -> str:
        """All that is written in the dialog, a line each."""
        cells = [label.text() for label in self.findings.findChildren(QLabel)]
        shown = cells if self.findings.isVisibleTo(self) else []
        return "\n".join([self.title_label.text(), *shown, self.body_label.text()])

    def _show_findings(self, findings: Sequence[DraftFinding]) -> None:
        best = findings[0] if findings else None
        self._best = best.key if best is not None and (best.gain or 0.0) >= _PAYS else ""
        if best is not None and self._best:
            title = f"{_name(best.key)} is the fastest here: {best.gain:.2f}×"
            self.use_button.setText("Use it")
            self.use_button.show()
        else:
            title = "Without a draft this model is the fastest here"
        self._fill(findings)
        self.findings.show()
        self._say(
            title,
            "Beside plain decoding, over an explanation, some code, and a text to change. "
            "Texts that repeat more gain more.",
        )

    def _fill(self, findings: Sequence[DraftFinding]) -> None:
        while (item := self._table.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
        for row, finding in enumerate(findings):
            name = ElidedLabel()
            name.setText(_name(finding.key))
            name.setToolTip(wrapped(finding.obstacle or finding.key))
            gain = QLabel("–" if finding.gain is None else f"{finding.gain:.2f}×")
            rate = QLabel(
                "does not fit"
                if finding.obstacle
                else f"{finding.tokens_per_second:.1f} tok/\u2060s"
            )
            set_kind(rate, "muted")
            for column, label in enumerate((name, gain, rate)):
                if column:
                    label.setAlignment(Qt.AlignmentFlag.AlignRight)
                self._table.addWidget(label, row, column)

    def _say(self, title: str, body: str) -> None:
        self.title_label.setText(title)
        self.body_label.setText(body)
        self.setAccessibleDescription(f"{title}. {body}")

    @Slot()
    def _use(self) -> None:
        self.chosen.emit(self._best)
        self.close()

    def reject(self) -> None:
        """Esc, the button and the window's own close all come here."""
        if self._running:
            self._running = False
            self.cancelled.emit()
        super().reject()


def _name(key: str) -> str:
    return _NAMES.get(key) or PurePath(key).stem
