"""What self-painted widgets share: rounded boxes, chevrons, the focus ring."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from slipstream.ui.theme import RADIUS_CONTROL, Tokens


def tinted(color: str, opacity: float) -> QColor:
    """A colour at an opacity between 0 and 1."""
    result = QColor(color)
    result.setAlphaF(opacity)
    return result


def rounded(
    painter: QPainter,
    rect: QRectF,
    fill: QColor | None,
    line: QColor | None = None,
    radius: float = RADIUS_CONTROL,
    width: float = 1.0,
) -> None:
    """A rounded box whose line lies inside the rectangle."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(fill if fill is not None else Qt.BrushStyle.NoBrush)
    if line is None:
        painter.setPen(Qt.PenStyle.NoPen)
    else:
        painter.setPen(QPen(line, width))
        inset = width / 2
        rect = rect.adjusted(inset, inset, -inset, -inset)
    painter.drawRoundedRect(rect, radius, radius)
    painter.restore()


def focus_ring(painter: QPainter, rect: QRectF, tokens: Tokens, radius: float = 6) -> None:
    """The mark of the keyboard focus."""
    rounded(painter, rect, None, QColor(tokens.accent), radius, 2.0)


def chevron(painter: QPainter, centre: QPointF, color: QColor, opened: bool) -> None:
    """A small chevron that points down when opened and right when not."""
    path = QPainterPath()
    if opened:
        path.moveTo(centre + QPointF(-4, -2))
        path.lineTo(centre + QPointF(0, 2))
        path.lineTo(centre + QPointF(4, -2))
    else:
        path.moveTo(centre + QPointF(-2, -4))
        path.lineTo(centre + QPointF(2, 0))
        path.lineTo(centre + QPointF(-2, 4))
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(color, 1.5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    painter.restore()
