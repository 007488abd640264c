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
WHAT_FOR = "A draft can make answers faster without changing them."
WHAT_TO_DO = "Choose one, or try prompt lookup."


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """A way to draft as the picker shows it.

    `key` is "none", "prompt-lookup", "mtp" or the path of a file; `caption` a short line such as
    “EAGLE-3 · 92 MB”, `reason` why an unavailable one cannot draft for this target.
    """

    key: str
    name: str
    caption: str = ""
    available: bool = True
    reason: str = ""

    @property
    def words(self) -> str:
        """What it is or, where it cannot be used, why."""
        if self.available:
            return self.caption
        return self.reason or "Does not fit this target."


_NO_DRAFT = DraftEntry(NONE, "None", "The target answers alone")
_LOOKUP = DraftEntry(PROMPT_LOOKUP, "Prompt lookup", "Drafts from the text itself; needs no file")
_HEADS = DraftEntry(MTP, "Built-in MTP", "Drafts with the target's own extra heads")
_NO_HEADS = DraftEntry(MTP, _HEADS.name, available=False, reason="This target has no MTP heads.")


class DraftPicker(FilePicker):
    """Shows the chosen draft and lets a person choose another.

    `draft_chosen` carries a key and changes nothing here; `show_choice` does. A choice that the
    latest entries call unavailable stays in view, with its reason.
    """

    draft_chosen = Signal(str)

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
        self.set_entries((), has_mtp=False)

    def set_entries(self, files: Sequence[DraftEntry], has_mtp: bool) -> None:
        """What the menu offers: files, newest first, and the target's own heads if it has some."""
        without_file = [_NO_DRAFT, _LOOKUP, *([_HEADS] if has_mtp else [])]
        self._entries = {entry.key: entry for entry in (*without_file, *files)}
        rows = [ListRow(key="", title="Without a file", header=True)]
        rows += [_row(entry) for entry in without_file]
        if files:
            rows.append(ListRow(key="", title="Recent", header=True))
            rows += [_row(entry) for entry in files]
        rows.append(ListRow(key="", title="On this computer", header=True))
        rows.append(browse_row())
        self._menu.rows.set_rows(rows)
        self.show_choice(self._key)

    def show_choice(self, key: str) -> None:
        """Something is chosen to draft; a file need not be among the entries."""
        self._key = key or NONE
        entry = self._entry(self._key)
        none = entry.key == NONE
        self.hint.setVisible(none)
        if none:
            words = f"No draft chosen. {WHAT_FOR} {WHAT_TO_DO}"
            self.button.show_words("No draft chosen", "Plain decoding", wrapped(words))
            self.button.setAccessibleDescription(
                f"{WHAT_FOR} {WHAT_TO_DO} Opens the list of drafts."
            )
            return
        self.button.show_words(entry.name, entry.words, _tooltip(entry), failed=not entry.available)

    @property
    def choice(self) -> str:
        """The key of what is chosen."""
        return self._key

    def choose(self, key: str) -> None:
        self.draft_chosen.emit(key)

    def current_key(self) -> str:
        return self._key

    def current_path(self) -> str:
        return self._key if _is_file(self._key) else ""

    def _entry(self, key: str) -> DraftEntry:
        if key in self._entries:
            return self._entries[key]
        return _NO_HEADS if key == MTP else DraftEntry(key, PurePath(key).stem, "Draft file")


def _is_file(key: str) -> bool:
    return key not in (NONE, PROMPT_LOOKUP, MTP)


def _tooltip(entry: DraftEntry) -> str:
    path = entry.key if _is_file(entry.key) else ""
    return wrapped("\n".join(part for part in (entry.name, path, entry.words) if part))


def _row(entry: DraftEntry) -> ListRow:
    return ListRow(
        key=entry.key,
        title=entry.name,
        caption=entry.words,
        tooltip=_tooltip(entry),
        enabled=entry.available,
    )
