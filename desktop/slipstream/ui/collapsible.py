"""A folding section: a header that is a button, and a body that it shows or hides."""

from __future__ import annotations

from PySide6.QtCore import (
    QEasingCurve,
    QPointF,
    QRectF,
    QSize,
    Qt,
    QVariantAnimation,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QStyle, QVBoxLayout, QWidget

from slipstream.ui.painting import chevron, focus_ring, rounded
from slipstream.ui.theme import CAPTION_PX, CONTROL_PX, MOTION_MS, SPACE_S, theme

_UNBOUNDED = 16_777_215  # QWIDGETSIZE_MAX


class SectionHeader(QAbstractButton):
    """The line that opens and closes a section, with a word about its content at the right."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._summary = ""
        self.setText(title)
        self.setCheckable(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(title)
        self.toggled.connect(self._describe)
        self._describe(False)

    @property
    def summary(self) -> str:
        """The words at the right."""
        return self._summary

    def set_summary(self, summary: str) -> None:
        """Shows a word about the content, such as “3 changed”."""
        if summary != self._summary:
            self._summary = summary
            self._describe(self.isChecked())
            self.update()

    @Slot(bool)
    def _describe(self, opened: bool) -> None:
        action = "Hide" if opened else "Show"
        self.setToolTip(f"{action} {self.text()[:1].lower()}{self.text()[1:]}")
        state = "Unfolded" if opened else "Folded"
        self.setAccessibleDescription(f"{state}. {self._summary}".strip())

    def sizeHint(self) -> QSize:
        return QSize(160, 32)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme().current()
        painter = QPainter(self)
        area = QRectF(self.rect())
        if self.underMouse():
            rounded(painter, area, QColor(tokens.raised))
        middle = area.center().y()
        chevron(painter, QPointF(6, middle), QColor(tokens.muted), self.isChecked())
        title_font = QFont(self.font())
        title_font.setPixelSize(CONTROL_PX)
        title_font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(title_font)
        painter.setPen(QColor(tokens.text))
        text = area.adjusted(18, 0, -SPACE_S, 0)
        flags = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(text, flags | Qt.AlignmentFlag.AlignLeft, self.text())
        if self._summary:
            taken = QFontMetrics(title_font).horizontalAdvance(self.text()) + SPACE_S
            caption_font = QFont(self.font())
            caption_font.setPixelSize(CAPTION_PX)
            painter.setFont(caption_font)
            painter.setPen(QColor(tokens.muted))
            free = text.adjusted(taken, 0, 0, 0)
            words = QFontMetrics(caption_font).elidedText(
                self._summary, Qt.TextElideMode.ElideRight, max(round(free.width()), 0)
            )
            painter.drawText(free, flags | Qt.AlignmentFlag.AlignRight, words)
        if self.hasFocus():
            focus_ring(painter, area, tokens)
        painter.end()


class CollapsibleSection(QWidget):
    """A titled body that folds away. Add widgets to `body_layout`."""

    toggled = Signal(bool)

    def __init__(self, title: str, expanded: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.header = SectionHeader(title, self)
        self.body = QWidget(self)
        self._fold = QWidget(self)
        fold_layout = QVBoxLayout(self._fold)
        fold_layout.setContentsMargins(0, 0, 0, 0)
        fold_layout.addWidget(self.body)
        self.body_layout = QVBoxLayout(self.body)
        self.body_layout.setContentsMargins(0, SPACE_S, 0, SPACE_S)
        self.body_layout.setSpacing(SPACE_S)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._fold)
        self._motion = QVariantAnimation(self)
        self._motion.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._motion.valueChanged.connect(self._set_fold_height)
        self._motion.finished.connect(self._settle)
        self.header.setChecked(expanded)
        self._fold.setVisible(expanded)
        self.header.toggled.connect(self._on_toggled)

    @property
    def expanded(self) -> bool:
        """Whether the body is in view."""
        return self.header.isChecked()

    def set_expanded(self, expanded: bool) -> None:
        """Opens or closes the section."""
        self.header.setChecked(expanded)

    def set_summary(self, summary: str) -> None:
        """Shows a word about the content in the header."""
        self.header.set_summary(summary)

    @Slot(bool)
    def _on_toggled(self, opened: bool) -> None:
        self._motion.stop()
        duration = self._duration()
        if duration:
            self._move(opened, duration)
        else:
            self._settle()
        self.toggled.emit(opened)

    def _duration(self) -> int:
        """Milliseconds of motion; 0 where it cannot be seen or is not wanted."""
        wanted = self.style().styleHint(
            QStyle.StyleHint.SH_Widget_Animation_Duration, None, self, None
        )
        return min(MOTION_MS, wanted) if self.isVisible() else 0

    def _move(self, opened: bool, duration: int) -> None:
        """Uncovers the body, laid out once at its full height, instead of squeezing it."""
        fold = self._fold
        start = fold.height() if fold.isVisible() else 0
        inner = fold.layout()
        assert inner is not None
        width = self.width()
        full = inner.heightForWidth(width) if inner.hasHeightForWidth() else -1
        full = max(full, inner.sizeHint().height())
        inner.setEnabled(False)
        fold.setFixedHeight(start)
        fold.show()
        self.body.setGeometry(0, 0, width, full)
        self._motion.setStartValue(start)
        self._motion.setEndValue(full if opened else 0)
        self._motion.setDuration(duration)
        self._motion.start()

    @Slot(object)
    def _set_fold_height(self, height: int) -> None:
        self._fold.setFixedHeight(height)

    @Slot()
    def _settle(self) -> None:
        fold = self._fold
        fold.setMinimumHeight(0)
        fold.setMaximumHeight(_UNBOUNDED)
        inner = fold.layout()
        assert inner is not None
        inner.setEnabled(True)
        fold.setVisible(self.expanded)
        inner.activate()
