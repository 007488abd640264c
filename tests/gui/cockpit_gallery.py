"""Draws the cockpit and the sidebar in both schemes to PNG files, for looking at.

PYTHONPATH=desktop python tests/gui/cockpit_gallery.py FOLDER
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from slipstream.chat.records import ChatSummary, SpeculationStatistics
from slipstream.engine.sampling import Group, SamplerSettings
from slipstream.engine.speculation.drafter import DraftSettings
from slipstream.engine.template_variables import TemplateVariable, VariableKind
from slipstream.ui.chat_sidebar import ChatSidebar
from slipstream.ui.draft_chip import DraftChip
from slipstream.ui.draft_controls import DraftControls
from slipstream.ui.draft_picker import DraftEntry, DraftPicker
from slipstream.ui.gauges.acceptance import AcceptanceGauge
from slipstream.ui.gauges.context_meter import ContextMeter
from slipstream.ui.gauges.throughput import ThroughputGauge
from slipstream.ui.model_picker import ModelEntry, ModelPicker
from slipstream.ui.sampler_panel import SamplerPanel
from slipstream.ui.setting_row import NumberSettingRow
from slipstream.ui.system_prompt import SystemPromptEditor
from slipstream.ui.template_variables import TemplateVariablesEditor
from slipstream.ui.text_setting import StringsRow
from slipstream.ui.theme import SPACE_L, apply_theme, theme

NOW = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
ENTRY = ModelEntry(
    "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
    "SmolLM2 135M Instruct",
    "Q4_1 · 92 MB · 8k context",
    "llama · Apache-2.0",
)
LONG = ModelEntry(
    "/models/big/DeepSeek-R1-Distill-Qwen-32B-uncensored-abliterated.i1-Q4_K_M.gguf",
    "DeepSeek-R1-Distill-Qwen-32B-uncensored-abliterated",
    "i1-Q4_K_M · 19.9 GB · 8k context",
)
GONE = ModelEntry("/old/Phi-3.gguf", "Phi-3 mini", available=False, note="file not found")
DRAFTS = (
    DraftEntry(
        "/models/SmolLM2-135M.eagle3.gguf", "SmolLM2 135M head", "F16 · 14 MB · EAGLE-3 head"
    ),
    DraftEntry(
        "/models/big/DeepSeek-R1-Distill-Qwen-1.5B-abliterated.i1-Q4_K_M.gguf",
        "DeepSeek-R1-Distill-Qwen-1.5B-abliterated",
        "i1-Q4_K_M · 1.1 GB · draft model",
    ),
    DraftEntry(
        "/models/Llama-3.2-1B.gguf",
        "Llama 3.2 1B",
        "Q4_K_M · 807.7 MB · draft model",
        available=False,
        reason="Its vocabulary differs: token 128 is “ the” here and “ was” in the target.",
    ),
)
FIGURES = SpeculationStatistics(
    rounds=97,
    plain_passes=6,
    drafted=194,
    verified=194,
    accepted=120,
    accepted_at=(83, 37),
    draft_seconds=0.81,
    verify_seconds=3.64,
    sample_seconds=0.12,
)
DEEP = SpeculationStatistics(
    rounds=41,
    drafted=656,
    verified=640,
    accepted=420,
    accepted_at=(40, 39, 37, 36, 34, 33, 31, 29, 27, 25, 22, 19, 16, 14, 11, 7),
    draft_seconds=2.2,
    verify_seconds=2.6,
    sample_seconds=0.7,
)


class FakeClock:
    """Seconds that pass only when asked to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def gauge(live: bool) -> ThroughputGauge:
    """A gauge after a minute of plausible numbers."""
    clock = FakeClock()
    result = ThroughputGauge(clock=clock)
    result.set_prefill(310.4)
    result.set_first_token(0.42)
    for step in range(500):
        clock.now += 0.1
        if step == 180:
            result.set_idle()
            clock.now += 6
        rate = 41 + 6 * math.sin(step / 9) + 3 * math.sin(step / 2.3) - 20 * math.exp(-step / 6)
        result.set_rate(rate, 40.2)
    if not live:
        result.set_idle()
    return result


