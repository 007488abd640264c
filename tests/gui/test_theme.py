"""The look: contrast, both schemes, following the system, fonts and icons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from slipstream.resources import resource_path
from slipstream.ui.icons import icon, set_icon
from slipstream.ui.notice_strip import Severity, strip_ground
from slipstream.ui.theme import (
    DARK,
    LIGHT,
    Tokens,
    apply_theme,
    contrast_ratio,
    interface_font,
    mix,
    monospace_font,
    palette,
    reading_width,
    style_sheet,
    tabular_font,
    theme,
)

GROUNDS = ("page", "surface", "raised", "user_block", "code_block")
SCHEMES = pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])


@pytest.fixture(autouse=True)
def light_again(qapp: QApplication) -> Iterator[None]:
    apply_theme(qapp, "light")
    yield
    apply_theme(qapp, "light")


def test_contrast_of_black_and_white() -> None:
    assert contrast_ratio("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast_ratio("#777777", "#777777") == pytest.approx(1)
    assert contrast_ratio("#FFFFFF", "#767676") == pytest.approx(4.54, abs=0.01)


@SCHEMES
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("words", ["text", "muted", "accent", "good", "warn", "bad"])
def test_words_are_readable_on_every_ground(tokens: Tokens, words: str, ground: str) -> None:
    assert contrast_ratio(getattr(tokens, words), getattr(tokens, ground)) >= 4.5


@SCHEMES
@pytest.mark.parametrize("ground", GROUNDS)
def test_borders_of_controls_are_visible(tokens: Tokens, ground: str) -> None:
    assert contrast_ratio(tokens.control_border, getattr(tokens, ground)) >= 3


@SCHEMES
def test_words_on_the_accent_are_readable(tokens: Tokens) -> None:
    for share in (0, 0.12, 0.22):  # at rest, hovered, pressed
        ground = mix(tokens.text, tokens.accent, share)
        assert contrast_ratio(tokens.on_accent, ground) >= 4.5


@SCHEMES
@pytest.mark.parametrize("severity", list(Severity))
def test_notices_are_readable(tokens: Tokens, severity: Severity) -> None:
    ground = strip_ground(tokens, severity)
    assert contrast_ratio(tokens.text, ground) >= 4.5
    assert contrast_ratio(tokens.muted, ground) >= 4.5
    assert contrast_ratio(getattr(tokens, severity.colour), ground) >= 3


@SCHEMES
def test_style_sheet_is_filled_in(tokens: Tokens) -> None:
    sheet = style_sheet(tokens)
    assert "$" not in sheet.replace("$names", "")
    assert tokens.accent in sheet


@SCHEMES
def test_style_pictures_have_the_colours_of_the_tokens(tokens: Tokens) -> None:
    expected = {
        "check": tokens.on_accent,
        "dash": tokens.on_accent,
        "chevron-down": tokens.muted,
        "chevron-up": tokens.muted,
    }
    for name, colour in expected.items():
        picture = resource_path("styles", tokens.name, f"{name}.svg").read_text(encoding="utf-8")
        assert f'stroke="{colour}"' in picture


@SCHEMES
def test_disabled_words_differ_from_enabled_ones(tokens: Tokens) -> None:
    colours = palette(tokens)
    enabled = colours.color(QPalette.ColorGroup.Active, QPalette.ColorRole.Text)
    disabled = colours.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert enabled != disabled


def test_preference_decides(qapp: QApplication) -> None:
    apply_theme(qapp, "dark")
    assert theme().current() is DARK
    assert theme().is_dark()
    assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == DARK.page
    apply_theme(qapp, "light")
    assert theme().current() is LIGHT
    assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == LIGHT.page


def test_system_is_followed_while_it_changes(qapp: QApplication, qtbot: QtBot) -> None:
    apply_theme(qapp, "system")
    assert theme().current() is LIGHT  # unknown counts as light
    # The offscreen platform has no scheme of its own to switch: say what a desktop would say.
    for scheme, tokens in ((Qt.ColorScheme.Dark, DARK), (Qt.ColorScheme.Light, LIGHT)):
        with qtbot.waitSignal(theme().changed):
            qapp.styleHints().colorSchemeChanged.emit(scheme)
        assert theme().current() is tokens


def test_a_fixed_choice_ignores_the_system(qapp: QApplication) -> None:
    apply_theme(qapp, "dark")
    qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Light)
    assert theme().current() is DARK


def test_unknown_preference_means_system(qapp: QApplication) -> None:
    apply_theme(qapp, "sepia")
    assert theme().preference() == "system"


def test_fonts_have_the_sizes_asked_for(qapp: QApplication) -> None:
    assert interface_font(15).pixelSize() == 15
    assert monospace_font(12).pixelSize() == 12
    figures = QFontMetricsF(tabular_font(28))
    assert len({figures.horizontalAdvance(digit) for digit in "0123456789"}) == 1


def test_text_column_holds_about_76_characters(qapp: QApplication) -> None:
    prose = "A reading column should neither tire the eye nor waste the width of the screen."
    per_character = QFontMetricsF(interface_font(15)).horizontalAdvance(prose) / len(prose)
    assert 66 <= reading_width() / per_character <= 84


def test_every_icon_renders_in_the_colour_of_its_role(qapp: QApplication) -> None:
    for path in resource_path("icons").glob("*.svg"):
        image = icon(path.stem, "accent").pixmap(24, 24).toImage()
        pixels = [
            image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())
        ]
        strongest = max(pixels, key=QColor.alpha)
        assert strongest.alpha() > 150, path.stem
        accent = QColor(LIGHT.accent)
        for channel in (QColor.red, QColor.green, QColor.blue):
            assert abs(channel(strongest) - channel(accent)) <= 3, path.stem


def test_unknown_icon_is_an_error(qapp: QApplication) -> None:
    with pytest.raises(FileNotFoundError):
        icon("no-such-icon")


def test_button_icon_follows_the_theme(qapp: QApplication, qtbot: QtBot) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    set_icon(button, "copy")
    set_icon(button, "plus")
    light = button.icon().pixmap(24, 24).toImage()
    apply_theme(qapp, "dark")
    assert button.icon().pixmap(24, 24).toImage() != light
    apply_theme(qapp, "light")
    assert button.icon().pixmap(24, 24).toImage() == light
