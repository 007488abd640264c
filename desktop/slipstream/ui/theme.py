"""The look: colours, spacing, type, palette and style sheet. Nothing else sets a colour.

Standard controls are dressed by `resources/styles/slipstream.qss`, filled in from the tokens.
Widgets that paint themselves read `theme().current()` and repaint on `theme().changed`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from string import Template

from PySide6.QtCore import QDir, QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from slipstream.resources import resource_path

SPACE_XS, SPACE_S, SPACE_M, SPACE_L, SPACE_XL, SPACE_XXL = 4, 8, 12, 16, 24, 32
RADIUS_CONTROL, RADIUS_CARD = 6, 10
CONTROL_PX, READING_PX, CAPTION_PX, FIGURE_PX = 13, 15, 12, 28
MEASURE_CHARACTERS = 76  # width of the text column
LINE_HEIGHT = 1.5  # of reading text
_PROSE = "the draft proposes a few tokens and the target checks them all in one pass, "
MOTION_MS = 140  # panels and hover; 0 under reduced motion


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one scheme, as #RRGGBB."""

    name: str  # "light" or "dark": the folder of the scheme's style pictures
    page: str
    surface: str
    raised: str
    border: str  # hairlines between areas
    control_border: str  # outlines of controls, at least 3:1 on every ground
    text: str
    muted: str
    accent: str
    on_accent: str
    good: str
    warn: str
    bad: str
    user_block: str
    code_block: str
    accepted_alpha: float  # opacity of the accent behind an accepted draft token


LIGHT = Tokens(
    name="light",
    page="#FBFBFA",
    surface="#FFFFFF",
    raised="#F2F2F0",
    border="#E2E1DD",
    control_border="#85847F",
    text="#1C1C1A",
    muted="#64635F",
    accent="#0F766E",
    on_accent="#FFFFFF",
    good="#147D3B",
    warn="#B05108",
    bad="#B42318",
    user_block="#EEF4F3",
    code_block="#F5F5F3",
    accepted_alpha=0.14,
)
DARK = Tokens(
    name="dark",
    page="#161716",
    surface="#1D1F1E",
    raised="#262928",
    border="#363A38",
    control_border="#7A7D79",
    text="#ECECE9",
    muted="#A2A39F",
    accent="#2DD4BF",
    on_accent="#06211E",
    good="#4ADE80",
    warn="#FBBF24",
    bad="#F87171",
    user_block="#1F2927",
    code_block="#1A1C1B",
    accepted_alpha=0.18,
)


class Theme(QObject):
    """Which scheme is in force, and the one place that puts it on an application."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._tokens = LIGHT
        self._preference = "system"
        self._app: QApplication | None = None

    def current(self) -> Tokens:
        """The colours in force."""
        return self._tokens

    def preference(self) -> str:
        """What was asked for: "system", "light" or "dark"."""
        return self._preference

    def is_dark(self) -> bool:
        """Whether the dark scheme is in force."""
        return self._tokens is DARK

    def apply(self, app: QApplication, preference: str) -> None:
        """Dress `app`; "system" follows the desktop from then on. Anything unknown is "system"."""
        self._preference = preference if preference in ("light", "dark") else "system"
        hints = app.styleHints()
        if self._app is not app:
            self._app = app
            QDir.setSearchPaths("slipstream", [str(resource_path("styles"))])
            app.setStyle("Fusion")
            app.setFont(interface_font())
            hints.colorSchemeChanged.connect(self._follow_system)
        if self._preference == "system":
            hints.unsetColorScheme()
            self._dress(app, hints.colorScheme())
        else:
            is_dark = self._preference == "dark"
            scheme = Qt.ColorScheme.Dark if is_dark else Qt.ColorScheme.Light
            hints.setColorScheme(scheme)  # title bars and native dialogs follow as well
            self._dress(app, scheme)

    @Slot(Qt.ColorScheme)
    def _follow_system(self, scheme: Qt.ColorScheme) -> None:
        if self._app is not None and self._preference == "system":
            self._dress(self._app, scheme)

    def _dress(self, app: QApplication, scheme: Qt.ColorScheme) -> None:
        """Put the scheme on; `Unknown`, which some desktops report, counts as light."""
        self._tokens = DARK if scheme == Qt.ColorScheme.Dark else LIGHT
        app.setPalette(palette(self._tokens))
        app.setStyleSheet(style_sheet(self._tokens))
        self.changed.emit()


_THEME: Theme | None = None


def theme() -> Theme:
    """The application's theme."""
    global _THEME
    if _THEME is None:
        _THEME = Theme()
    return _THEME


