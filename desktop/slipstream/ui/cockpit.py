"""The panel on the right: the model, the instruments, the settings of the next answer."""

from __future__ import annotations

import psutil  # type: ignore[import-untyped]
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from slipstream.ui.draft_chip import DraftChip
from slipstream.ui.draft_controls import DraftControls
from slipstream.ui.draft_picker import DraftPicker
from slipstream.ui.draft_tools import DraftTools
from slipstream.ui.gauges.acceptance import AcceptanceGauge
from slipstream.ui.gauges.context_meter import ContextMeter
from slipstream.ui.gauges.throughput import ThroughputGauge
from slipstream.ui.model_picker import ModelPicker
from slipstream.ui.sampler_panel import SamplerPanel
from slipstream.ui.system_prompt import SystemPromptEditor
from slipstream.ui.template_variables import TemplateVariablesEditor
from slipstream.ui.theme import SPACE_L, SPACE_M
from slipstream.ui.threads_panel import ThreadsPanel

WIDTH = 320


class Cockpit(QScrollArea):
    """Holds the instruments in one column that scrolls when the window is low."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("cockpit")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumWidth(280)
        self.target_picker = ModelPicker()
        self.draft_picker = DraftPicker()
        self.draft_chip = DraftChip()
        self.draft_controls = DraftControls()
        self.throughput = ThroughputGauge()
        self.acceptance = AcceptanceGauge()
        self.draft_tools = DraftTools()
        self.context_meter = ContextMeter()
        self.template_variables = TemplateVariablesEditor()
        self.system_prompt = SystemPromptEditor()
        self.sampler_panel = SamplerPanel()
        self.threads_panel = ThreadsPanel(psutil.cpu_count() or 1)
        column = QWidget()
        column.setObjectName("cockpit_column")
        layout = QVBoxLayout(column)
        layout.setContentsMargins(SPACE_L, SPACE_M, SPACE_L, SPACE_L)
        layout.setSpacing(SPACE_M)
        layout.addWidget(self.target_picker)
        layout.addWidget(self.draft_picker)
        layout.addWidget(self.draft_chip)
        layout.addWidget(self.draft_controls)
        layout.addWidget(_rule())
        layout.addWidget(self.throughput)
        layout.addWidget(self.acceptance)
        layout.addWidget(self.draft_tools)
        layout.addWidget(self.context_meter)
        layout.addWidget(_rule())
        layout.addWidget(self.template_variables)
        layout.addWidget(self.system_prompt)
        layout.addWidget(self.sampler_panel)
        layout.addWidget(self.threads_panel)
        layout.addStretch(1)
        self.setWidget(column)


def _rule() -> QFrame:
    line = QFrame()
    line.setObjectName("hairline")
    line.setFrameShape(QFrame.Shape.HLine)
    line.setFixedHeight(1)
    return line
