"""A slider over a scale of values, with the default marked; self-painted in the theme's colours."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QSlider, QStyle, QWidget

from slipstream.ui.painting import focus_ring, rounded
from slipstream.ui.slider_scale import SliderScale
from slipstream.ui.theme import theme

_HANDLE = 14  # diameter
_GROOVE = 4  # height


class ValueSlider(QSlider):
    """Points at one stop of a scale. `picked` carries the value when a person moved it.

    The filled part begins at the lowest value, or at 0 when the range is `two_sided`.
    """

    picked = Signal(float)

    def __init__(
        self,
        scale: SliderScale,
        default: float,
        parent: QWidget | None = None,
        two_sided: bool = False,
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._scale = scale
        self._default_position = scale.position(default)
        self._shown = 0
        self._two_sided = two_sided
        self.setRange(0, scale.last)
        self.setSingleStep(1)
        self.setPageStep(max(scale.last // 10, 1))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.valueChanged.connect(self._on_position_changed)

    @property
    def scale(self) -> SliderScale:
        """The values behind the positions."""
        return self._scale

    def show_value(self, value: float) -> None:
        """Moves the handle to the stop nearest to a value, without a signal."""
        self._shown = self._scale.position(value)
        self.setValue(self._shown)

    @Slot(int)
    def _on_position_changed(self, position: int) -> None:
        if position != self._shown:
            self._shown = position
            self.picked.emit(self._scale.value(position))

    def sizeHint(self) -> QSize:
        return QSize(160, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 24)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolls the panel around it unless the slider has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._follow(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._follow(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.setSliderDown(False)
        event.accept()

    def _follow(self, event: QMouseEvent) -> None:
        """The handle goes where the pointer is, at once."""
        if not event.buttons() & Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self.setSliderDown(True)
        span = self.width() - _HANDLE
        offset = round(event.position().x()) - _HANDLE // 2
        position = QStyle.sliderValueFromPosition(
            self.minimum(), self.maximum(), offset, span, self._mirrored()
        )
        self.setSliderPosition(position)
        event.accept()

    def _mirrored(self) -> bool:
        return self.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def _x_of(self, position: int) -> float:
        """Where the middle of the handle stands for a position."""
        span = self.width() - _HANDLE
        share = position / max(self.maximum(), 1)
        return _HANDLE / 2 + span * (1 - share if self._mirrored() else share)

    def _edge(self) -> float:
        return self.width() if self._mirrored() else 0

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        handle = self._x_of(self.sliderPosition())
        start = self._x_of(self._scale.position(0)) if self._two_sided else self._edge()
        groove = QRectF(0, middle - _GROOVE / 2, self.width(), _GROOVE)
        rounded(painter, groove, QColor(tokens.border), None, _GROOVE / 2)
        filled = QRectF(QPointF(start, groove.top()), QPointF(handle, groove.bottom()))
        accent = QColor(tokens.accent if self.isEnabled() else tokens.muted)
        rounded(painter, filled.normalized(), accent, None, _GROOVE / 2)
        default = self._x_of(self._default_position)
        mark = QRectF(default - 1, middle + 8, 2, 4)
        rounded(painter, mark, QColor(tokens.muted), None, 1)
        knob = QRectF(handle - _HANDLE / 2, middle - _HANDLE / 2, _HANDLE, _HANDLE)
        hovered = self.underMouse() or self.isSliderDown()
        ground = QColor(tokens.surface)
        rounded(painter, knob, accent if hovered else ground, accent, _HANDLE / 2, 2)
        if self.hasFocus():
            ring = knob.adjusted(-3, -3, 3, 3)
            focus_ring(painter, ring, tokens, ring.width() / 2)
        painter.end()
