"""Reads the conversation that `generate` and `inspect --render` are given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from slipstream.chat.records import Message, Role
from slipstream.commands.flags import read_text
from slipstream.errors import UsageError


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of a file with its system prompt apart."""

    system_prompt: str
    messages: tuple[Message, ...]

    @property
    def is_script(self) -> bool:
        """Whether it holds several user turns and no answers: each is to be answered in turn."""
        return len(self.messages) > 1 and all(m.role is Role.USER for m in self.messages)


def message(role: Role, text: str, reasoning: str = "") -> Message:
    """A message that is kept nowhere, so its id and time mean nothing."""
    return Message("", role, text, datetime.now(UTC), reasoning=reasoning)


def read_conversation(path: str) -> Conversation:
    """The messages of a JSON file. Raises `UsageError` saying which entry is wrong."""
    try:
        entries = json.loads(read_text(path, "list of messages"))
    except (ValueError, RecursionError) as error:
        raise UsageError("The list of messages is not JSON.", f"{path}: {error}.", _HINT) from error
    if not isinstance(entries, list):
        raise UsageError("The messages are not a list.", f"{path} holds something else.", _HINT)
    messages = [_message(entry, f"{path}, entry {n}") for n, entry in enumerate(entries, 1)]
    system: list[str] = []
    while messages and messages[0].role is Role.SYSTEM:
        system.append(messages.pop(0).text)
    return Conversation("\n\n".join(system), tuple(messages))


def up_to_last_user_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation as it was when its last user turn was said. Raises `UsageError`."""
    for end in range(len(messages), 0, -1):
        if messages[end - 1].role is Role.USER:
            return messages[:end]
    raise UsageError("There is no user turn to answer.", "The messages hold none.", _HINT)


def _message(entry: object, place: str) -> Message:
    if not isinstance(entry, dict) or "role" not in entry:
        raise UsageError("A message has no role.", f"{place}.", _HINT)
    try:
        role = Role(entry["role"])
    except ValueError:
        raise UsageError(
            f"A message has the unknown role {entry['role']!r}.",
            f"{place}.",
            "Roles are system, user and assistant.",
        ) from None
    text = _text(entry.get("content"))
    reasoning = _text(entry.get("reasoning_content", ""))
    if text is None or reasoning is None:
        raise UsageError("A message has no text.", f"{place}.", _HINT)
    return message(role, text, reasoning)


def _text(content: object) -> str | None:
    """A content as text: a string, or a list of text parts as other programs write them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        if len(parts) == len(content) and all(isinstance(part, str) for part in parts):
            return "".join(str(part) for part in parts)
    return None


_HINT = 'Write [{"role": "user", "content": "…"}, …].'
