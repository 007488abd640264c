"""An answer while it is being written, until it becomes a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slipstream.chat.records import AnswerRecord, Message, Role, Spans
from slipstream.engine.events import Finished, TextKind, TextPiece


@dataclass
class LiveAnswer:
    """Gathers the text of one answer; belongs to a chat, shown or not."""

    chat_id: str
    question: Message
    message_id: str
    model_name: str
    model_path: str
    settings: Mapping[str, object]
    begun_at: datetime
    pieces: list[TextPiece] = field(default_factory=list)

    def add(self, pieces: Sequence[TextPiece]) -> None:
        """Note text that arrived."""
        self.pieces += pieces

    def message(self, finished: Finished, draft_path: str) -> Message:
        """The answer as it is kept, with its numbers; `draft_path` is "" without a draft file."""
        return Message(
            id=self.message_id,
            role=Role.ASSISTANT,
            text=self._joined(TextKind.ANSWER),
            created_at=self.begun_at,
            reasoning=self._joined(TextKind.REASONING),
            answer=AnswerRecord(
                model_name=self.model_name,
                model_path=self.model_path,
                finish_reason=finished.reason,
                seed=finished.seed,
                statistics=finished.statistics,
                stop_string=finished.stop_string,
                settings=self.settings,
                drafter=str(finished.drafter),
                draft_path=draft_path,
                verify=str(finished.verify),
                speculation=finished.speculation,
                accepted_text=self._accepted(TextKind.ANSWER),
                accepted_reasoning=self._accepted(TextKind.REASONING),
            ),
        )

    def _joined(self, kind: TextKind) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind is kind)

    def _accepted(self, kind: TextKind) -> Spans:
        """Where the text of this kind came from accepted draft tokens."""
        spans: list[tuple[int, int]] = []
        end = 0
        for piece in self.pieces:
            if piece.kind is not kind:
                continue
            start, end = end, end + len(piece.text)
            if piece.accepted and spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], end)
            elif piece.accepted:
                spans.append((start, end))
        return tuple(spans)
