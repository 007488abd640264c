"""Finds stop strings in a stream of text, across any borders between its pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopMatcher:
    """Holds text back only while it may still become a stop string.

    The stop string whose last character comes first ends the text; of those ending together the
    longest counts, so that the outcome does not depend on how the text was cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted(dict.fromkeys(stops), key=len, reverse=True)
        self._longest = len(self._stops[0]) if self._stops else 0
        self._firsts = tuple({stop[0] for stop in self._stops if stop})
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """The text now known to lie before any stop string. Nothing once one was found."""
        if self.found:
            return ""
        if not self._held and not any(first in text for first in self._firsts):
            return text  # no stop string begins in it
        seen = self._held + text
        for end in range(len(self._held) + 1, len(seen) + 1):
            match = self._ending_at(seen, end)
            if match:
                self.found = match
                self._held = ""
                return seen[: end - len(match)]
        safe = self._safe_length(seen)
        self._held = seen[safe:]
        return seen[:safe]

    def finish(self) -> str:
        """What was held back in vain when the text ends without a stop string."""
        rest, self._held = self._held, ""
        return rest

    def _ending_at(self, text: str, end: int) -> str:
        return next((stop for stop in self._stops if text.endswith(stop, 0, end)), "")

    def _safe_length(self, text: str) -> int:
        """Where the longest tail begins that is the beginning of a stop string."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            tail = text[start:]
            if any(stop.startswith(tail) for stop in self._stops):
                return start
        return len(text)