def apply_theme(app: QApplication, preference: str) -> None:
    """Dress the application; `preference` is "system", "light" or "dark"."""
    theme().apply(app, preference)


def palette(tokens: Tokens) -> QPalette:
    """Every palette role in the scheme's colours, disabled ones included."""
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    colours = {
        role.Window: tokens.page,
        role.WindowText: tokens.text,
        role.Base: tokens.surface,
        role.AlternateBase: tokens.raised,
        role.ToolTipBase: tokens.raised,
        role.ToolTipText: tokens.text,
        role.PlaceholderText: tokens.muted,
        role.Text: tokens.text,
        role.Button: tokens.surface,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.bad,
        role.Light: tokens.surface,
        role.Midlight: tokens.raised,
        role.Mid: tokens.border,
        role.Dark: tokens.control_border,
        role.Shadow: tokens.muted,
        role.Highlight: tokens.accent,
        role.HighlightedText: tokens.on_accent,
        role.Accent: tokens.accent,
        role.Link: tokens.accent,
        role.LinkVisited: tokens.accent,
    }
    result = QPalette()
    for colour_role, colour in colours.items():
        result.setColor(colour_role, QColor(colour))
    faded = QColor(disabled_text(tokens))
    for colour_role in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        result.setColor(group.Disabled, colour_role, faded)
    result.setColor(group.Disabled, role.Highlight, QColor(tokens.border))
    result.setColor(group.Disabled, role.HighlightedText, faded)
    return result


def style_sheet(tokens: Tokens) -> str:
    """The one style sheet, with the scheme's colours and the sizes filled in."""
    values: dict[str, object] = {item.name: getattr(tokens, item.name) for item in fields(tokens)}
    values.update(
        disabled=disabled_text(tokens),
        hover=mix(tokens.text, tokens.surface, 0.06),
        pressed=mix(tokens.text, tokens.surface, 0.12),
        hover_on_page=mix(tokens.text, tokens.page, 0.07),
        pressed_on_page=mix(tokens.text, tokens.page, 0.13),
        accent_hover=mix(tokens.text, tokens.accent, 0.12),
        accent_pressed=mix(tokens.text, tokens.accent, 0.22),
        selection=mix(tokens.accent, tokens.surface, 0.16),
        scroll=mix(tokens.text, tokens.page, 0.24),
        scroll_hover=mix(tokens.text, tokens.page, 0.42),
        radius=RADIUS_CONTROL,
        card_radius=RADIUS_CARD,
        caption_px=CAPTION_PX,
        figure_px=FIGURE_PX,
    )
    text = resource_path("styles", "slipstream.qss").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def set_kind(widget: QWidget, kind: str) -> None:
    """Choose the variant of a control that the style sheet knows by its `kind` property.

    Buttons: "primary", "secondary" (the default), "ghost"; labels: "caption", "muted", "figure",
    "heading", "good", "warn", "bad"; frames: "card".
    """
    widget.setProperty("kind", kind)
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


def interface_font(px: int = CONTROL_PX) -> QFont:
    """The system's interface font at `px` pixels."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPixelSize(px)
    return font


def tabular_font(px: int) -> QFont:
    """The interface font with figures of equal width, so that changing numbers do not jump."""
    font = interface_font(px)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def monospace_font(px: int = CONTROL_PX) -> QFont:
    """The system's fixed font at `px` pixels."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(px)
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def reading_width(px: int = READING_PX) -> int:
    """Width in pixels of the text column: 76 characters of ordinary prose at `px` pixels."""
    metrics = QFontMetricsF(interface_font(px))
    return round(metrics.horizontalAdvance(_PROSE) / len(_PROSE) * MEASURE_CHARACTERS)


def disabled_text(tokens: Tokens) -> str:
    """The colour of words on disabled controls: half way from text to surface."""
    return mix(tokens.muted, tokens.surface, 0.68)


def mix(over: str, ground: str, share: float) -> str:
    """`share` of the colour `over` laid on the colour `ground`, all as #RRGGBB."""
    upper, lower = QColor(over), QColor(ground)
    channels = (
        (upper.red(), lower.red()),
        (upper.green(), lower.green()),
        (upper.blue(), lower.blue()),
    )
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02X}" for a, b in channels)


def contrast_ratio(first: str, second: str) -> float:
    """The WCAG 2 contrast of two #RRGGBB colours, 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it, 0 to 1."""
    channels = []
    for start in (1, 3, 5):
        value = int(colour[start : start + 2], 16) / 255
        channels.append(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
    red, green, blue = channels
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
