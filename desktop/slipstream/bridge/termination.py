"""Ctrl-C in the terminal and a polite kill, told to the event loop."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TerminationWatcher(QObject):
    """Emits `asked` in the window's thread when the process is asked to end.

    Python runs signal handlers only between its own instructions, and an idle event loop runs
    none. But Python writes the signal's number to a socket at once, which Qt can watch.
    """

    asked = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)
        self._before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
        self._descriptor = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    @Slot()
    def _read(self) -> None:
        if set(self._reader.recv(64)) & set(_SIGNALS):
            self.asked.emit()

    def stop(self) -> None:
        """Give the signals back to whoever had them."""
        signal.set_wakeup_fd(self._descriptor)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()


def _ignore(_number: int, _frame: object) -> None:
    """The event loop is told through the socket."""