def picker(state: str) -> ModelPicker:
    """A picker in one of its states."""
    result = ModelPicker()
    result.set_entries((ENTRY, LONG, GONE), ENTRY)
    if state == "model":
        result.show_model(ENTRY)
    elif state == "long":
        result.show_model(LONG)
    elif state == "loading":
        result.show_loading(LONG.name, 0.42)
    elif state == "failed":
        result.show_failed("broken.gguf")
    return result


def draft_picker(key: str) -> DraftPicker:
    """A draft picker with something chosen."""
    result = DraftPicker()
    result.set_entries(DRAFTS[:1], DRAFTS[1:], has_mtp=True)
    result.show_choice(key)
    return result


def draft_chip(kind_words: str = "", name: str = "", reason: str = "") -> DraftChip:
    """A chip in one of its states."""
    result = DraftChip()
    if kind_words:
        result.show_active(kind_words, name)
    elif reason:
        result.show_off_because(reason)
    return result


def acceptance(figures: SpeculationStatistics) -> AcceptanceGauge:
    """An acceptance gauge with figures."""
    result = AcceptanceGauge()
    result.show_figures(figures)
    return result


def draft_controls(enabled: bool) -> DraftControls:
    """Depth and least probability, the depth changed."""
    result = DraftControls()
    result.set_settings(DraftSettings(n_draft_max=8, p_min=0.0))
    result.setEnabled(enabled)
    return result


def draft_scene(width: int) -> QWidget:
    """The draft's instruments in their states, one column of them as the window has it."""
    board = QWidget()
    board.setAutoFillBackground(True)
    layout = QHBoxLayout(board)
    layout.setSpacing(SPACE_L)
    eight = replace(FIGURES, accepted_at=(80, 72, 61, 50, 44, 31, 12, 3), verified=776)
    usual = column(
        width,
        picker("model"),
        draft_picker(DRAFTS[0].key),
        draft_chip("EAGLE-3", DRAFTS[0].name),
        draft_controls(True),
        gauge(live=True),
        acceptance(FIGURES),
    )
    plain = column(
        width,
        picker("model"),
        draft_picker("none"),
        draft_chip(),
        draft_controls(False),
        gauge(live=False),
        acceptance(SpeculationStatistics()),
    )
    states = column(
        width,
        draft_picker("prompt-lookup"),
        draft_chip("prompt lookup"),
        draft_picker(DRAFTS[1].key),
        draft_chip("draft model", DRAFTS[1].name),
        draft_picker(DRAFTS[2].key),
        draft_chip(reason=DRAFTS[2].reason),
        draft_chip(reason="its file could not be opened: " + DRAFTS[1].key * 3),
        acceptance(DEEP),
        acceptance(eight),
        acceptance(replace(FIGURES, accepted=194, accepted_at=(97, 97), sample_seconds=0.0)),
    )
    for part in (usual, plain, states):
        layout.addWidget(part)
    board.setFixedHeight(900)
    return board


def column(width: int, *widgets: QWidget) -> QWidget:
    """Widgets below each other in a scroll area, as the window shows them."""
    inside = QWidget()
    layout = QVBoxLayout(inside)
    layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
    layout.setSpacing(SPACE_L)
    for widget in widgets:
        layout.addWidget(widget)
    layout.addStretch(1)
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(inside)
    area.setFixedWidth(width)
    return area


def changed_panel() -> SamplerPanel:
    """A panel with changed values, everything unfolded, two complaints."""
    panel = SamplerPanel()
    panel.set_settings(
        SamplerSettings(temperature=1.35, top_k=0, max_tokens=-1, seed=12345, stop=("\nUser:",))
    )
    for group in (Group.MORE, Group.TEXT):
        panel.section(group).set_expanded(True)
    row = panel.row("min_p")
    assert isinstance(row, NumberSettingRow)
    row.field.lineEdit().setText("7")
    row.field.interpretText()
    stop = panel.row("logit_bias")
    stop.show_error("“12” is no bias. A bias is a token id, an equals sign and a number.")
    strings = panel.row("stop")
    assert isinstance(strings, StringsRow)
    return panel


