"""Drafting in the window: the choice for each target, the chip, the acceptance gauge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.bridge.engine_client import EngineClient, EngineState
from slipstream.bridge.judged_file import JudgedFile
from slipstream.chat.records import SpeculationStatistics
from slipstream.engine.requests import DraftFacts, DraftRequest, Pace, TargetFacts
from slipstream.engine.speculation.drafter import (
    LONGEST_PACED,
    DrafterKind,
    DraftSettings,
    PaceStatus,
)
from slipstream.errors import UsageError, UserError
from slipstream.ui.cockpit import Cockpit
from slipstream.ui.draft_entries import draft_entries, is_same_file
from slipstream.ui.draft_picker import NONE
from slipstream.ui.draft_search_dialog import DraftSearchDialog

RECENT_DRAFTS = 8
FOUND_DRAFTS = 24  # files beside the target that are looked at
_SETTLE_MS = 400
_WORDS = {
    DrafterKind.DRAFT_MODEL: "draft model",
    DrafterKind.EAGLE3: "EAGLE-3",
    DrafterKind.MTP: "built-in MTP",
    DrafterKind.PROMPT_LOOKUP: "prompt lookup",
}


class DraftController(QObject):
    """Keeps what was chosen for each target and asks the engine for it when that is loaded.

    `changed` tells that `drafts` or `recent` are to be saved; `failed` carries words for people.
    """

    changed = Signal()
    activity_changed = Signal()  # what `name` tells
    failed = Signal(object)  # UserError

    def __init__(
        self,
        cockpit: Cockpit,
        engine: EngineClient,
        drafts: Mapping[str, object],
        recent: tuple[str, ...],
    ) -> None:
        super().__init__(cockpit)
        self._cockpit = cockpit
        self._engine = engine
        self.drafts = dict(drafts)
        self.recent = recent
        self._target: TargetFacts | None = None
        self._key = NONE
        self._active = ""  # what drafts, as the engine said last
        self._ask_soon = QTimer(self)
        self._ask_soon.setSingleShot(True)
        self._ask_soon.setInterval(_SETTLE_MS)
        self._ask_soon.timeout.connect(self._ask)
        self._fitting: tuple[Path, ...] = ()  # files that can draft for the target
        self.search_dialog = DraftSearchDialog(cockpit.window())
        self.search_dialog.cancelled.connect(engine.stop)
        self.search_dialog.chosen.connect(self._choose)
        cockpit.draft_picker.search_requested.connect(self._search)
        engine.search_progressed.connect(self.search_dialog.show_progress)
        engine.search_ended.connect(self._show_search)
        cockpit.draft_picker.draft_chosen.connect(self._choose)
        cockpit.draft_controls.changed.connect(self._change_settings)
        engine.draft_changed.connect(self._show_changed)
        engine.draft_failed.connect(self._show_failed)
        engine.drafts_judged.connect(self._show_judged)
        engine.state_changed.connect(self._show_state)
        self._show_choice()

    def set_target(self, facts: TargetFacts) -> None:
        """Another target was loaded: draft as it was last drafted for it."""
        self._target = facts
        kept = self.drafts.get(str(facts.path))
        values = kept if isinstance(kept, Mapping) else {}
        self._key = str(values.get("key", NONE))
        self._cockpit.draft_controls.set_settings(_settings_from(values), _pace_from(values))
        self._cockpit.draft_controls.show_status(None)
        self._cockpit.acceptance.reset()
        self._cockpit.draft_picker.set_entries((), (), facts.has_mtp)
        self._show_choice()
        if self._key != NONE:
            self._cockpit.draft_chip.show_preparing()
            self._ask()
        self._engine.judge_drafts(self._candidates())

    def name(self) -> str:
        """What drafts now, in words; "" for nothing."""
        return self._active

    def path_for(self, kind: DrafterKind) -> str:
        """The draft file behind an answer that was drafted this way, "" where there is none."""
        return "" if kind is DrafterKind.NONE or self._key in list(DrafterKind) else self._key

    def show_figures(self, figures: SpeculationStatistics, pace: PaceStatus | None) -> None:
        """The figures of the answer that is being written, and what pacing does."""
        self._cockpit.draft_controls.show_status(pace)
        self._cockpit.acceptance.show_figures(figures)

    def show_tools(self) -> None:
        """Show what can be done with drafted answers, where a draft is chosen or they are shown."""
        coloured = self._cockpit.draft_tools.colours_switch.isChecked()
        self._cockpit.draft_tools.setVisible(self._key != NONE or coloured)

    def show_stopped(self, error: UserError) -> None:
        """The drafter failed on the way; the answer goes on without it."""
        self._cockpit.draft_chip.show_off_because(error.title)
        self._set_active("")
        self.failed.emit(error)

    def _candidates(self) -> tuple[Path, ...]:
        """Recent drafts, the chosen one, and what lies beside the target."""
        assert self._target is not None
        chosen = () if self._key in list(DrafterKind) else (self._key,)
        paths = [Path(path) for path in (*chosen, *self.recent)]
        beside = sorted(self._target.path.parent.glob("*.gguf"))
        return tuple(dict.fromkeys([*paths, *beside[:FOUND_DRAFTS]]))

    @Slot(str)
    def _choose(self, key: str) -> None:
        self._key = key
        if key not in list(DrafterKind):
            others = [path for path in self.recent if path != key]
            self.recent = (key, *others)[:RECENT_DRAFTS]
        self._cockpit.acceptance.reset()
        self._show_choice()
        self._keep()
        if key != NONE:
            if self._target is None:
                self._cockpit.draft_chip.show_off_because("No model is loaded.")
            else:
                self._cockpit.draft_chip.show_preparing()
        self._ask()
        if self._target is not None:
            self._engine.judge_drafts(self._candidates())

    @Slot()
    def _change_settings(self) -> None:
        self._keep()
        self._ask_soon.start()

    def _keep(self) -> None:
        if self._target is not None:
            settings = self._cockpit.draft_controls.settings()
            self.drafts[str(self._target.path)] = {
                "key": self._key,
                "n_draft_max": settings.n_draft_max,
                "p_min": settings.p_min,
                "pace": str(self._cockpit.draft_controls.pace()),
            }
            self.changed.emit()

    @Slot()
    def _ask(self) -> None:
        controls = self._cockpit.draft_controls
        pace = controls.pace()
        paced = DraftSettings(n_draft_max=LONGEST_PACED)
        needs_file = self._key not in list(DrafterKind)
        request = DraftRequest(
            kind=None if needs_file else DrafterKind(self._key),
            path=Path(self._key) if needs_file else None,
            settings=paced if pace is Pace.AUTO else controls.settings(),
            pace=pace,
            looks_up=pace is Pace.AUTO,  # asking the text costs nothing
        )
        self._engine.set_draft(request)

    @Slot()
    def _search(self) -> None:
        """Measure all that fit but the target itself."""
        if self._target is None:
            return
        target = self._target.path
        drafts = tuple(path for path in self._fitting if not is_same_file(path, target))
        if self._engine.find_best_draft(drafts):
            self.search_dialog.show_running(target.name)

    @Slot(object)
    def _show_search(self, outcome: object) -> None:
        """The search has left the target without a drafter: what was chosen drafts again."""
        self._ask()
        self.search_dialog.show_outcome(outcome)

    def _show_choice(self) -> None:
        chosen = self._key != NONE
        self._cockpit.draft_picker.show_choice(self._key)
        self._cockpit.draft_controls.setVisible(chosen)
        has_probabilities = self._key != DrafterKind.PROMPT_LOOKUP
        self._cockpit.draft_controls.set_probabilities(has_probabilities)
        self.show_tools()
        if not chosen:
            self._cockpit.acceptance.hide()
            self._cockpit.draft_chip.show_off()
            self._set_active("")

    def _set_active(self, name: str) -> None:
        if name != self._active:
            self._active = name
            self.activity_changed.emit()

    @Slot(object)
    def _show_changed(self, facts: DraftFacts) -> None:
        self._cockpit.acceptance.setVisible(facts.kind is not DrafterKind.NONE)
        if facts.kind is DrafterKind.NONE:
            self._cockpit.draft_chip.show_off()
            self._set_active("")
        else:
            name = facts.path.name if facts.path is not None else ""
            words = _WORDS[facts.kind]
            if facts.looks_up and facts.kind is not DrafterKind.PROMPT_LOOKUP:
                words = f"prompt lookup, {words}"
            self._cockpit.draft_chip.show_active(words, name)
            self._set_active(name or _WORDS[facts.kind])

    @Slot(object)
    def _show_failed(self, error: UserError) -> None:
        self._cockpit.acceptance.hide()
        self._cockpit.draft_chip.show_off_because(error.detail or error.title)
        self._set_active("")
        self.failed.emit(error)

    @Slot(object)
    def _show_judged(self, judged: tuple[JudgedFile, ...]) -> None:
        """Offer the files; the target itself is left out: it drafts for itself only as a test."""
        if self._target is None:
            return
        judgements = [file.judgement for file in judged]
        self._fitting = tuple(found.path for found in judgements if found.compatible)
        target = self._target.path
        offered = [
            entry
            for entry in draft_entries(judged)
            if entry.key == self._key or not is_same_file(Path(entry.key), target)
        ]
        recent = [entry for entry in offered if entry.key in (self._key, *self.recent)]
        found = [entry for entry in offered if entry not in recent]
        self._cockpit.draft_picker.set_entries(recent, found, self._target.has_mtp)

    @Slot(object)
    def _show_state(self, state: EngineState) -> None:
        drafting = self._cockpit.draft_chip.active
        self._cockpit.acceptance.set_answering(drafting and state is EngineState.ANSWERING)


def _pace_from(values: Mapping[str, object]) -> Pace:
    return Pace.FIXED if values.get("pace") == Pace.FIXED else Pace.AUTO


def _settings_from(values: Mapping[str, object]) -> DraftSettings:
    """The kept settings, or the defaults where they are unusable."""
    default = DraftSettings()
    try:
        return DraftSettings(
            n_draft_max=int(cast(int, values.get("n_draft_max", default.n_draft_max))),
            p_min=float(cast(float, values.get("p_min", default.p_min))),
        )
    except (TypeError, ValueError, UsageError):
        return default
