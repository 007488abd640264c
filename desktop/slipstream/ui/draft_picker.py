"""The draft picker: what drafts for the target, and a menu to choose another way or file.

It shows entries it is given, unsuitable ones with the reason; it judges no file itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.ui.file_picker import FilePicker, browse_row
from slipstream.ui.section_list import ListRow
from slipstream.ui.setting_row import wrapped
from slipstream.ui.theme import SPACE_XS, set_kind

NONE, PROMPT_LOOKUP, MTP = (
    str(kind) for kind in (DrafterKind.NONE, DrafterKind.PROMPT_LOOKUP, DrafterKind.MTP)
)
FIND = ":find"  # the key of the row that starts a search; no path begins like this
WHAT_FOR = "A draft can make answers faster without changing them."
WHAT_TO_DO = "Prompt lookup needs no file."
NO_FIT = "Does not fit this target"


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """A way to draft as the picker shows it.

    `key` is "none", "prompt-lookup", "mtp" or the path of a file; `caption` a line of facts such as
    “Q8_0 · 92 MB · EAGLE-3 head”, `reason` why an unavailable one cannot draft for this target.
    """

    key: str
    name: str
    caption: str = ""
    available: bool = True
    reason: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it takes a file."""
        return self.key not in (NONE, PROMPT_LOOKUP, MTP)

    @property
    def note(self) -> str:
        """Why it cannot be used; empty where it can."""
        return "" if self.available else self.reason or f"{NO_FIT}."

    @property
    def tooltip(self) -> str:
        """Everything about it."""
        path = self.key if self.is_file else ""
        parts = (self.name, path, self.caption, self.note)
        return wrapped("\n".join(part for part in parts if part))


_NO_DRAFT = DraftEntry(NONE, "None", "Plain decoding, token by token")
_LOOKUP = DraftEntry(PROMPT_LOOKUP, "Prompt lookup", "Drafts from the text itself")
_HEADS = DraftEntry(MTP, "Built-in MTP", "The target's own heads")
_NO_HEADS = DraftEntry(MTP, _HEADS.name, available=False, reason="This target has no MTP heads.")


class DraftPicker(FilePicker):
    """Shows the chosen draft and lets a person choose another.

    `draft_chosen` carries a key and changes nothing here; `show_choice` does. A choice that the
    latest entries call unavailable stays in view, with its reason.
    """

    draft_chosen = Signal(str)
    search_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Draft", "draft", "draft_picker", parent)
        self._entries: dict[str, DraftEntry] = {}
        self._key = NONE
        self.hint = QLabel(f"{WHAT_FOR} {WHAT_TO_DO}", self)
        self.hint.setObjectName("draft_picker_hint")
        self.hint.setWordWrap(True)
        self.hint.setContentsMargins(0, SPACE_XS, 0, 0)
        self.hint.setTextFormat(Qt.TextFormat.PlainText)
        set_kind(self.hint, "caption")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.button)
        layout.addWidget(self.hint)
        self.set_entries((), (), has_mtp=False)

    def set_entries(
        self, recent: Sequence[DraftEntry], found: Sequence[DraftEntry], has_mtp: bool
    ) -> None:
        """What the menu offers: files used before, newest first, and files found on this computer.

        `has_mtp` tells that the target has heads of its own. Files that do not fit come last.
        """
        without_file = [_NO_DRAFT, _LOOKUP, *([_HEADS] if has_mtp else [])]
        files = [*recent, *found]
        self._entries = {entry.key: entry for entry in (*without_file, *files)}
        rows = _section("Without a file", without_file)
        rows.append(
            ListRow(
                key=FIND,
                title="Find the best draft…",
                tooltip="Measure every draft that fits on this computer",
                icon="search",
            )
        )
        rows += _section("Recent", [entry for entry in recent if entry.available])
        rows.append(ListRow(key="", title="On this computer", header=True))
        rows += [_row(entry) for entry in found if entry.available]
        rows.append(browse_row())
        rows += _section("Not for this target", [entry for entry in files if not entry.available])
        self._menu.rows.set_rows(rows)
        self.show_choice(self._key)

    def show_choice(self, key: str) -> None:
        """Something is chosen to draft; a file need not be among the entries."""
        self._key = key or NONE
        entry = self._entry(self._key)
        none = entry.key == NONE
        self.hint.setVisible(none)
        if none:
            words = wrapped(f"{WHAT_FOR} {WHAT_TO_DO}")
            self.button.show_words("Choose a draft", "Speculative decoding", words)
            return
        failed = not entry.available
        caption = NO_FIT if failed else entry.caption  # the chip and the tooltip say why
        self.button.show_words(entry.name, caption, entry.tooltip, failed)

    @property
    def choice(self) -> str:
        """The key of what is chosen."""
        return self._key

    def choose(self, key: str) -> None:
        if key == FIND:
            self.search_requested.emit()
        else:
            self.draft_chosen.emit(key)

    def current_key(self) -> str:
        return self._key

    def current_path(self) -> str:
        entry = self._entry(self._key)
        return entry.key if entry.is_file else ""

    def _entry(self, key: str) -> DraftEntry:
        if key in self._entries:
            return self._entries[key]
        return _NO_HEADS if key == MTP else DraftEntry(key, PurePath(key).stem, "Draft file")


def _section(title: str, entries: Sequence[DraftEntry]) -> list[ListRow]:
    """A header and its rows; nothing without rows."""
    if not entries:
        return []
    return [ListRow(key="", title=title, header=True), *(_row(entry) for entry in entries)]


def _row(entry: DraftEntry) -> ListRow:
    return ListRow(
        key=entry.key,
        title=entry.name,
        caption=entry.caption,
        note=entry.note,
        tooltip=entry.tooltip,
        enabled=entry.available,
    )
