"""Lets a gauge repaint at once, then at most once per interval, and stops when nothing changes."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

REPAINT_MS = 250


class RepaintLimit(QObject):
    """Turns any number of requests into few `due` signals; its timer runs only while they come."""

    due = Signal()

    def __init__(self, parent: QObject | None = None, interval_ms: int = REPAINT_MS) -> None:
        super().__init__(parent)
        self._wanted = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)  # coarse ones may fire early
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._on_timeout)

    @property
    def idle(self) -> bool:
        """Whether no timer runs."""
        return not self._timer.isActive()

    def request(self) -> None:
        """Asks for a repaint, now or at the end of the interval."""
        if self._timer.isActive():
            self._wanted = True
        else:
            self._timer.start()
            self.due.emit()

    @Slot()
    def _on_timeout(self) -> None:
        if self._wanted:
            self._wanted = False
            self._timer.start()
            self.due.emit()
