"""Keeps Python's garbage collection in the window's thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer, Slot

_INTERVAL_MS = 1000


class GarbageCollector(QObject):
    """Collects reference cycles here and nowhere else while it is running.

    Python collects in whichever thread happens to allocate. A cycle may hold widgets or timers,
    and Qt objects that are destroyed outside their thread crash the process.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.collect_due)
        self._timer.start()

    @Slot()
    def collect_due(self) -> None:
        """Collect the oldest generation that Python would collect by now, if any."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        due = [generation for generation in range(3) if counts[generation] > thresholds[generation]]
        if counts[0] > thresholds[0]:
            gc.collect(max(due))

    def stop(self) -> None:
        """Leave collecting to Python again."""
        self._timer.stop()
        if self._was_enabled:
            gc.enable()
