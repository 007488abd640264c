"""An exact number field: shows every digit that matters and takes nothing outside the range."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QLocale, Qt, Signal
from PySide6.QtGui import QResizeEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QWidget

from slipstream.engine.sampling import SettingInfo

_DIGITS = 6  # decimals that can be typed, whatever the step is
_BORDER = 2  # room for the focus ring around the text


class NumberField(QDoubleSpinBox):
    """A number of a setting, whole or not; with the setting's word for its minimum.

    Any text can be typed. What is not a number of the range is turned down when typing ends: the
    field returns to the last good value and `rejected` carries what was typed. Decimal points and
    commas mean the same in every locale.
    """

    rejected = Signal(str)

    def __init__(self, info: SettingInfo, whole: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info = info
        self._whole = whole
        self.setLocale(QLocale.c())
        self.setDecimals(0 if whole else _DIGITS)
        self.setRange(
            -math.inf if info.minimum is None else info.minimum,
            math.inf if info.maximum is None else info.maximum,
        )
        self.setSingleStep(info.step)
        self.setSpecialValueText(info.special)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToPreviousValue)
        self.setKeyboardTracking(False)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def textFromValue(self, value: float) -> str:
        if self._whole:
            return str(round(value))
        digits = self._info.decimals
        while digits < _DIGITS and round(value, digits) != round(value, _DIGITS):
            digits += 1
        return f"{value:.{digits}f}"

    def valueFromText(self, text: str) -> float:
        value = self._parsed(text)
        return self.value() if value is None else value

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        value = self._parsed(text)
        fits = value is not None and self.minimum() <= value <= self.maximum()
        state = QValidator.State.Acceptable if fits else QValidator.State.Intermediate
        return state, text, position

    def fixup(self, text: str) -> str:
        self.rejected.emit(text.strip())
        return text

    def stepBy(self, steps: int) -> None:
        """Moves to the next multiple of the step, so that 63 is followed by 64."""
        whole_steps = round(self.value() / self.singleStep(), 9)
        start = math.floor(whole_steps) if steps > 0 else math.ceil(whole_steps)
        self.setValue((start + steps) * self.singleStep())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_text()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._place_text()

    def _place_text(self) -> None:
        """Without buttons under a style sheet, Qt leaves the text one pixel of width."""
        self.lineEdit().setGeometry(self.rect().adjusted(_BORDER, _BORDER, -_BORDER, -_BORDER))

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def _parsed(self, text: str) -> float | None:
        text = text.strip()
        if self._info.special and text.casefold() == self._info.special.casefold():
            return self.minimum()
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            return None
        if not math.isfinite(value) or (self._whole and value != int(value)):
            return None
        return value
