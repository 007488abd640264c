"""Line icons from `resources/icons`, drawn in the theme's colours and redrawn when it changes."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QObject, Qt, Slot
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton

from slipstream.resources import resource_path
from slipstream.ui.theme import Tokens, disabled_text, theme

_SIZES = (16, 18, 20, 24, 32, 36, 40, 48, 64)  # pixels, for scale factors 1 to 3

_cache: dict[tuple[str, str, str], QIcon] = {}


def icon(name: str, color_role: str = "text") -> QIcon:
    """The icon in the colour that `color_role` (a field of `Tokens`) has in the scheme in force.

    It does not follow a later change of theme: use `set_icon` for buttons, or ask again on
    `theme().changed`. Raises FileNotFoundError for an unknown name.
    """
    tokens = theme().current()
    key = (name, color_role, tokens.name)
    if key not in _cache:
        _cache[key] = _render_icon(name, color_role, tokens)
    return _cache[key]


def icon_pixmap(name: str, color_role: str = "text", px: int = 16, ratio: float = 1.0) -> QPixmap:
    """The icon as a picture of `px` logical pixels, sharp at the device pixel ratio `ratio`."""
    colour = getattr(theme().current(), color_role)
    pixmap = _render(name, colour, round(px * ratio))
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def set_icon(button: QAbstractButton, name: str, color_role: str = "text") -> None:
    """Give `button` the icon and keep it in step with the theme; calling again replaces it."""
    binding = button.findChild(_IconBinding, options=Qt.FindChildOption.FindDirectChildrenOnly)
    if binding is None:
        binding = _IconBinding(button)
    binding.show(name, color_role)


class _IconBinding(QObject):
    """Lives as a child of its button and redraws the icon when the theme changes."""

    def __init__(self, button: QAbstractButton) -> None:
        super().__init__(button)
        self._button = button
        self._name = ""
        self._role = "text"
        theme().changed.connect(self._refresh)

    def show(self, name: str, color_role: str) -> None:
        self._name, self._role = name, color_role
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self._button.setIcon(icon(self._name, self._role))


def _render_icon(name: str, color_role: str, tokens: Tokens) -> QIcon:
    result = QIcon()
    for size in _SIZES:
        result.addPixmap(_render(name, getattr(tokens, color_role), size), QIcon.Mode.Normal)
        result.addPixmap(_render(name, disabled_text(tokens), size), QIcon.Mode.Disabled)
    return result


def _render(name: str, colour: str, px: int) -> QPixmap:
    source = resource_path("icons", f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode()))
    pixmap = QPixmap(px, px)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter)
    painter.end()
    return pixmap