def sidebar(empty: bool = False) -> ChatSidebar:
    """A sidebar with chats of several days, or with none."""
    result = ChatSidebar()
    titles = (
        "Speculative decoding explained",
        "Haiku about autumn",
        "SQL: window functions over a partition with gaps",
        "Rezept für Apfelkuchen",
        "مرحبا بالعالم",
        "Trip to Kyoto",
    )
    ages = (0, 0, 1, 3, 5, 40)
    if not empty:
        chats = [
            ChatSummary(str(number), title, NOW - timedelta(days=age, minutes=number))
            for number, (title, age) in enumerate(zip(titles, ages, strict=True))
        ]
        result.set_chats(chats, NOW)
        result.select("1")
    result.setFixedWidth(240)
    return result


def variables() -> TemplateVariablesEditor:
    """An editor with one variable of each kind."""
    editor = TemplateVariablesEditor()
    editor.set_variables(
        [
            TemplateVariable("enable_thinking", VariableKind.SWITCH, "Thinking"),
            TemplateVariable("keep", VariableKind.SWITCH, "Keep earlier thinking", (), True),
            TemplateVariable(
                "effort", VariableKind.CHOICE, "Reasoning effort", ("low", "medium", "high"), "low"
            ),
            TemplateVariable("date_string", VariableKind.TEXT),
        ]
    )
    return editor


def scene(width: int) -> QWidget:
    """Everything side by side."""
    prompt = SystemPromptEditor()
    prompt.set_text("Answer briefly and name your sources.")
    prompt.set_expanded(True)
    full, nearly, idle = ContextMeter(), ContextMeter(), ContextMeter()
    full.set_usage(1234, 8192)
    nearly.set_usage(7400, 8192)
    board = QWidget()
    board.setObjectName("board")
    board.setAutoFillBackground(True)
    layout = QHBoxLayout(board)
    layout.setSpacing(SPACE_L)
    plain = column(
        width, picker("model"), gauge(live=True), full, SamplerPanel(), SystemPromptEditor()
    )
    states = column(
        width,
        picker("none"),
        picker("long"),
        picker("loading"),
        picker("failed"),
        ThroughputGauge(),
        gauge(live=False),
        nearly,
        idle,
        prompt,
        variables(),
    )
    for part in (sidebar(), sidebar(empty=True), plain, states):
        layout.addWidget(part)
    board.setFixedHeight(960)
    return board


def shoot(widget: QWidget, target: Path) -> None:
    """Draws a widget to a file."""
    widget.show()
    QApplication.processEvents()
    QApplication.processEvents()
    widget.grab().save(str(target))
    print(target)
    widget.close()


def main(folder: Path) -> None:
    """Draws every scene in both schemes."""
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("light", "dark"):
        apply_theme(app, name)
        assert theme().current().name == name
        for width in (280, 340):
            shoot(scene(width), folder / f"cockpit-{name}-{width}.png")
            shoot(draft_scene(width), folder / f"draft-{name}-{width}.png")
        panel = QWidget()
        panel.setFixedHeight(1500)
        QHBoxLayout(panel).addWidget(column(320, changed_panel()))
        shoot(panel, folder / f"panel-{name}.png")
        opened = picker("model")
        opened.setFixedWidth(320)
        opened.show()
        opened.open_menu()
        shoot(opened.menu, folder / f"menu-{name}.png")
        opened.close()
        drafts = draft_picker("prompt-lookup")
        drafts.setFixedWidth(320)
        drafts.show()
        drafts.open_menu()
        shoot(drafts.menu, folder / f"draft-menu-{name}.png")
        drafts.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
