"""Draws the whole window in its states to PNG files, for looking at.

`python tests/gui/window_gallery.py OUTDIR [STATE …]` with the starter model; under a real or a
virtual screen, or with QT_QPA_PLATFORM=offscreen.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer

from slipstream.app import App, make_application, wait_for_state
from slipstream.bridge.engine_client import EngineState
from slipstream.engine.sampling import SamplerSettings
from slipstream.storage.data_dir import data_directory
from slipstream.ui.losslessness_dialog import LosslessnessDialog
from slipstream.ui.theme import apply_theme

QUESTION = "Write a short Python function that reverses a string, then explain it in a bullet list."


def pump(seconds: float) -> None:
    """Let the window live for a while."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


class Gallery:
    def __init__(self, folder: Path, app: App) -> None:
        self.folder = folder
        self.app = app

    def shot(self, name: str) -> None:
        for scheme in ("light", "dark"):
            apply_theme(make_application(), scheme)
            pump(0.2)
            self.app.window.grab().save(str(self.folder / f"{name}-{scheme}.png"))

    def wait(self, state: EngineState) -> None:
        wait_for_state(self.app, state, f"never {state.value}")

    def ask(self, text: str) -> None:
        self.app.window.composer.set_text(text)
        self.app.window.composer.send_button.click()

    def draw(self) -> None:
        window = self.app.window
        self.wait(EngineState.READY)
        self.shot("empty")
        window.cockpit.sampler_panel.set_settings(
            SamplerSettings(temperature=0.3, seed=7, max_tokens=260)
        )
        self.ask(QUESTION)
        pump(2.0)
        self.shot("streaming")
        self.wait(EngineState.READY)
        self.ask("Thank you! Now say it in one sentence, please.")
        self.wait(EngineState.READY)
        self.shot("chat")
        window.cockpit.draft_picker.draft_chosen.emit("prompt-lookup")
        pump(2.0)
        self.ask("Repeat your last answer word for word.")
        self.wait(EngineState.READY)
        self.shot("drafted")
        window.cockpit.draft_tools.colours_switch.click()
        self.shot("coloured")
        window.cockpit.threads_panel.section.set_expanded(True)
        pump(0.4)
        window.cockpit.ensureWidgetVisible(window.cockpit.threads_panel)
        self.shot("performance")
        window.transcript.set_reading_size(23)
        self.shot("large-text")
        window.transcript.set_reading_size(15)
        window.cockpit.draft_tools.check_button.click()
        self.wait(EngineState.READY)
        dialog = window.findChild(LosslessnessDialog)
        assert dialog is not None
        pump(0.3)
        dialog.grab().save(str(self.folder / "losslessness.png"))
        dialog.close()
        window.cockpit.draft_tools.colours_switch.click()
        window.sidebar.new_button.click()
        self.ask("مرحبا! Please answer in English: what does this word mean?")
        self.wait(EngineState.READY)
        self.shot("second-chat")
        broken = self.folder / "Broken Model – kaputt.gguf"
        broken.write_bytes(b"GGUF" + bytes(33))
        window.model_dropped.emit(str(broken))
        pump(1.0)
        self.shot("error")
        window.notice_strip.dismiss()
        window.resize(820, 600)
        self.shot("narrow")
        window.resize(520, 640)
        self.shot("very-narrow")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        app = App(make_application(), data_directory(Path(data)))
        try:
            app.start()
            Gallery(folder, app).draw()
        finally:
            app.close()


if __name__ == "__main__":
    main()
