"""Ctrl-C during a generation: stops llama.cpp at once instead of when it next returns."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def on_interrupt(action: Callable[[], None]) -> Iterator[threading.Event]:
    """Run `action` when Ctrl-C is pressed, also while native code is running.

    Python runs signal handlers only between its own instructions, but writes the signal's number
    to a descriptor at once; a thread that waits there acts. The event tells whether it happened.
    Only the main thread may use this.
    """
    happened = threading.Event()
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def watch() -> None:
        while data := reader.recv(1):
            if data[0] == signal.SIGINT:
                happened.set()
                action()

    watcher = threading.Thread(target=watch, name="interrupt", daemon=True)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield happened
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGINT, before)
        writer.close()
        watcher.join()
        reader.close()
