"""How far to draft: the depth and the least probability, each with a slider and an exact field."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from slipstream.engine.requests import Pace
from slipstream.engine.sampling import Group, SettingInfo
from slipstream.engine.speculation.drafter import MAX_DRAFT, DraftSettings, PaceStatus
from slipstream.errors import UsageError
from slipstream.ui.gauges.repaint_limit import RepaintLimit
from slipstream.ui.pace_words import pace_words
from slipstream.ui.setting_row import NumberSettingRow, wrapped
from slipstream.ui.theme import CAPTION_PX, SPACE_M, set_kind, tabular_font

_WORDS_MS = 1_000  # words that change faster cannot be read

_DEFAULTS = DraftSettings()
_DEPTH = SettingInfo(
    label="Draft depth",
    help="How many tokens are drafted at most before the target checks them all in one pass.",
    group=Group.MAIN,
    minimum=1,
    maximum=MAX_DRAFT,
)
_P_MIN = SettingInfo(
    label="Least draft probability",
    help="Drafting stops before a token the draft itself finds less likely than this.",
    group=Group.MAIN,
    minimum=0.0,
    maximum=1.0,
    step=0.05,
    decimals=2,
    special="Off",
)


class DraftSettingRow(NumberSettingRow):
    """A number of `DraftSettings`."""

    def check(self, value: object) -> None:
        low, high = self.info.minimum, self.info.maximum
        assert isinstance(value, (int, float))
        assert low is not None
        assert high is not None
        if not low <= value <= high:
            raise UsageError(
                f"{self.info.label} cannot be {value:g}.",
                f"It must lie between {low:g} and {high:g}.",
                "Choose a value in that range.",
            )


class DraftControls(QWidget):
    """How far to draft for a target. `changed` tells of a person's change.

    Under the auto pace the depth is the app's; the controls of the fixed one are hidden and keep
    their values. The shortest draft has no control; it stays as it was set.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("draft_controls")
        self._settings = _DEFAULTS
        self.depth_row = DraftSettingRow("n_draft_max", _DEPTH, _DEFAULTS.n_draft_max, self)
        self.p_min_row = DraftSettingRow("p_min", _P_MIN, _DEFAULTS.p_min, self)
        self._has_probabilities = True
        self.pace_switch = QCheckBox("Draft only as far as it pays")
        self.pace_switch.setObjectName("pace_switch")
        self.pace_switch.setToolTip(
            wrapped(
                "Drafts are made only as long as they make answers faster on this machine, which "
                "is measured all the time. Off: always up to the depth you choose."
            )
        )
        self.pace_switch.setChecked(True)
        self.pace_label = QLabel()
        self.pace_label.setObjectName("pace_label")
        self.pace_label.setWordWrap(True)
        self.pace_label.setTextFormat(Qt.TextFormat.PlainText)
        set_kind(self.pace_label, "caption")
        # room for two lines, so that the panel stands still when the words change
        self.pace_label.setMinimumHeight(2 * QFontMetrics(tabular_font(CAPTION_PX)).lineSpacing())
        self.pace_label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._paint_soon = RepaintLimit(self, _WORDS_MS)
        self._paint_soon.due.connect(self._show_words)
        self._status: PaceStatus | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self.pace_switch)
        layout.addWidget(self.pace_label)
        for row in (self.depth_row, self.p_min_row):
            layout.addWidget(row)
            row.value_changed.connect(self._on_value_changed)
        self.pace_switch.clicked.connect(self._on_pace_changed)
        self._show_words()
        self._arrange()

    def pace(self) -> Pace:
        """The pace in force."""
        return Pace.AUTO if self.pace_switch.isChecked() else Pace.FIXED

    def settings(self) -> DraftSettings:
        """The settings of the fixed pace, in force or not."""
        return self._settings

    def set_probabilities(self, given: bool) -> None:
        """Whether what drafts is sure of its tokens to a degree, so that the least one matters."""
        self._has_probabilities = given
        self._arrange()

    def show_status(self, status: PaceStatus | None) -> None:
        """What pacing does now; None before anything is known."""
        self._status = status
        self._paint_soon.request()

    @Slot()
    def _show_words(self) -> None:
        words = pace_words(self._status)
        if words != self.pace_label.text():
            self.pace_label.setText(words)

    @Slot()
    def _on_pace_changed(self) -> None:
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        fixed = self.pace() is Pace.FIXED
        self.pace_label.setVisible(not fixed)
        self.depth_row.setVisible(fixed)
        self.p_min_row.setVisible(fixed and self._has_probabilities)

    def set_settings(self, settings: DraftSettings, pace: Pace = Pace.AUTO) -> None:
        """Shows settings, without a signal."""
        self._settings = settings
        self.pace_switch.setChecked(pace is Pace.AUTO)
        self._arrange()
        self.depth_row.set_value(settings.n_draft_max)
        self.p_min_row.set_value(settings.p_min)

    @Slot(str, object)
    def _on_value_changed(self, name: str, value: object) -> None:
        if name == self.depth_row.name:
            assert isinstance(value, int)
            shortest = min(self._settings.n_draft_min, value)
            self._settings = replace(self._settings, n_draft_max=value, n_draft_min=shortest)
        else:
            assert isinstance(value, (int, float))
            self._settings = replace(self._settings, p_min=float(value))
        self.changed.emit()
