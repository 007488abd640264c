"""A person at the window."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from slipstream.app import App, make_application
from slipstream.bridge.engine_client import EngineState
from slipstream.engine.sampling import SamplerSettings
from slipstream.storage.data_dir import data_directory

LOAD_MS = 120_000


class Person:
    """Does with the window what a person does, and waits as one would."""

    def __init__(self, qtbot: QtBot, data: Path) -> None:
        self.qtbot = qtbot
        self.data = data
        self.app: App | None = None

    def start(self, model: Path | None = None, *, wait: bool = True) -> App:
        """Start the app over this person's data directory."""
        self.app = App(make_application(), data_directory(self.data))
        self.app.start(model)
        if wait:
            self.wait_for(EngineState.READY)
        return self.app

    def quit(self) -> None:
        """Close the window as the person does."""
        if self.app is not None:
            self.app.window.close()
            self.app.window.deleteLater()
            self.app = None

    @property
    def running(self) -> App:
        assert self.app is not None
        return self.app

    def wait_for(self, state: EngineState) -> None:
        self.qtbot.waitUntil(lambda: self.running.engine.state is state, timeout=LOAD_MS)

    def choose(self, **values: object) -> None:
        """Set sampler values in the panel, as its controls do."""
        panel = self.running.window.cockpit.sampler_panel
        panel.set_settings(SamplerSettings(**values))  # type: ignore[arg-type]
        panel.settings_changed.emit(panel.settings())

    def send(self, text: str) -> None:
        """Type a message and click the send button."""
        composer = self.running.window.composer
        composer.set_text(text)
        composer.send_button.click()

    def ask(self, text: str) -> str:
        """Send a message and wait for the whole answer."""
        self.send(text)
        self.wait_for(EngineState.ANSWERING)
        self.wait_for(EngineState.READY)
        return self.running.window.transcript.answer_text()
