"""The window's composition root: builds every layer and knows the order of starting and ending."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from slipstream import __version__
from slipstream.bridge.engine_client import EngineClient, EngineState
from slipstream.bridge.garbage_collector import GarbageCollector
from slipstream.bridge.termination import TerminationWatcher
from slipstream.errors import UserError
from slipstream.storage.chat_database import ChatDatabase
from slipstream.storage.data_dir import DataDirectory, data_directory
from slipstream.storage.log_file import start_logging, stop_logging
from slipstream.storage.measurements import MeasurementFile
from slipstream.storage.preferences_file import PreferencesFile
from slipstream.ui.chat_controller import ChatController
from slipstream.ui.main_window import MainWindow
from slipstream.ui.theme import apply_theme

_PATIENCE_MS = 300_000


class App:
    """One window with its engine and stores, over one data directory."""

    def __init__(self, application: QApplication, data: DataDirectory) -> None:
        self._application = application
        self._closed = False
        self._garbage = GarbageCollector()
        start_logging(data.log_dir)
        notices: list[UserError] = []
        preferences = PreferencesFile(data.settings_file)
        kept = preferences.load()
        if preferences.notice is not None:
            notices.append(preferences.notice)
        apply_theme(application, kept.theme)
        chats, notice = _open_chats(data.chats_file)
        if notice is not None:
            notices.append(notice)
        self._notices = tuple(notices)
        self.window = MainWindow()
        self.engine = EngineClient(MeasurementFile(data.measurements_file))
        self._controller = ChatController(
            self.window, self.engine, chats, preferences, self._set_theme
        )
        self.window.closing.connect(self.close)

    def start(self, model: Path | None = None) -> None:
        """Show the window, then begin to load: this model, the last one, or the starter."""
        self.window.show()
        # paint before anything else is done, so that the window is there at once
        self._application.processEvents()
        self._controller.start(model, self._notices)

    def close(self) -> None:
        """End everything in order: window, engine, chats and preferences, log."""
        if self._closed:
            return
        self._closed = True
        self.window.hide()
        self._controller.shut_down()
        self._garbage.stop()
        stop_logging()

    def _set_theme(self, preference: str) -> None:
        apply_theme(self._application, preference)


def _open_chats(path: Path) -> tuple[ChatDatabase, UserError | None]:
    """The chats of this file; where it cannot be used, chats of this session only, and why."""
    try:
        chats = ChatDatabase(path)
    except UserError as error:
        hint = f"{error.hint} Until then, chats last only until you quit.".strip()
        return ChatDatabase(None), UserError(error.title, error.detail, hint)
    return chats, chats.notice


def make_application() -> QApplication:
    """The process's Qt application, made if there is none yet.

    Raises `UserError` where there is no screen.
    """
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        _check_screen()
        application = QApplication(sys.argv[:1])
    application.setApplicationName("slipstream")
    application.setApplicationDisplayName("Slipstream")
    application.setApplicationVersion(__version__)
    application.setDesktopFileName("slipstream")
    return application


def _check_screen() -> None:
    """Raise `UserError` where no window can be shown: Qt would abort the process."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "QT_QPA_PLATFORM")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in screens):
        raise UserError(
            "There is no screen to show a window on.",
            "Neither DISPLAY nor WAYLAND_DISPLAY is set.",
            "Start Slipstream in a desktop session, or use slipstream generate.",
        )


def ask_through_window(model: Path) -> str:
    """Show the window, have it answer through its widgets, and look at it.

    Returns what was seen; raises `RuntimeError` when something did not come about.
    """
    application = make_application()
    with tempfile.TemporaryDirectory(prefix="slipstream-self-test-") as folder:
        app = App(application, data_directory(Path(folder)))
        try:
            app.start(model)
            wait_for_state(app, EngineState.READY, "the model was not loaded")
            composer = app.window.composer
            composer.set_text("Say hello in five words.")
            composer.send_button.click()
            wait_for_state(app, EngineState.ANSWERING, "the message was not sent")
            wait_for_state(app, EngineState.READY, "the answer did not end")
            answer = app.window.transcript.answer_text()
            picture = app.window.grab().toImage()
        finally:
            app.close()
    if not answer.strip():
        raise RuntimeError("the answer is empty")
    columns, rows = range(0, picture.width(), 8), range(0, picture.height(), 8)
    colours = {picture.pixel(x, y) for x in columns for y in rows}
    if len(colours) < 8:
        raise RuntimeError("the window is blank")
    return f"a window of {picture.width()} × {picture.height()} answered: {answer.strip()[:60]}"


def wait_for_state(app: App, state: EngineState, failure: str) -> None:
    """Run the event loop until the engine is in this state.

    Raises `RuntimeError(failure)` where it hangs or ends up without a model.
    """
    loop = QEventLoop()
    app.engine.state_changed.connect(loop.quit)
    patience = QTimer()
    patience.setSingleShot(True)
    patience.timeout.connect(loop.quit)
    patience.start(_PATIENCE_MS)
    while app.engine.state not in (state, EngineState.EMPTY) and patience.isActive():
        loop.exec()
    app.engine.state_changed.disconnect(loop.quit)
    if app.engine.state is not state:
        raise RuntimeError(failure)


def run_window(data_dir: Path | None, model: Path | None) -> int:
    """Show the window until it is closed; returns the exit code."""
    model = model.absolute() if model is not None else None
    application = make_application()
    app = App(application, data_directory(data_dir))
    watcher = TerminationWatcher()
    watcher.asked.connect(app.window.close)
    try:
        app.start(model)
        return application.exec()
    finally:
        app.close()
        watcher.stop()
