"""The way from sampled ids to text that may be shown: characters, stop strings, reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from slipstream.engine.detokenizer import Detokenizer, Pieces
from slipstream.engine.events import TextKind, TextPiece
from slipstream.engine.marked_text import MarkedText, merged
from slipstream.engine.reasoning import ReasoningFormat, ReasoningSplitter
from slipstream.engine.stops import StopMatcher


class AnswerText:
    """Releases text as soon as it is certain: whole characters, before any stop string.

    `end_strings` end the text too, but count as the model's own end of turn.
    """

    def __init__(
        self,
        pieces: Pieces,
        stops: Sequence[str],
        end_strings: Sequence[str],
        reasoning: ReasoningFormat | None,
    ) -> None:
        self._detokenizer = Detokenizer(pieces)
        self._stops = StopMatcher([*stops, *end_strings])
        self._user_stops = frozenset(stops)
        self._splitter = ReasoningSplitter(reasoning) if reasoning else None
        self._accepted = b""  # for each character that was not released yet
        self._latest = bytes(1)  # the latest token's

    @property
    def ended(self) -> bool:
        """Whether a stop string or an end string was found."""
        return bool(self._stops.found)

    @property
    def stop_string(self) -> str:
        """The user's stop string that ended the text, "" when none did."""
        return self._stops.found if self._stops.found in self._user_stops else ""

    @property
    def reasoning(self) -> bool:
        """Whether the text fed last belongs to the reasoning."""
        return self._splitter is not None and self._splitter.reasoning

    def feed(self, token: int, *, accepted: bool = False) -> tuple[TextPiece, ...]:
        """The text that became safe to show with this token, which was drafted or not."""
        self._latest = bytes([accepted])
        return self._split(self._stops.feed(self._noted(self._detokenizer.feed(token))))

    def finish(self) -> tuple[TextPiece, ...]:
        """What was still held back, now that no more tokens come."""
        rest = self._stops.feed(self._noted(self._detokenizer.finish())) + self._stops.finish()
        last = self._splitter.finish() if self._splitter else ()
        return merged([*self._split(rest), *last])

    def _noted(self, text: str) -> str:
        self._accepted += self._latest * len(text)
        return text

    def _split(self, text: str) -> tuple[TextPiece, ...]:
        if not text:
            return ()
        # stop strings only ever hold text back or cut it off, so that it is released in order
        accepted, self._accepted = self._accepted[: len(text)], self._accepted[len(text) :]
        if self._splitter is None:
            return tuple(MarkedText(text, accepted).pieces(TextKind.ANSWER))
        return self._splitter.feed(text, accepted)
