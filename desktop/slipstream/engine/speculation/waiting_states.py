"""The target's states that a head has not read yet: they may never be needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slipstream.engine.speculation.hidden_states import Rows


class WaitingStates:
    """Tokens at consecutive positions from `start` on, and the target's states after them."""

    def __init__(self) -> None:
        self.start = 0
        self.tokens: list[int] = []
        self.size = 0
        """Bytes."""
        self._rows: list[Rows] = []

    @property
    def end(self) -> int:
        """The position after the last one."""
        return self.start + len(self.tokens)

    def append(self, position: int, tokens: Sequence[int], rows: Rows) -> None:
        """Hold these from `position` on, and nothing after them; rows has shape (tokens, width).

        A position that does not follow on forgets what was there before.
        """
        self.truncate(position)
        if position != self.end:
            self.clear()
        if not self.tokens:
            self.start = position
        self.tokens.extend(tokens)
        self._rows.append(rows)
        self.size += rows.nbytes

    def truncate(self, end: int) -> None:
        """Forget positions from `end` on."""
        surplus = self.end - max(end, self.start)
        if surplus <= 0:
            return
        del self.tokens[len(self.tokens) - surplus :]
        while surplus:
            last = self._rows.pop()
            self.size -= last.nbytes
            if len(last) > surplus:
                kept = last[: len(last) - surplus].copy()  # a view would hold all of them
                self._rows.append(kept)
                self.size += kept.nbytes
            surplus = max(0, surplus - len(last))

    def rows(self) -> Rows:
        """All states, shape (tokens, width)."""
        return self._rows[0] if len(self._rows) == 1 else np.concatenate(self._rows)

    def covers(self, position: int) -> bool:
        """Whether the state after this position is among them."""
        return self.start <= position < self.end

    def copy(self) -> WaitingStates:
        """Another that holds the same."""
        other = WaitingStates()
        if self.tokens:
            other.append(self.start, self.tokens, self.rows().copy())
        return other

    def clear(self) -> None:
        """Forget everything."""
        self.tokens, self._rows, self.size = [], [], 0
