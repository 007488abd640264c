"""What EAGLE-3 and MTP have in common: a head fed with pairs of a token and a hidden state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slipstream.engine.cache import shared_prefix
from slipstream.engine.llama import Context, ContextState, Model
from slipstream.engine.speculation.drafter import (
    Draft,
    Drafter,
    DrafterKind,
    DrafterState,
    DraftSettings,
)
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.hidden_batch import HiddenBatch
from slipstream.engine.speculation.hidden_states import Rows, StateHistory, output_state
from slipstream.engine.speculation.waiting_states import WaitingStates
from slipstream.errors import DraftMisfit, EngineError

KEPT_STATES = 64
"""States remembered: more than the longest batch to verify, so that any acceptance finds its."""

MOST_WAITING = 1 << 26
"""Bytes of states that may wait to be read."""


def check_rollback(target: Context) -> None:
    """Raise `DraftMisfit` for a recurrent target that keeps no earlier states."""
    if target.max_rollback == 0:
        raise DraftMisfit(
            "This model cannot take back what was drafted in vain.",
            f"llama.cpp keeps no earlier states of {target.model.path.name}.",
            "Use the model without a draft.",
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeadState(DrafterState):
    """The tokens whose pairs are in the head's cache, its content, and the target's states.

    `context` is None where the cache is empty.
    """

    tokens: tuple[int, ...]
    context: ContextState | None
    states: StateHistory
    waiting: WaitingStates

    @property
    def size(self) -> int:
        """Bytes."""
        content = 0 if self.context is None else self.context.nbytes
        return content + self.states.size + self.waiting.size


class HeadDrafter(Drafter, ABC):
    """Follows the target with pairs (token[p], state[p - 1]), the state being the target's.

    The pair of token p stands at position p - `_lag` of the head's own cache. What the target
    gives out waits until something is to be drafted: it costs nothing then where nothing is, and
    of a draft that was refused in part only what stands is read. Invariants between steps:
    `_tokens` are those whose pairs are in the cache (token 0 has none with a lag of 1), `_states`
    ends no later than they do, and `_waiting` begins where `_states` ends. The pair of the pending
    token, which the first step of a draft evaluates, is the one that reading would write, and
    stays.

    Across answers only the latest states are kept. Where one is missing at the end of the shared
    prefix, `begin` asks for one token less: the target evaluates it again, which brings its state,
    and the pair of that very token is still in the cache. A state of the target's that comes back
    without the head's own is of no use, so `save` keeps both the pairs and the latest states.
    """

    _lag: int
    _joined = 0  # tokens at most whose pairs are evaluated along with the first of a draft

    def __init__(
        self,
        model: Model,
        context: Context,
        batch: HiddenBatch,
        target: Context,
        settings: DraftSettings,
        width: int,
    ) -> None:
        self._model = model
        self._context = context
        self._batch = batch
        self._target = target
        self._width = width
        self._settings = settings
        self._tokens: list[int] = []
        self._states = StateHistory(KEPT_STATES, width)
        self._waiting = WaitingStates()
        self._promised = -1  # the token that `begin` asked to see again
        self._said = 0  # tokens of the conversation when the latest draft was made

    @property
    @abstractmethod
    def kind(self) -> DrafterKind:
        """The way it drafts."""

    @property
    def need_embd(self) -> bool:
        """Whether the target must give out its embeddings: no (llama.cpp's `need_embd`)."""
        return False

    @property
    def need_embd_pre_norm(self) -> bool:
        """Whether it must give out its hidden states; the constructor asks it to."""
        return True

    @property
    def followed(self) -> int:
        """How many tokens of the conversation the head has in its cache or waiting."""
        return max(len(self._tokens), self._waiting.end if self._waiting.tokens else 0)

    def behind(self, length: int) -> int:
        """What its cache lacks of the conversation, the pending token included."""
        return max(0, length - len(self._tokens))

    @abstractmethod
    def _given_out(self, count: int) -> Rows:
        """What the target gave out for the `count` tokens it has just evaluated, copied."""

    def _read(self, given: Rows) -> Rows:
        """The states, shape (rows, width), that the head makes of it."""
        return given

    def _longest(self) -> int:
        """The longest draft the settings and the target allow."""
        rollback = self._target.max_rollback
        longest = self._settings.n_draft_max
        return longest if rollback is None else min(longest, rollback)

    def configure(self, settings: DraftSettings) -> None:
        """Take other settings."""
        self._settings = settings

    def begin(self, cached: int, unchanged: int) -> int:
        """Keep the shared prefix; a token less where the state after it is no longer known."""
        promised, self._promised = self._promised, -1
        self._said = 0
        if 0 < cached == unchanged == promised == self.followed - 1:
            return cached
        length = min(unchanged, self.followed)
        # only what was restored may refuse: a window's older cells are not saved
        if not self._context.can_trim(max(0, length - self._lag)):
            length = 0
        self._trim(length)
        if length == 0 or self._has_state(length - 1):
            return length
        if length == 1:
            self._trim(0)
            return 0
        self._promised = length - 1
        return self._promised

    def _has_state(self, position: int) -> bool:
        return self._waiting.covers(position) or self._states.after(position) is not None

    @property
    def needs_all_tokens(self) -> bool:
        """Yes: only an evaluation brings the states."""
        return True

    def save(self, most_bytes: int) -> HeadState | None:
        """The pairs, the latest states and those that wait."""
        cells = max(0, len(self._tokens) - self._lag)
        if self._context.length() > cells and not self._context.trim(cells):
            return None
        size = self._states.size + self._waiting.size + (self._context.state_size() if cells else 0)
        if not self.followed or size > most_bytes:
            return None
        content = self._context.save() if cells else None
        if cells and content is None:
            return None
        return HeadState(tuple(self._tokens), content, self._states.copy(), self._waiting.copy())

    def restore(self, state: DrafterState) -> None:
        """Take pairs and states back."""
        assert isinstance(state, HeadState)
        self._promised, self._said = -1, 0
        self._tokens = list(state.tokens)
        self._states = state.states.copy()
        self._waiting = state.waiting.copy()
        cells = max(0, len(self._tokens) - self._lag)
        if state.context is None:
            self._context.clear()
        elif not self._context.restore(state.context) or self._context.length() != cells:
            self._trim(0)

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """Keep what the target gives out, to be read when something is to be drafted."""
        if max(tokens) >= self._model.n_vocab:
            raise EngineError(
                "The draft does not know a token of this conversation.",
                f"{self._model.path.name} has {self._model.n_vocab:,} tokens; the conversation "
                f"uses id {max(tokens):,}.",
                "Choose a draft made for this model.",
            )
        if first_position > self.followed:
            raise self._out_of_step(first_position)
        self._waiting.append(first_position, tokens, self._given_out(len(tokens)))
        if self._waiting.size > MOST_WAITING:
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what waits and write its pairs, but for those already written."""
        if self._waiting.tokens:
            states, paired = self._read_waiting()
            self._pair(self._waiting.tokens, states, self._waiting.start, paired)
            self._have_paired(states)

    def _read_waiting(self) -> tuple[Rows, int]:
        """The states that wait, and how many of their tokens are paired already.

        Pairs of other tokens from there on are forgotten.
        """
        waiting = self._waiting
        states = self._read(waiting.rows())
        paired = shared_prefix(self._tokens[waiting.start :], waiting.tokens)
        del self._tokens[waiting.start + paired :]
        self._forget_surplus()
        return states, paired

    def _have_paired(self, states: Rows) -> None:
        """The pairs of all that waited are in the cache now."""
        waiting = self._waiting
        self._states.extend(waiting.start, states)
        self._tokens[waiting.start :] = waiting.tokens
        waiting.clear()

    def _pair(self, tokens: Sequence[int], states: Rows, first_position: int, paired: int) -> None:
        """Evaluate the pairs of tokens[paired:]; the first needs the state before this batch."""
        start, before = self._first_pair(first_position, paired)
        for at in range(start, len(tokens), self._batch.capacity):
            end = min(at + self._batch.capacity, len(tokens))
            rows = states[at - 1 : end - 1] if at else np.vstack([before, states[: end - 1]])
            self._evaluate(tokens[at:end], rows, first_position + at - self._lag)

    def _first_pair(self, first_position: int, paired: int) -> tuple[int, Rows]:
        """Which of the tokens from this position on is to be paired first, and the state before
        the first one, where that is to be paired."""
        before = np.zeros(self._width, dtype=np.float32)  # what MTP heads see before any token
        if first_position == 0:
            return max(paired, self._lag), before
        if paired == 0:
            found = self._states.after(first_position - 1)
            if found is None:
                raise self._out_of_step(first_position)
            before = found
        return paired, before

    def _evaluate(self, tokens: Sequence[int], states: Rows, position: int) -> None:
        self._batch.fill(tokens, states, position, outputs=0)
        self._context.decode(self._batch)

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        """The likeliest tokens one after the other, while they are likely enough."""
        known = len(history) - 1
        if self.followed < known or not self._has_state(known - 1):
            raise self._out_of_step(known)
        wanted = min(limit, self._longest())
        self._said = len(history)
        if wanted < 1:
            return Draft()
        self._trim(known)
        drafted = self._propose(history[-1], wanted, guide)
        if not guide.keeps(len(drafted), self._settings.n_draft_min):
            return Draft()
        tokens, confidences = zip(*drafted, strict=True) if drafted else ((), ())
        return Draft(tokens, self.kind, confidences)

    def _propose(self, pending: int, wanted: int, guide: DraftGuide) -> list[tuple[int, float]]:
        """At most `wanted` tokens to follow the pending one, each with the head's confidence.

        Each step feeds the head itself.
        """
        row = self._first_step(pending)
        known = len(self._tokens)
        drafted: list[tuple[int, float]] = []
        while True:
            following = self._next_token(row, guide)
            if following is None:
                break
            token, confidence = following
            drafted.append(following)
            if len(drafted) == wanted or not guide.goes_on(confidence):
                break
            state = output_state(self._context, row, self._width)
            position = known - 1 + len(drafted) - self._lag
            self._batch.fill([token], state[np.newaxis], position, outputs=1)
            self._context.decode(self._batch)
            row = 0
        self._trim(known)
        return drafted

    def _first_step(self, pending: int) -> int:
        """Evaluate the pending token's pair, and what waits before it where that is little.

        Returns the row of its logits.
        """
        waiting = self._waiting
        tokens, rows = [pending], np.empty((0, self._width), dtype=np.float32)
        states = None
        if waiting.tokens:
            states, paired = self._read_waiting()
            start, before = self._first_pair(waiting.start, paired)
            if len(waiting.tokens) - start <= self._joined:
                tokens = [*waiting.tokens[start:], pending]
                rows = states[start - 1 :] if start else np.vstack([before, states])
            else:
                self._pair(waiting.tokens, states, waiting.start, paired)
                rows = states[-1:]
            position = waiting.end + 1 - len(tokens)
        else:
            position = len(self._tokens)
            latest = self._states.after(position - 1)
            assert latest is not None
            rows = latest[np.newaxis]
        self._batch.fill(tokens, rows, position - self._lag, outputs=len(tokens))
        self._context.decode(self._batch)
        if states is not None:
            self._have_paired(states)
        self._tokens.append(pending)
        return len(tokens) - 1

    def _next_token(self, row: int, guide: DraftGuide) -> tuple[int, float] | None:
        """A token and its confidence; None where it is too unlikely or unknown to the target."""
        logits = self._context.row(row)
        token, confidence = guide.choose(logits)
        if token >= self._target.model.n_vocab or confidence < self._settings.p_min:
            return None
        return token, confidence

    def accept(self, count: int) -> None:
        """Keep of the pairs those of the tokens that stand."""
        if self._said:
            self._trim(self._said + count)
            self._said = 0

    def _trim(self, length: int) -> None:
        """Keep at most the pairs of the first `length` tokens, and no state after them."""
        del self._tokens[length:]
        self._states.truncate(length)
        self._waiting.truncate(length)
        self._forget_surplus()

    def _forget_surplus(self) -> None:
        """More may be in the cache than the tokens tell, after a decode that failed midway."""
        self._trim_cells(max(0, len(self._tokens) - self._lag))

    def _trim_cells(self, kept: int) -> None:
        if self._context.length() > kept and not self._context.trim(kept):
            raise EngineError(
                "The draft could not forget what was not accepted.",
                f"llama.cpp refused to go back to position {kept:,}.",
                "Choose another way of drafting.",
            )

    def _out_of_step(self, position: int) -> EngineError:
        return EngineError(
            "The draft lost track of the conversation.",
            f"It has followed {self.followed:,} tokens and was to go on at {position:,}.",
            "Choose the draft again.",
        )

    @abstractmethod
    def close(self) -> None:
        """Free what the drafter holds."""
