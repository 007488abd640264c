from __future__ import annotations

import gc
import threading
import weakref

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from slipstream.bridge.garbage_collector import GarbageCollector


class Cycle(QObject):
    """Only the garbage collector can free it; it notes in which thread."""

    def __init__(self, freed_in: list[threading.Thread]) -> None:
        super().__init__()
        self.itself = self
        weakref.finalize(self, lambda: freed_in.append(threading.current_thread()))


def allocate_much() -> None:
    """Enough new objects for Python to collect several times, were it allowed to."""
    for _ in range(20):
        kept = [[number] for number in range(5000)]
        del kept


def test_cycles_are_freed_in_the_windows_thread_only(qtbot: QtBot) -> None:
    gc.collect()
    collector = GarbageCollector()
    freed_in: list[threading.Thread] = []
    try:
        assert not gc.isenabled()
        Cycle(freed_in)
        worker = threading.Thread(target=allocate_much)
        worker.start()
        worker.join()
        assert freed_in == []
        kept = [[number] for number in range(5000)]
        collector.collect_due()
        assert freed_in == [threading.current_thread()]
        assert len(kept) == 5000
    finally:
        collector.stop()
    assert gc.isenabled()


def test_nothing_is_collected_before_it_is_due(qtbot: QtBot) -> None:
    gc.collect()
    collector = GarbageCollector()
    freed_in: list[threading.Thread] = []
    try:
        Cycle(freed_in)
        collector.collect_due()
        assert freed_in == []
    finally:
        collector.stop()
        gc.collect()
