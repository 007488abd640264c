"""The sampler panel: a control for every sampler setting, made from `SETTINGS`; presets, reset."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QStandardItemModel, QWheelEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from slipstream.engine.sampling import (
    PRESETS,
    SAMPLING_ORDER,
    SETTINGS,
    Group,
    Preset,
    SamplerSettings,
)
from slipstream.errors import UsageError
from slipstream.ui.collapsible import CollapsibleSection
from slipstream.ui.setting_row import NumberSettingRow, SettingRow
from slipstream.ui.text_setting import ROWS
from slipstream.ui.theme import SPACE_M, SPACE_S, SPACE_XS, set_kind

CUSTOM = "Custom"
_TITLES = {Group.MORE: "More sampling", Group.TEXT: "Seed, stop, grammar"}


class PresetBox(QComboBox):
    """Names the preset in force, or says that the values are somebody's own."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preset_box")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Preset")
        for preset in PRESETS:
            self.addItem(preset.name)
            self.setItemData(self.count() - 1, preset.description, Qt.ItemDataRole.ToolTipRole)
        self.addItem(CUSTOM)
        items = self.model()
        assert isinstance(items, QStandardItemModel)
        items.item(self.count() - 1).setEnabled(False)  # shown, never chosen
        self.show_preset(PRESETS[0])

    def show_preset(self, preset: Preset | None) -> None:
        """Shows a preset's name, or “Custom” for None."""
        self.setCurrentIndex(self.count() - 1 if preset is None else PRESETS.index(preset))
        words = preset.description if preset else "The values differ from every preset."
        self.setToolTip(f"Preset: {words}")
        self.setAccessibleDescription(words)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the panel scrolls instead


class SamplerPanel(QWidget):
    """Edits one `SamplerSettings`. `settings_changed` carries the new one after a person's change.

    The settings given with `set_settings` come back exactly, also where a field shows fewer digits.
    """

    settings_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sampler_panel")
        self._settings = SamplerSettings()
        self._rows: dict[str, SettingRow] = {}
        self._sections: dict[Group, CollapsibleSection] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addLayout(self._preset_line())
        for name, info in SETTINGS.items():
            row = self._row(name)
            if info.group is Group.MAIN:
                layout.addWidget(row)
            else:
                self._section(info.group).body_layout.addWidget(row)
        self._order = QLabel(self)
        self._order.setObjectName("sampling_order")
        self._order.setWordWrap(True)
        set_kind(self._order, "caption")
        self._section(Group.MORE).body_layout.addWidget(self._order)
        folded = QVBoxLayout()
        folded.setSpacing(SPACE_XS)
        for section in self._sections.values():
            folded.addWidget(section)
        layout.addLayout(folded)
        layout.addStretch(1)
        self._refresh()

    def settings(self) -> SamplerSettings:
        """The settings in force, with what is typed but not yet confirmed."""
        for row in self._rows.values():
            row.commit_typed()
        return self._settings

    def set_settings(self, settings: SamplerSettings) -> None:
        """Shows settings, without a signal."""
        self._settings = settings
        for name, row in self._rows.items():
            row.set_value(getattr(settings, name))
        self._refresh()

    def row(self, name: str) -> SettingRow:
        """The row of a `SamplerSettings` field."""
        return self._rows[name]

    def section(self, group: Group) -> CollapsibleSection:
        """The folding section of a group other than the main one."""
        return self._sections[group]

    def apply_preset(self, preset: Preset) -> None:
        """Takes a preset's values over the defaults; what is typed (seed, stop, …) stays."""
        kept = {name: getattr(self._settings, name) for name in _names(Group.TEXT)}
        self._replace(SamplerSettings().with_values({**preset.values, **kept}))

    @Slot()
    def reset_all(self) -> None:
        """Brings every default back."""
        self._replace(SamplerSettings())

    def _replace(self, settings: SamplerSettings) -> None:
        changed = settings != self._settings
        self.set_settings(settings)
        if changed:
            self.settings_changed.emit(settings)

    def _preset_line(self) -> QHBoxLayout:
        self.presets = PresetBox(self)
        self.presets.activated.connect(self._on_preset_activated)
        self.reset_button = QPushButton("Reset all", self)
        self.reset_button.setObjectName("reset_all")
        set_kind(self.reset_button, "ghost")
        self.reset_button.setToolTip("Bring back the default of every sampling setting")
        self.reset_button.setAccessibleName("Reset all sampling settings")
        self.reset_button.clicked.connect(self.reset_all)
        line = QHBoxLayout()
        line.setSpacing(SPACE_S)
        line.addWidget(self.presets, 1)
        line.addWidget(self.reset_button)
        return line

    def _row(self, name: str) -> SettingRow:
        info, default = SETTINGS[name], getattr(self._settings, name)
        row_type = ROWS.get(name, NumberSettingRow)
        row: SettingRow = row_type(name, info, default, self)
        row.value_changed.connect(self._on_value_changed)
        self._rows[name] = row
        return row

    def _section(self, group: Group) -> CollapsibleSection:
        if group not in self._sections:
            section = CollapsibleSection(_TITLES[group], parent=self)
            section.setObjectName(f"section_{group.value}")
            section.body_layout.setSpacing(SPACE_M)
            self._sections[group] = section
        return self._sections[group]

    @Slot(str, object)
    def _on_value_changed(self, name: str, value: object) -> None:
        try:
            settings = self._settings.with_values({name: value})
        except UsageError as error:
            self._rows[name].show_error(str(error))
            return
        if settings != self._settings:
            self._settings = settings
            self._refresh()
            self.settings_changed.emit(settings)

    @Slot(int)
    def _on_preset_activated(self, index: int) -> None:
        if index < len(PRESETS):
            self.apply_preset(PRESETS[index])

    def _refresh(self) -> None:
        """Everything that follows from the settings as a whole."""
        self.presets.show_preset(matching_preset(self._settings))
        changed = self._settings.changed_values()
        self.reset_button.setEnabled(bool(changed))
        for group, section in self._sections.items():
            count = sum(name in changed for name in _names(group))
            section.set_summary(f"{count} changed" if count else "")
        self._order.setText(order_in_words(self._settings))


def matching_preset(settings: SamplerSettings) -> Preset | None:
    """The preset whose values these are, whatever seed, stop strings and grammar."""
    typed = _names(Group.TEXT)
    values = {name: value for name, value in settings.changed_values().items() if name not in typed}
    for preset in PRESETS:
        if SamplerSettings().with_values(preset.values).changed_values() == values:
            return preset
    return None


def order_in_words(settings: SamplerSettings) -> str:
    """The order of sampling, and what the settings replace in it."""
    words = f"Order: {' → '.join(SAMPLING_ORDER)}."
    if settings.greedy:
        return f"{words} Temperature 0: after DRY, the likeliest token is taken."
    if settings.mirostat:
        return f"{words} Mirostat replaces what lies between DRY and temperature."
    return words


def _names(group: Group) -> frozenset[str]:
    return frozenset(name for name, info in SETTINGS.items() if info.group is group)
