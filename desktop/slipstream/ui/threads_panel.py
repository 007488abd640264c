"""How many processor threads compute: the number that measured best, or a person's choice."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from slipstream.engine.requests import TargetFacts
from slipstream.engine.sampling import Group, SettingInfo
from slipstream.errors import UsageError
from slipstream.ui.collapsible import CollapsibleSection
from slipstream.ui.setting_row import NumberSettingRow
from slipstream.ui.theme import SPACE_M, set_kind

_MEASURED = "Auto"


class ThreadsRow(NumberSettingRow):
    """A number of threads; its minimum, 0, stands for the measured one."""

    def check(self, value: object) -> None:
        assert isinstance(value, (int, float))
        maximum = self.info.maximum
        assert maximum is not None
        if not 0 <= value <= maximum:
            raise UsageError(
                f"{self.info.label} cannot be {value:g}.",
                f"This computer can run {maximum:g} at once.",
                f"Choose 1 to {maximum:g}, or 0 for what measured best.",
            )


class ThreadsPanel(QWidget):
    """Two numbers of threads in a folded section. `changed` tells of a person's change."""

    changed = Signal()

    def __init__(self, cores: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("threads_panel")
        self.section = CollapsibleSection("Performance", parent=self)
        self.writing_row = ThreadsRow(
            "n_threads",
            SettingInfo(
                label="Threads for writing",
                help="Processor threads that compute one token at a time. Auto takes the number "
                "that was fastest when the model was first loaded on this computer.",
                group=Group.MAIN,
                minimum=0,
                maximum=cores,
                special=_MEASURED,
            ),
            0,
            self,
        )
        self.reading_row = ThreadsRow(
            "n_threads_batch",
            SettingInfo(
                label="Threads for reading",
                help="Processor threads that read your messages and check drafts, many tokens at "
                "once. Auto takes as many as for writing if you chose those, else the number that "
                "was fastest when the model was first loaded.",
                group=Group.MAIN,
                minimum=0,
                maximum=cores,
                special=_MEASURED,
            ),
            0,
            self,
        )
        self.in_use = QLabel()
        self.in_use.setObjectName("threads_in_use")
        self.in_use.setWordWrap(True)
        set_kind(self.in_use, "caption")
        self.in_use.hide()
        body = self.section.body_layout
        body.setSpacing(SPACE_M)
        for row in (self.writing_row, self.reading_row):
            body.addWidget(row)
            row.value_changed.connect(self._on_value_changed)
        body.addWidget(self.in_use)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.section)

    def threads(self) -> tuple[int, int]:
        """The chosen numbers for writing and for reading, 0 for the measured one."""
        writing, reading = self.writing_row.value(), self.reading_row.value()
        assert isinstance(writing, int)
        assert isinstance(reading, int)
        return writing, reading

    def set_threads(self, writing: int, reading: int) -> None:
        """Shows a choice, without a signal; more than the computer has becomes all it has."""
        for row, threads in ((self.writing_row, writing), (self.reading_row, reading)):
            most = row.info.maximum
            assert most is not None
            row.set_value(min(threads, int(most)))

    def show_facts(self, facts: TargetFacts) -> None:
        """How the loaded model really computes."""
        writing, reading = facts.n_threads, facts.n_threads_batch
        same = writing == reading
        self.section.set_summary(_counted(writing) if same else f"{writing} and {reading} threads")
        each = "writing and reading" if same else f"writing, {reading} for reading"
        chosen = any(self.threads())
        ending = "." if chosen else ", chosen for this model on this computer."
        self.in_use.setText(f"{_counted(writing)} in use for {each}{ending}")
        self.in_use.show()

    @Slot(str, object)
    def _on_value_changed(self, _name: str, _value: object) -> None:
        self.changed.emit()


def _counted(threads: int) -> str:
    return f"{threads} thread" if threads == 1 else f"{threads} threads"
