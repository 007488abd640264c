"""The way from sampled ids to text that may be shown: characters, stop strings, reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slipstream.engine.detokenizer import Detokenizer, Pieces
from slipstream.engine.events import TextKind, TextPiece
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

    def feed(self, token: int) -> tuple[TextPiece, ...]:
        """The text that became safe to show with this token."""
        return self._split(self._stops.feed(self._detokenizer.feed(token)))

    def finish(self) -> tuple[TextPiece, ...]:
        """What was still held back, now that no more tokens come."""
        rest = self._stops.feed(self._detokenizer.finish()) + self._stops.finish()
        last = self._splitter.finish() if self._splitter else ()
        return merged([*self._split(rest), *last])

    def _split(self, text: str) -> tuple[TextPiece, ...]:
        if not text:
            return ()
        if self._splitter is None:
            return (TextPiece(TextKind.ANSWER, text),)
        return self._splitter.feed(text)


def merged(pieces: Iterable[TextPiece]) -> tuple[TextPiece, ...]:
    """The same text with neighbours of one kind joined."""
    result: list[TextPiece] = []
    for piece in pieces:
        if result and result[-1].kind == piece.kind:
            result[-1] = TextPiece(piece.kind, result[-1].text + piece.text)
        else:
            result.append(piece)
    return tuple(result)
