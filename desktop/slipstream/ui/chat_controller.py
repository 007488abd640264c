"""What the parts of the window do together: chats, answers, models, and what is remembered."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Slot

from slipstream.bridge.engine_client import EngineClient, EngineState
from slipstream.bridge.frame_pump import Frame
from slipstream.chat.ports import ChatStore, PreferenceStore
from slipstream.chat.preferences import Preferences
from slipstream.chat.records import Chat, Message, Role
from slipstream.chat.titles import NEW_CHAT_TITLE, title_from_text
from slipstream.engine.events import Finished
from slipstream.engine.requests import AnswerRequest, LoadRequest, TargetFacts
from slipstream.engine.sampling import SamplerSettings, settings_from_values
from slipstream.errors import UserError
from slipstream.library.starter import starter_model_path
from slipstream.ui.draft_controller import DraftController
from slipstream.ui.live_answer import LiveAnswer
from slipstream.ui.losslessness_controller import LosslessnessController
from slipstream.ui.main_window import MainWindow
from slipstream.ui.model_entries import entry_of, starter_entry
from slipstream.ui.theme import theme

RECENT_MODELS = 8
_SAVE_MS = 400
_SETTLE_MS = 400  # a slider passes many values on its way
_EMPTY_TITLE = "What would you like to talk about?"
_EMPTY_BODY = "Everything stays on this computer."


class ChatController(QObject):
    """Connects the window to the engine and the stores; `shut_down` ends all three in order."""

    def __init__(
        self,
        window: MainWindow,
        engine: EngineClient,
        chats: ChatStore,
        preferences: PreferenceStore,
        set_theme: Callable[[str], None],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._chats = chats
        self._store = preferences
        self._set_theme = set_theme
        self._preferences = preferences.load()
        self._chat: Chat | None = None  # the one that is shown
        self._query = ""
        self._answer: LiveAnswer | None = None
        self._loading: Path | None = None
        self._facts: TargetFacts | None = None
        self._told: set[str] = set()  # notes already shown for this model
        self._save_soon = QTimer(self)
        self._save_soon.setSingleShot(True)
        self._save_soon.setInterval(_SAVE_MS)
        self._save_soon.timeout.connect(self._save_when_quiet)
        self._set_threads_soon = QTimer(self)
        self._set_threads_soon.setSingleShot(True)
        self._set_threads_soon.setInterval(_SETTLE_MS)
        self._set_threads_soon.timeout.connect(self._set_threads)
        self._drafting = DraftController(
            window.cockpit, engine, self._preferences.drafts, self._preferences.recent_drafts
        )
        self._drafting.changed.connect(self._keep_drafts)
        self._drafting.failed.connect(self._tell)
        self._losslessness = LosslessnessController(
            window, engine, lambda: self._chat, self._target_path, self._drafting.name
        )
        self._drafting.activity_changed.connect(self._losslessness.refresh)
        self._connect_window()
        self._connect_engine()

    def _connect_window(self) -> None:
        window, cockpit = self._window, self._window.cockpit
        window.composer.send_requested.connect(self._send)
        window.composer.stop_requested.connect(self._engine.stop)
        window.sidebar.new_chat_requested.connect(self.new_chat)
        window.sidebar.chat_selected.connect(self.open_chat)
        window.sidebar.chat_renamed.connect(self._rename)
        window.sidebar.search_changed.connect(self._search)
        window.model_dropped.connect(self._choose_model)
        window.theme_chosen.connect(self._choose_theme)
        window.transcript.reading_size_changed.connect(self._keep_reading_size)
        cockpit.target_picker.model_chosen.connect(self._choose_model)
        cockpit.target_picker.cancel_requested.connect(self._engine.cancel_load)
        cockpit.draft_tools.colours_switched.connect(self._show_accepted)
        cockpit.sampler_panel.settings_changed.connect(self._keep_sampler)
        cockpit.threads_panel.changed.connect(self._change_threads)
        cockpit.system_prompt.changed.connect(self._keep_system_prompt)
        cockpit.template_variables.changed.connect(self._keep_template_variables)

    def _connect_engine(self) -> None:
        cockpit = self._window.cockpit
        self._engine.state_changed.connect(self._show_state)
        self._engine.load_progressed.connect(self._show_load_progress)
        self._engine.model_loaded.connect(self._show_loaded)
        self._engine.computing_changed.connect(cockpit.threads_panel.show_facts)
        self._engine.load_failed.connect(self._show_load_failure)
        self._engine.load_cancelled.connect(self._show_load_cancelled)
        self._engine.frame_ready.connect(self._show_frame)

    # ---- start and end ----

    def start(self, model: Path | None, notices: tuple[UserError, ...] = ()) -> None:
        """Restore what was remembered; load this model, else the last one, else the starter."""
        window, kept = self._window, self._preferences
        window.restore_arrangement(kept.window_geometry, kept.window_layout)
        window.cockpit.sampler_panel.set_settings(settings_from_values(kept.sampler))
        window.transcript.set_reading_size(kept.reading_px)
        window.cockpit.threads_panel.set_threads(kept.n_threads, kept.n_threads_batch)
        window.cockpit.draft_tools.colours_switch.setChecked(kept.shows_accepted)
        self._show_entries()
        self._show_state(self._engine.state)
        self._list_chats()
        self._reopen_last_chat()
        for notice in notices:
            self._tell(notice)
        path = model or self._remembered_model() or starter_model_path()
        if path is None:
            window.cockpit.target_picker.show_none()
        else:
            self._load(path)
        window.composer.setFocus()

    def _reopen_last_chat(self) -> None:
        try:
            chat = self._chats.load(self._preferences.last_chat)
        except UserError as error:
            self._tell(error)
            chat = None
        self._show_chat(chat)

    def _remembered_model(self) -> Path | None:
        path = self._preferences.last_model
        return Path(path) if path and Path(path).is_file() else None

    def shut_down(self) -> None:
        """End answer and engine, keep what was written, then close the stores."""
        geometry, layout = self._window.save_arrangement()
        self._remember(window_geometry=geometry, window_layout=layout)
        self._set_threads_soon.stop()
        self._engine.shut_down()
        self._save_soon.stop()
        self._save_preferences()
        self._chats.close()

    # ---- chats ----

    @Slot()
    def new_chat(self) -> None:
        """Show an empty chat; it is kept from its first message on."""
        self._show_chat(None)
        self._window.composer.setFocus()

    @Slot(str)
    def open_chat(self, chat_id: str) -> None:
        """Show a chat; an answer that is being written goes on in its own."""
        if self._chat is not None and self._chat.id == chat_id:
            return
        try:
            chat = self._chats.load(chat_id)
        except UserError as error:
            self._tell(error)
            return
        self._show_chat(chat)

    def _show_chat(self, chat: Chat | None) -> None:
        self._chat = chat
        window = self._window
        window.transcript.set_conversation(chat.messages if chat else ())
        if self._answer is not None and self._is_shown(self._answer):
            window.transcript.begin_answer(self._answer.model_name)
            window.transcript.append_run(self._answer.pieces)
        window.set_chat_title(chat.title if chat else NEW_CHAT_TITLE)
        window.sidebar.select(chat.id if chat else "")
        prompt = chat.system_prompt if chat else self._preferences.system_prompt
        window.cockpit.system_prompt.set_text(prompt)
        self._remember(last_chat=chat.id if chat else "")
        self._losslessness.refresh()

    def _target_path(self) -> str:
        return str(self._facts.path) if self._facts is not None else ""

    def _is_shown(self, answer: LiveAnswer) -> bool:
        return self._chat is not None and self._chat.id == answer.chat_id

    def _list_chats(self) -> None:
        try:
            summaries = self._chats.summaries(self._query)
        except UserError as error:
            self._tell(error)
            return
        self._window.sidebar.set_chats(summaries, datetime.now().astimezone())
        self._window.sidebar.select(self._chat.id if self._chat else "")

    @Slot(str)
    def _search(self, query: str) -> None:
        self._query = query
        self._list_chats()

    @Slot(str, str)
    def _rename(self, chat_id: str, title: str) -> None:
        try:
            self._chats.set_title(chat_id, title)
        except UserError as error:
            self._tell(error)
        if self._chat is not None and self._chat.id == chat_id:
            self._chat = replace(self._chat, title=title)
            self._window.set_chat_title(title)
        self._list_chats()

    def _save_message(self, chat_id: str, message: Message) -> None:
        try:
            self._chats.save_message(chat_id, message)
        except UserError as error:
            self._tell(error)
        self._list_chats()

    # ---- answers ----

    @Slot(str)
    def _send(self, text: str) -> None:
        if self._engine.state is not EngineState.READY or self._facts is None:
            return
        question = Message(uuid.uuid4().hex, Role.USER, text, datetime.now(UTC))
        chat = self._chat or self._created_chat()
        if chat is None:
            return
        first = not chat.messages
        self._chat = replace(chat, messages=(*chat.messages, question))
        self._save_message(chat.id, question)
        if first:
            self._rename(chat.id, title_from_text(text))
        self._remember(last_chat=chat.id)
        self._window.composer.clear_after_send()
        self._window.transcript.append_user(question)
        self._ask(question)

    def _created_chat(self) -> Chat | None:
        try:
            return self._chats.create(self._window.cockpit.system_prompt.text())
        except UserError as error:
            self._tell(error)
            return None

    def _ask(self, question: Message) -> None:
        assert self._chat is not None
        assert self._facts is not None
        cockpit = self._window.cockpit
        settings = cockpit.sampler_panel.settings()
        self._answer = LiveAnswer(
            chat_id=self._chat.id,
            question=question,
            message_id=uuid.uuid4().hex,
            model_name=entry_of(self._facts.path).name,
            model_path=str(self._facts.path),
            settings=settings.changed_values(),
            begun_at=datetime.now(UTC),
        )
        self._window.transcript.begin_answer(self._answer.model_name)
        cockpit.throughput.set_prefill(None)
        cockpit.throughput.set_first_token(None)
        self._engine.answer(
            AnswerRequest(
                messages=self._chat.messages,
                system_prompt=cockpit.system_prompt.text(),
                settings=settings,
                template_variables=cockpit.template_variables.values(),
            )
        )

    @Slot(object)
    def _show_frame(self, frame: Frame) -> None:
        answer = self._answer
        if answer is None:
            return
        transcript, cockpit = self._window.transcript, self._window.cockpit
        for note in frame.notes:
            self._tell_once(note)
        shown = self._is_shown(answer)
        if frame.prefill is not None:
            cockpit.throughput.set_prefill(frame.prefill.tokens_per_second)
            self._show_context(frame.prefill.done)
            if shown:
                transcript.set_progress(frame.prefill.done, frame.prefill.total)
        answer.add(frame.pieces)
        if shown:
            transcript.append_run(frame.pieces)
        if frame.run is not None:
            cockpit.throughput.set_rate(
                frame.run.current_tokens_per_second, frame.run.tokens_per_second
            )
            cockpit.throughput.set_first_token(frame.run.time_to_first_token_seconds)
            self._show_context(frame.run.context_tokens)
            self._drafting.show_figures(frame.run.speculation, frame.run.pace)
        if frame.drafting_stopped is not None:
            self._drafting.show_stopped(frame.drafting_stopped)
        if frame.finished is not None:
            self._finish(answer, frame.finished)
        elif frame.failed is not None:
            self._give_back(answer, frame.failed)

    def _finish(self, answer: LiveAnswer, finished: Finished) -> None:
        self._answer = None
        message = answer.message(finished, self._drafting.path_for(finished.drafter))
        self._show_numbers(finished)
        if self._is_shown(answer):
            assert self._chat is not None
            self._chat = replace(self._chat, messages=(*self._chat.messages, message))
            self._window.transcript.finish(message)
        self._save_message(answer.chat_id, message)
        self._losslessness.refresh()
        if finished.error is not None:
            self._tell(finished.error)

    def _show_numbers(self, finished: Finished) -> None:
        gauge, numbers = self._window.cockpit.throughput, finished.statistics
        gauge.set_prefill(numbers.prefill_tokens_per_second)
        gauge.set_first_token(numbers.time_to_first_token_seconds)
        gauge.set_rate(None, numbers.decode_tokens_per_second)
        gauge.set_idle()
        self._show_context(numbers.context_tokens)

    def _give_back(self, answer: LiveAnswer, error: UserError) -> None:
        """An answer that never began: its question goes back to where it was typed."""
        self._answer = None
        self._window.cockpit.throughput.set_idle()
        try:
            self._chats.remove_message(answer.chat_id, answer.question.id)
        except UserError as failure:
            self._tell(failure)
        if self._is_shown(answer):
            assert self._chat is not None
            kept = tuple(m for m in self._chat.messages if m.id != answer.question.id)
            self._show_chat(replace(self._chat, messages=kept))
        typed = self._window.composer.text()
        texts = (answer.question.text, typed) if typed else (answer.question.text,)
        self._window.composer.set_text("\n\n".join(texts))
        self._list_chats()
        self._tell(error)

    def _show_context(self, used: int) -> None:
        if self._facts is not None:
            self._window.cockpit.context_meter.set_usage(used, self._facts.n_ctx)

    # ---- models ----

    @Slot(str)
    def _choose_model(self, path: str) -> None:
        self._window.notice_strip.dismiss()
        self._load(Path(path).absolute())

    def _load(self, path: Path) -> None:
        self._loading = path
        self._window.cockpit.target_picker.show_loading(entry_of(path).name, None)
        n_threads, n_threads_batch = self._window.cockpit.threads_panel.threads()
        self._engine.load(
            LoadRequest(
                path,
                n_ctx=self._preferences.n_ctx,
                n_threads=n_threads,
                n_threads_batch=n_threads_batch,
            )
        )

    @Slot(float)
    def _show_load_progress(self, fraction: float) -> None:
        if self._loading is not None:
            name = entry_of(self._loading).name
            self._window.cockpit.target_picker.show_loading(name, fraction)

    @Slot(object)
    def _show_loaded(self, facts: TargetFacts) -> None:
        self._loading = None
        self._facts = facts
        self._told.clear()
        path = str(facts.path)
        others = [recent for recent in self._preferences.recent_models if recent != path]
        self._remember(last_model=path, recent_models=(path, *others)[:RECENT_MODELS])
        cockpit = self._window.cockpit
        cockpit.target_picker.show_model(entry_of(facts.path))
        cockpit.template_variables.set_variables(
            facts.template_variables, self._preferences.template_variables
        )
        cockpit.threads_panel.show_facts(facts)
        cockpit.throughput.reset()
        self._drafting.set_target(facts)
        self._show_context(0)
        self._show_entries()
        for note in facts.notes:
            self._tell_once(note)

    @Slot(object)
    def _show_load_failure(self, error: UserError) -> None:
        self._end_load()
        self._tell(error)

    @Slot()
    def _show_load_cancelled(self) -> None:
        self._end_load()

    def _end_load(self) -> None:
        """A load came to nothing: show what is loaded now, if anything."""
        path, self._loading = self._loading, None
        picker = self._window.cockpit.target_picker
        if self._engine.state is not EngineState.EMPTY and self._facts is not None:
            picker.show_model(entry_of(self._facts.path))
            return
        self._facts = None
        if path is None:
            picker.show_none()
        else:
            picker.show_failed(entry_of(path).name)

    def _show_entries(self) -> None:
        starter = starter_entry()
        recent = [
            entry_of(Path(path))
            for path in self._preferences.recent_models
            if starter is None or path != starter.path
        ]
        self._window.cockpit.target_picker.set_entries(recent, starter)

    @Slot(object)
    def _show_state(self, state: EngineState) -> None:
        reasons = {
            EngineState.EMPTY: "Choose a model first",
            EngineState.LOADING: "The model is being loaded",
        }
        reason = reasons.get(state, "")
        self._window.composer.set_ready(not reason, reason)
        busy = state in (EngineState.ANSWERING, EngineState.CHECKING)
        self._window.composer.set_answering(busy)
        self._losslessness.refresh()
        self._window.transcript.set_empty_state(_EMPTY_TITLE, _EMPTY_BODY)

    # ---- what is remembered ----

    @Slot(object)
    def _keep_sampler(self, settings: SamplerSettings) -> None:
        self._remember(sampler=settings.changed_values())

    @Slot(dict)
    def _keep_template_variables(self, values: dict[str, object]) -> None:
        self._remember(template_variables={**self._preferences.template_variables, **values})

    @Slot(bool)
    def _show_accepted(self, shown: bool) -> None:
        self._window.transcript.show_accepted(shown)
        self._drafting.show_tools()
        self._remember(shows_accepted=shown)

    @Slot()
    def _change_threads(self) -> None:
        n_threads, n_threads_batch = self._window.cockpit.threads_panel.threads()
        self._remember(n_threads=n_threads, n_threads_batch=n_threads_batch)
        self._set_threads_soon.start()

    @Slot()
    def _set_threads(self) -> None:
        self._engine.set_threads(*self._window.cockpit.threads_panel.threads())

    @Slot()
    def _keep_drafts(self) -> None:
        self._remember(drafts=dict(self._drafting.drafts), recent_drafts=self._drafting.recent)

    @Slot(str)
    def _keep_system_prompt(self, text: str) -> None:
        self._remember(system_prompt=text)
        if self._chat is not None:
            self._chat = replace(self._chat, system_prompt=text)
            try:
                self._chats.set_system_prompt(self._chat.id, text)
            except UserError as error:
                self._tell(error)

    @Slot(int)
    def _keep_reading_size(self, pixels: int) -> None:
        self._remember(reading_px=pixels)

    @Slot(str)
    def _choose_theme(self, preference: str) -> None:
        self._set_theme(preference)
        self._remember(theme=theme().preference())

    def _remember(self, **changes: object) -> None:
        kept: Preferences = replace(self._preferences, **changes)  # type: ignore[arg-type]
        if kept != self._preferences:
            self._preferences = kept
            self._save_soon.start()

    @Slot()
    def _save_when_quiet(self) -> None:
        """Not while an answer is being written: that time is the model's."""
        if self._engine.state is EngineState.ANSWERING:
            self._save_soon.start()
        else:
            self._save_preferences()

    def _save_preferences(self) -> None:
        try:
            self._store.save(self._preferences)
        except UserError as error:
            self._tell(error)

    # ---- notices ----

    @Slot(object)
    def _tell(self, error: UserError) -> None:
        self._window.notice_strip.show_error(error)

    def _tell_once(self, note: str) -> None:
        if note not in self._told:
            self._told.add(note)
            self._window.notice_strip.show_note(note)
