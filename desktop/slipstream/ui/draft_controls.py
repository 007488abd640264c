"""How far to draft: the depth and the least probability, each with a slider and an exact field."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from slipstream.engine.sampling import Group, SettingInfo
from slipstream.engine.speculation.drafter import MAX_DRAFT, DraftSettings
from slipstream.errors import UsageError
from slipstream.ui.setting_row import NumberSettingRow
from slipstream.ui.theme import SPACE_M

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
    """The draft settings of a target. `settings_changed` carries them after a person's change.

    The shortest draft has no control; it stays as it was set and never exceeds the depth.
    """

    settings_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("draft_controls")
        self._settings = _DEFAULTS
        self.depth_row = DraftSettingRow("n_draft_max", _DEPTH, _DEFAULTS.n_draft_max, self)
        self.p_min_row = DraftSettingRow("p_min", _P_MIN, _DEFAULTS.p_min, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        for row in (self.depth_row, self.p_min_row):
            layout.addWidget(row)
            row.value_changed.connect(self._on_value_changed)

    def settings(self) -> DraftSettings:
        """The settings in force."""
        return self._settings

    def set_settings(self, settings: DraftSettings) -> None:
        """Shows settings, without a signal."""
        self._settings = settings
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
        self.settings_changed.emit(self._settings)
