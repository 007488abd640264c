"""The sampler panel: a control for every setting, exact values, nothing unusable gets through."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from slipstream.engine.sampling import (
    MAX_SEED,
    PRESETS,
    SAMPLING_ORDER,
    SETTINGS,
    Group,
    SamplerSettings,
)
from slipstream.errors import UsageError
from slipstream.ui.escapes import escape, escape_lines, unescape, unescape_lines
from slipstream.ui.sampler_panel import CUSTOM, SamplerPanel, matching_preset
from slipstream.ui.setting_row import NumberSettingRow
from slipstream.ui.slider_scale import scale_for
from slipstream.ui.system_prompt import SystemPromptEditor
from slipstream.ui.template_variables import TemplateVariablesEditor
from slipstream.ui.text_setting import AreaRow, SeedRow

DEFAULTS = SamplerSettings()
NUMBERS = [name for name, info in SETTINGS.items() if info.group is not Group.TEXT]


@pytest.fixture
def panel(qtbot: QtBot) -> SamplerPanel:
    result = SamplerPanel()
    qtbot.addWidget(result)
    result.resize(320, 900)
    result.show()
    return result


@pytest.fixture
def told(panel: SamplerPanel) -> Iterator[list[SamplerSettings]]:
    """What the panel reported."""
    reports: list[SamplerSettings] = []
    panel.settings_changed.connect(reports.append)
    yield reports
    panel.settings_changed.disconnect(reports.append)


def number_row(panel: SamplerPanel, name: str) -> NumberSettingRow:
    row = panel.row(name)
    assert isinstance(row, NumberSettingRow)
    return row


def area(panel: SamplerPanel, name: str) -> QPlainTextEdit:
    row = panel.row(name)
    assert isinstance(row, AreaRow)
    return row.field


def seed_row(panel: SamplerPanel) -> SeedRow:
    row = panel.row("seed")
    assert isinstance(row, SeedRow)
    return row


def type_number(qtbot: QtBot, row: NumberSettingRow, text: str) -> None:
    line = row.field.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


# ---- every setting is there -------------------------------------------------------------------


def test_every_setting_has_a_described_control(panel: SamplerPanel) -> None:
    for name, info in SETTINGS.items():
        field = panel.findChild(QWidget, f"field_{name}")
        assert field is not None, name
        assert field.accessibleName() == info.label
        assert info.help.split(";")[0][:40] in field.toolTip()
        assert info.help in field.accessibleDescription()
        assert field.focusPolicy() != Qt.FocusPolicy.NoFocus


def test_main_settings_are_in_view_and_the_rest_is_folded(panel: SamplerPanel) -> None:
    for name, info in SETTINGS.items():
        assert panel.row(name).isVisible() is (info.group is Group.MAIN), name


def test_unfolding_shows_the_rest_and_the_order_of_sampling(
    panel: SamplerPanel, qtbot: QtBot
) -> None:
    section = panel.section(Group.MORE)
    qtbot.keyClick(section.header, Qt.Key.Key_Space)
    assert section.expanded
    qtbot.waitUntil(lambda: panel.row("mirostat_eta").isVisible())
    order = panel.findChild(QWidget, "sampling_order")
    assert all(step in order.text() for step in SAMPLING_ORDER)
    qtbot.keyClick(section.header, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not panel.row("mirostat_eta").isVisible())


def test_panel_fits_a_narrow_cockpit(panel: SamplerPanel) -> None:
    for group in (Group.MORE, Group.TEXT):
        panel.section(group).set_expanded(True)
    assert panel.minimumSizeHint().width() <= 264  # 280 less a scroll bar


# ---- slider scales ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMBERS)
def test_slider_rises_strictly_and_reaches_both_ends(name: str) -> None:
    info, default = SETTINGS[name], getattr(DEFAULTS, name)
    scale = scale_for(info, isinstance(default, int))
    assert all(low < high for low, high in zip(scale.stops, scale.stops[1:], strict=False))
    assert (scale.value(0), scale.value(scale.last)) == (info.minimum, info.maximum)
    assert [scale.position(stop) for stop in scale.stops] == list(range(scale.last + 1))
    assert scale.value(scale.position(default)) == default  # the mark stands where it says
    assert scale.last <= 1000


@given(st.floats(-10, 2e6), st.floats(-10, 2e6))
def test_a_higher_value_never_stands_lower(first: float, second: float) -> None:
    scale = scale_for(SETTINGS["max_tokens"], True)
    low, high = sorted((first, second))
    assert scale.position(low) <= scale.position(high)


def test_wide_ranges_are_finer_where_numbers_are_small() -> None:
    scale = scale_for(SETTINGS["max_tokens"], True)
    assert scale.stops[:12] == (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
    assert scale.position(2048) / scale.last < 0.6


# ---- values -----------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
BIAS = st.tuples(st.integers(0, 10**6), st.one_of(st.floats(-100, 100), st.just(-math.inf)))


def any_value(name: str) -> st.SearchStrategy[object]:
    info, default = SETTINGS[name], getattr(DEFAULTS, name)
    if name == "seed":
        return st.none() | st.integers(0, MAX_SEED)
    if name == "logit_bias":
        return st.lists(BIAS, max_size=3).map(tuple)
    if name == "grammar":
        return st.text(max_size=20)
    if isinstance(default, tuple):
        return st.lists(TEXT, max_size=3).map(tuple)
    assert info.minimum is not None
    assert info.maximum is not None
    if isinstance(default, int):
        return st.integers(int(info.minimum), int(info.maximum))
    return st.floats(info.minimum, info.maximum)


ANY_SETTINGS = st.fixed_dictionaries({name: any_value(name) for name in SETTINGS}).map(
    DEFAULTS.with_values
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(wanted=ANY_SETTINGS)
def test_any_settings_come_back_exactly_and_silently(
    panel: SamplerPanel, told: list[SamplerSettings], wanted: SamplerSettings
) -> None:
    panel.set_settings(wanted)
    assert panel.settings() == wanted
    assert told == []
    for name in SETTINGS:
        assert panel.row(name).changed is (getattr(wanted, name) != getattr(DEFAULTS, name))


def test_field_shows_every_digit_that_matters(panel: SamplerPanel) -> None:
    field = number_row(panel, "temperature").field
    for value, shown in ((0.8, "0.80"), (0.123, "0.123"), (1.0, "1.00"), (0.0, "Greedy")):
        panel.set_settings(SamplerSettings(temperature=value))
        assert field.text() == shown


def test_typed_number_is_taken_exactly(
    panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot
) -> None:
    row = number_row(panel, "temperature")
    type_number(qtbot, row, "0.333")
    assert panel.settings().temperature == 0.333
    assert told == [SamplerSettings(temperature=0.333)]
    type_number(qtbot, row, "1,25")  # a decimal comma
    assert panel.settings().temperature == 1.25
    type_number(qtbot, row, "greedy")  # the word for the minimum
    assert panel.settings().temperature == 0


def test_whole_numbers_stay_whole(panel: SamplerPanel, qtbot: QtBot) -> None:
    row = number_row(panel, "max_tokens")
    type_number(qtbot, row, "100")
    value = panel.settings().max_tokens
    assert (value, type(value)) == (100, int)
    type_number(qtbot, row, "no limit")
    assert panel.settings().max_tokens == -1


def test_typed_but_unconfirmed_number_counts(panel: SamplerPanel, qtbot: QtBot) -> None:
    line = number_row(panel, "top_k").field.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, "17")
    assert panel.settings().top_k == 17


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("temperature", "7", "Temperature cannot be 7."),
        ("temperature", "warm", "Temperature needs a number, not “warm”."),
        ("temperature", "", "Temperature needs a number, not nothing."),
        ("top_k", "2.5", "Top-k needs a whole number, not “2.5”."),
        ("top_k", "-3", "Top-k cannot be -3."),
        ("top_p", "nan", "Top-p cannot be nan."),
        ("max_tokens", "9999999999", "Max tokens cannot be 1e+10."),
    ],
)
def test_unusable_number_says_why_and_keeps_the_last_good_one(
    panel: SamplerPanel,
    told: list[SamplerSettings],
    qtbot: QtBot,
    name: str,
    typed: str,
    words: str,
) -> None:
    row = number_row(panel, name)
    before = row.field.text()
    row.field.lineEdit().selectAll()
    qtbot.keyClick(row.field.lineEdit(), Qt.Key.Key_Delete)
    qtbot.keyClicks(row.field.lineEdit(), typed)
    qtbot.keyClick(row.field.lineEdit(), Qt.Key.Key_Return)
    assert row.error.isVisible()
    assert row.error.text().startswith(words)
    assert row.field.accessibleDescription().startswith(words)
    assert row.field.text() == before
    assert panel.settings() == DEFAULTS
    assert told == []
    qtbot.keyClick(row.field, Qt.Key.Key_Up)
    assert not row.error.isVisible()


def test_arrow_keys_step_to_multiples(panel: SamplerPanel, qtbot: QtBot) -> None:
    row = number_row(panel, "max_tokens")
    panel.set_settings(SamplerSettings(max_tokens=-1))
    for expected in (0, 64, 128):
        qtbot.keyClick(row.field, Qt.Key.Key_Up)
        assert panel.settings().max_tokens == expected


def test_slider_and_field_follow_each_other(
    panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot
) -> None:
    row = number_row(panel, "max_tokens")
    qtbot.keyClick(row.slider, Qt.Key.Key_End)
    assert panel.settings().max_tokens == 1_000_000
    assert row.field.text() == "1000000"
    qtbot.keyClick(row.slider, Qt.Key.Key_Home)
    assert (panel.settings().max_tokens, row.field.text()) == (-1, "No limit")
    assert len(told) == 2
    type_number(qtbot, row, "2049")
    assert row.slider.scale.value(row.slider.value()) == 2048
    assert panel.settings().max_tokens == 2049  # the slider's nearest stop changes nothing
    assert len(told) == 3


def test_click_on_the_groove_moves_the_handle_there(panel: SamplerPanel, qtbot: QtBot) -> None:
    slider = number_row(panel, "top_p").slider
    qtbot.mouseClick(
        slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, slider.height() // 2)
    )
    assert panel.settings().top_p == pytest.approx(0.5, abs=0.02)
    assert not slider.isSliderDown()


def turn_wheel(widget: QWidget) -> bool:
    """Whether the widget kept the turn for itself."""
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(widget.mapToGlobal(QPoint(5, 5))),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    event.setAccepted(False)
    widget.wheelEvent(event)
    return event.isAccepted()


def test_wheel_scrolls_the_panel_unless_the_control_has_the_focus(
    panel: SamplerPanel, qtbot: QtBot
) -> None:
    row = number_row(panel, "temperature")
    for widget in (row.slider, row.field, panel.presets):
        assert widget.focusPolicy() == Qt.FocusPolicy.StrongFocus
        panel.setFocus()
        assert not turn_wheel(widget)
    assert panel.settings() == DEFAULTS
    with qtbot.waitExposed(panel):
        panel.activateWindow()
    row.slider.setFocus()
    qtbot.waitUntil(row.slider.hasFocus)
    assert turn_wheel(row.slider)
    assert panel.settings().temperature != 0.8


# ---- the dot, reset, presets ------------------------------------------------------------------


def test_dot_stands_beside_changed_values_and_resets_them(
    panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot
) -> None:
    row = panel.row("temperature")
    assert not row.dot.isVisible()
    panel.set_settings(SamplerSettings(temperature=1.5, top_k=3))
    assert row.dot.isVisible()
    assert "0.80" in row.dot.toolTip()
    qtbot.mouseClick(row.dot, Qt.MouseButton.LeftButton)
    assert not row.dot.isVisible()
    assert told == [SamplerSettings(top_k=3)]


def test_preset_keeps_what_is_typed(
    panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot
) -> None:
    typed = SamplerSettings(seed=7, stop=("X",), grammar='root ::= "a"', mirostat=2)
    panel.set_settings(typed)
    assert panel.presets.currentText() == CUSTOM
    panel.presets.setFocus()
    index = [preset.name for preset in PRESETS].index("Precise")
    panel.presets.setCurrentIndex(index)
    panel.presets.activated.emit(index)
    expected = SamplerSettings(
        seed=7, stop=("X",), grammar='root ::= "a"', temperature=0.2, top_p=0.9, top_k=20
    )
    assert told == [expected]
    assert panel.settings() == expected
    assert panel.presets.currentText() == "Precise"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_preset_is_recognised_until_a_value_differs(panel: SamplerPanel, preset: object) -> None:
    assert preset in PRESETS
    values = next(known.values for known in PRESETS if known is preset)
    panel.set_settings(SamplerSettings(**values, seed=3))  # type: ignore[arg-type]
    assert matching_preset(panel.settings()) is preset
    panel.set_settings(dataclasses.replace(panel.settings(), typical_p=0.5))
    assert matching_preset(panel.settings()) is None
    assert panel.presets.currentText() == CUSTOM


def test_custom_cannot_be_chosen(panel: SamplerPanel) -> None:
    last = panel.presets.model().index(panel.presets.count() - 1, 0)
    assert panel.presets.itemText(last.row()) == CUSTOM
    assert not last.flags() & Qt.ItemFlag.ItemIsEnabled


def test_reset_all(panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot) -> None:
    assert not panel.reset_button.isEnabled()
    panel.set_settings(SamplerSettings(min_p=0.3, seed=9, stop=("a",)))
    qtbot.mouseClick(panel.reset_button, Qt.MouseButton.LeftButton)
    assert told == [DEFAULTS]
    assert not panel.reset_button.isEnabled()


def test_folded_sections_say_how_much_is_changed(panel: SamplerPanel) -> None:
    panel.set_settings(SamplerSettings(dry_base=2.0, xtc_threshold=0.2, seed=1))
    assert panel.section(Group.MORE).header.summary == "2 changed"
    assert panel.section(Group.TEXT).header.summary == "1 changed"


def test_order_names_what_replaces_it(panel: SamplerPanel) -> None:
    order = panel.findChild(QWidget, "sampling_order")
    panel.set_settings(SamplerSettings(temperature=0))
    assert "likeliest token" in order.text()
    panel.set_settings(SamplerSettings(mirostat=2))
    assert "Mirostat replaces" in order.text()


# ---- typed settings ---------------------------------------------------------------------------


def test_seed_dice_and_clear(
    panel: SamplerPanel, told: list[SamplerSettings], qtbot: QtBot
) -> None:
    row = seed_row(panel)
    assert not row.clear.isEnabled()
    row.dice.click()
    drawn = panel.settings().seed
    assert drawn is not None
    assert 0 <= drawn <= MAX_SEED
    assert row.field.text() == str(drawn)
    row.clear.click()
    assert panel.settings().seed is None
    assert [report.seed for report in told] == [drawn, None]


@pytest.mark.parametrize("typed", ["-1", "4294967295", "1.5", "seed", "１"])
def test_unusable_seed_keeps_the_last_good_one(
    panel: SamplerPanel, qtbot: QtBot, typed: str
) -> None:
    panel.set_settings(SamplerSettings(seed=5))
    panel.section(Group.TEXT).set_expanded(True)
    row = seed_row(panel)
    row.field.setText(typed)
    qtbot.waitUntil(row.error.isVisible)
    assert "is no seed" in row.error.text()
    assert panel.settings().seed == 5
    row.field.setText("6")
    assert not row.error.isVisible()
    assert panel.settings().seed == 6


def test_stop_strings_understand_escapes(panel: SamplerPanel) -> None:
    area(panel, "stop").setPlainText("\\nUser:\n\nEND\\t\\\\n")
    assert panel.settings().stop == ("\nUser:", "END\t\\n")
    panel.set_settings(SamplerSettings(stop=("a\nb", "c ")))
    assert area(panel, "stop").toPlainText() == "a\\nb\nc\\s"


def test_unknown_escape_is_said(panel: SamplerPanel, qtbot: QtBot) -> None:
    panel.section(Group.TEXT).set_expanded(True)
    area(panel, "stop").setPlainText("\\q")
    row = panel.row("stop")
    qtbot.waitUntil(row.error.isVisible)
    assert row.error.text().startswith("“\\q” means nothing here.")
    assert panel.settings().stop == ()


def test_logit_bias_lines(panel: SamplerPanel, qtbot: QtBot) -> None:
    field = area(panel, "logit_bias")
    field.setPlainText("12 = -1.5\n7=-inf")
    assert panel.settings().logit_bias == ((12, -1.5), (7, -math.inf))
    panel.section(Group.TEXT).set_expanded(True)
    row = panel.row("logit_bias")
    field.setPlainText("12")
    qtbot.waitUntil(row.error.isVisible)
    assert "12" in row.error.text()
    field.setPlainText("3=nan")
    assert "cannot be used" in row.error.text()
    assert panel.settings().logit_bias == ((12, -1.5), (7, -math.inf))


def test_grammar_is_taken_as_it_stands(panel: SamplerPanel) -> None:
    grammar = 'root ::= "\\n" [a-z]+\n  # comment \\q'
    area(panel, "grammar").setPlainText(grammar)
    assert panel.settings().grammar == grammar
    area(panel, "grammar").setPlainText(" \n ")
    assert panel.settings().grammar == ""


@given(st.lists(TEXT, max_size=4).map(tuple))
def test_strings_survive_being_written_one_per_line(texts: tuple[str, ...]) -> None:
    assert unescape_lines(escape_lines(texts)) == texts


@given(TEXT)
def test_written_strings_are_one_visible_line(text: str) -> None:
    written = escape(text)
    assert written.isprintable() or any(ord(character) > 0xFFFF for character in written)
    assert not written.endswith(" ")


@pytest.mark.parametrize("written", ["\\", "\\x4", "\\q", "\\UFFFFFFFF"])
def test_broken_escapes_are_refused(written: str) -> None:
    with pytest.raises(UsageError):
        unescape(written)


# ---- system prompt and template variables -----------------------------------------------------


def test_system_prompt_reports_typing_only(qtbot: QtBot) -> None:
    editor = SystemPromptEditor()
    qtbot.addWidget(editor)
    told: list[str] = []
    editor.changed.connect(told.append)
    editor.set_text("Be brief.\nBe kind.")
    assert (editor.text(), editor.header.summary) == ("Be brief.\nBe kind.", "Be brief. Be kind.")
    assert told == []
    qtbot.keyClicks(editor.field, "A")
    assert told == ["ABe brief.\nBe kind."]


@dataclasses.dataclass(frozen=True)
class FakeVariable:
    name: str
    kind: str
    label: str = ""
    choices: tuple[str, ...] = ()
    default: object = None


VARIABLES = (
    FakeVariable("enable_thinking", "switch", "Thinking"),
    FakeVariable("keep", "switch", "Keep", default=True),
    FakeVariable("effort", "choice", "Effort", ("low", "high"), "low"),
    FakeVariable("budget", "number", "Budget"),
    FakeVariable("date_string", "text"),
)


@pytest.fixture
def variables(qtbot: QtBot) -> Iterator[TemplateVariablesEditor]:
    box = QWidget()
    qtbot.addWidget(box)
    editor = TemplateVariablesEditor(box)
    box.show()
    yield editor
    assert editor.parent() is box  # the box lives as long as the test


def test_no_variables_take_no_room(variables: TemplateVariablesEditor) -> None:
    assert variables.isHidden()
    variables.set_variables(VARIABLES)
    assert not variables.isHidden()
    variables.set_variables(())
    assert variables.isHidden()
    assert variables.values() == {}


def test_only_values_that_differ_are_told(variables: TemplateVariablesEditor, qtbot: QtBot) -> None:
    told: list[dict[str, object]] = []
    variables.changed.connect(told.append)
    variables.set_variables(VARIABLES)
    assert (variables.values(), told) == ({}, [])
    variables.control("enable_thinking").setCurrentIndex(2)
    variables.control("keep").click()
    variables.control("effort").setCurrentIndex(1)
    variables.control("budget").setText("512")
    expected = {"enable_thinking": False, "keep": False, "effort": "high", "budget": 512}
    assert variables.values() == expected
    assert told[-1] == expected
    variables.control("enable_thinking").setCurrentIndex(0)  # back to the template's own
    assert "enable_thinking" not in variables.values()


def test_kept_values_are_shown_where_they_fit(variables: TemplateVariablesEditor) -> None:
    kept = {"enable_thinking": True, "effort": "extreme", "date_string": "today", "gone": 1}
    variables.set_variables(VARIABLES, kept)
    assert variables.values() == {"enable_thinking": True, "date_string": "today"}
    date = variables.control("date_string")
    assert isinstance(date, QLineEdit)
    assert date.accessibleName() == "Date string"


def test_tab_reaches_every_control_in_view(panel: SamplerPanel, qtbot: QtBot) -> None:
    with qtbot.waitExposed(panel):
        panel.activateWindow()
    panel.presets.setFocus()
    qtbot.waitUntil(panel.presets.hasFocus)
    seen = []
    for _ in range(60):
        widget = QApplication.focusWidget()
        assert widget is not None
        if widget.objectName() in seen:
            break
        seen.append(widget.objectName())
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    for name, info in SETTINGS.items():
        if info.group is Group.MAIN:
            assert f"slider_{name}" in seen
            assert f"field_{name}" in seen
