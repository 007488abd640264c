"""Where each message of a long conversation begins: heights with fast look-up by position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class HeightIndex:
    """Heights in pixels, one per message, stacked without gaps.

    Changing the last height costs nothing; changing an earlier one makes the starts after it be
    added up again when they are next asked for.
    """

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._starts: list[int] = [0]  # of the first messages; the rest is added on demand

    def __len__(self) -> int:
        return len(self._heights)

    def reset(self, heights: Iterable[int]) -> None:
        """Forget everything and take these heights."""
        self._heights = list(heights)
        self._starts = [0]

    def append(self, height: int) -> None:
        """Add a message at the end."""
        self._heights.append(height)

    def set(self, index: int, height: int) -> None:
        """Correct the height of one message."""
        if self._heights[index] != height:
            self._heights[index] = height
            del self._starts[index + 1 :]

    def start(self, index: int) -> int:
        """Distance from the top to the message `index`; `len` gives the end of the last one."""
        while len(self._starts) <= index:
            known = len(self._starts)
            self._starts.append(self._starts[-1] + self._heights[known - 1])
        return self._starts[index]

    def total(self) -> int:
        """Height of all messages together."""
        return self.start(len(self._heights))

    def find(self, position: int) -> int:
        """The message at `position`; the first or last one beyond the ends."""
        self.total()
        return max(0, min(bisect_right(self._starts, position) - 1, len(self._heights) - 1))
