"""What the window needs of a storage, without knowing which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from slipstream.chat.preferences import Preferences
from slipstream.chat.records import Chat, ChatSummary, Message


class ChatStore(Protocol):
    """Keeps chats. A method is durable when it returns and raises `UserError` when it failed."""

    def summaries(self, query: str = "") -> tuple[ChatSummary, ...]:
        """Chats whose title or text contains `query` (all when empty), the latest first."""

    def load(self, chat_id: str) -> Chat | None:
        """The chat with its messages in order, or None when there is no such chat."""

    def create(self, system_prompt: str = "") -> Chat:
        """A new, empty chat titled "New chat"."""

    def save_message(self, chat_id: str, message: Message) -> None:
        """Append the message, or replace the one with the same id in place."""

    def remove_message(self, chat_id: str, message_id: str) -> None:
        """Forget a message that nothing follows; one that is not there is no error."""

    def set_title(self, chat_id: str, title: str) -> None:
        """Rename the chat."""

    def set_system_prompt(self, chat_id: str, system_prompt: str) -> None:
        """Replace the chat's system prompt."""

    def close(self) -> None:
        """Release the storage; calling it twice is harmless."""


class MeasurementStore(Protocol):
    """Keeps what was measured on this machine; never raises, losing an entry costs only time."""

    def load(self, key: str) -> Mapping[str, object] | None:
        """The entry as saved, or None where there is none."""

    def save(self, key: str, values: Mapping[str, object]) -> None:
        """Keep plain values (numbers, texts, lists, mappings) under the key."""


class PreferenceStore(Protocol):
    """Keeps the preferences."""

    def load(self) -> Preferences:
        """The preferences as saved; defaults for what is missing or unusable."""

    def save(self, preferences: Preferences) -> None:
        """Write them atomically; comments and unknown keys in the file are kept."""
