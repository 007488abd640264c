"""Runs losslessness checks on answers of the chat that is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMenu

from slipstream.bridge.engine_client import EngineClient, EngineState
from slipstream.chat.records import Chat, Message
from slipstream.engine.requests import AnswerRequest, LosslessnessRequest
from slipstream.engine.sampling import settings_from_values
from slipstream.ui.losslessness_dialog import LosslessnessDialog
from slipstream.ui.main_window import MainWindow


class LosslessnessController(QObject):
    """Offers the check where it can be made: for an answer of the loaded target, with a draft.

    `chat` gives the chat that is shown, `target` the loaded file's path and `draft` the name of
    what drafts, both "" where there is none.
    """

    def __init__(
        self,
        window: MainWindow,
        engine: EngineClient,
        chat: Callable[[], Chat | None],
        target: Callable[[], str],
        draft: Callable[[], str],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._chat = chat
        self._target = target
        self._draft = draft
        self.dialog = LosslessnessDialog(window)
        self.dialog.cancelled.connect(engine.stop)
        window.cockpit.draft_tools.check_requested.connect(self._check_last)
        window.transcript.menu_opening.connect(self._extend_menu)
        engine.check_progressed.connect(self.dialog.show_progress)
        engine.check_ended.connect(self.dialog.show_outcome)

    @Slot()
    def refresh(self) -> None:
        """Say whether the last answer can be checked now."""
        last = self._last_answer()
        obstacle = "There is no answer to check yet" if last is None else self._obstacle(last)
        self._window.cockpit.draft_tools.set_check_obstacle(obstacle)

    def _last_answer(self) -> Message | None:
        chat = self._chat()
        answers = [message for message in chat.messages if message.answer] if chat else []
        return answers[-1] if answers else None

    def _obstacle(self, message: Message) -> str:
        """Why this answer cannot be checked now, "" where it can."""
        record = message.answer
        if record is None or not self._target():
            return "Choose a model first"
        if Path(record.model_path) != Path(self._target()):
            return f"This answer was written by {record.model_name}, which is not loaded"
        if not self._draft():
            return "Choose a draft first"
        if self._engine.state is not EngineState.READY:
            return "The model is busy"
        return ""

    @Slot()
    def _check_last(self) -> None:
        last = self._last_answer()
        if last is not None:
            self._check(last)

    @Slot(object, object)
    def _extend_menu(self, menu: QMenu, message: Message | None) -> None:
        """Offer the check for the answer the menu was opened on."""
        if message is None or message.answer is None:
            return
        obstacle = self._obstacle(message)
        menu.addSeparator()
        action = menu.addAction("Check losslessness…")
        action.setEnabled(not obstacle)
        action.setToolTip(obstacle)
        action.triggered.connect(lambda: self._check(message))

    def _check(self, message: Message) -> None:
        chat = self._chat()
        if chat is None or message.answer is None or message not in chat.messages:
            return
        before = chat.messages[: chat.messages.index(message)]
        request = LosslessnessRequest(
            AnswerRequest(
                messages=before,
                system_prompt=chat.system_prompt,
                settings=settings_from_values(message.answer.settings),
                template_variables=self._window.cockpit.template_variables.values(),
            ),
            max_tokens=max(1, message.answer.statistics.generated_tokens),
        )
        if self._engine.check_losslessness(request):
            self.dialog.show_running(self._draft())
