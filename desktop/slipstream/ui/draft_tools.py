"""What can be done with an answer that was drafted: colour it, check it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from slipstream.ui.theme import SPACE_S, set_kind


class DraftTools(QWidget):
    """A switch for the colours and a button for the check of the last answer."""

    colours_switched = Signal(bool)
    check_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.colours_switch = QCheckBox("Colour accepted draft tokens")
        self.colours_switch.setObjectName("accepted_switch")
        self.colours_switch.setToolTip(
            "In the answers, words that the draft proposed and the target accepted stand on a "
            "coloured ground; the others the target wrote by itself"
        )
        self.check_button = QPushButton("Check losslessness…")
        self.check_button.setObjectName("losslessness_check_button")
        set_kind(self.check_button, "secondary")
        self.colours_switch.toggled.connect(self.colours_switched)
        self.check_button.clicked.connect(self.check_requested)
        row = QHBoxLayout()
        row.addWidget(self.check_button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(SPACE_S)
        column.addWidget(self.colours_switch)
        column.addLayout(row)

    def set_check_obstacle(self, obstacle: str) -> None:
        """Why the last answer cannot be checked now; "" where it can."""
        self.check_button.setEnabled(not obstacle)
        self.check_button.setToolTip(
            obstacle
            or "Write the last answer again at temperature 0, with the draft and without it, "
            "and compare the two token by token"
        )
