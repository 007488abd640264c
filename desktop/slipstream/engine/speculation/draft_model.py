"""Drafts with a second, smaller model that shares the target's vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slipstream.engine.cache import TokenCache
from slipstream.engine.llama import (
    AbortFlag,
    Batch,
    Context,
    ContextSettings,
    ContextState,
    Model,
)
from slipstream.engine.speculation.drafter import (
    Draft,
    Drafter,
    DrafterKind,
    DrafterState,
    DraftSettings,
)
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.errors import EngineError

_EAGER_TOKENS = 32
"""From how many tokens on the draft follows at once; fewer wait and share the first draft step."""


@dataclass(frozen=True, slots=True, eq=False)
class DraftModelState(DrafterState):
    """The tokens of the draft's cache and its content."""

    tokens: tuple[int, ...]
    context: ContextState

    @property
    def size(self) -> int:
        """Bytes."""
        return self.context.nbytes


class DraftModelDrafter(Drafter):
    """Owns the draft model and its context, which has the target's window.

    Invariant outside `draft` … `accept`: the draft's cache holds a prefix of the conversation.
    What it drafted itself and the target accepted stays in it, so only the rest is evaluated.
    """

    def __init__(
        self,
        model: Model,
        context: ContextSettings,
        settings: DraftSettings,
        *,
        abort: AbortFlag,
        target_n_vocab: int,
    ) -> None:
        self._model = model
        self._settings = settings
        self._target_n_vocab = target_n_vocab
        self._context = Context(model, context, abort)
        self._batch = Batch(self._context.n_batch)
        self.cache = TokenCache(self._context)
        self._said = 0  # tokens of the conversation when the latest draft was made

    @property
    def kind(self) -> DrafterKind:
        """A draft model."""
        return DrafterKind.DRAFT_MODEL

    def configure(self, settings: DraftSettings) -> None:
        """Take other settings."""
        self._settings = settings

    def begin(self, cached: int, unchanged: int) -> int:
        """Keep the shared prefix; what is missing comes with the history."""
        self.cache.recover()
        self.cache.trim(unchanged)
        self._said = 0
        return cached

    def save(self, most_bytes: int) -> DraftModelState | None:
        """The draft's cache."""
        self.cache.recover()
        if not self.cache.tokens or self._context.state_size() > most_bytes:
            return None
        content = self._context.save()
        return None if content is None else DraftModelState(tuple(self.cache.tokens), content)

    def restore(self, state: DrafterState) -> None:
        """Take the cache back."""
        assert isinstance(state, DraftModelState)
        self.cache.restore(state.tokens, state.context)

    def behind(self, length: int) -> int:
        """What its cache lacks of the conversation."""
        return max(0, length - len(self.cache))

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """Follow a prefill chunk at once, so that the first draft need not."""
        known = len(self.cache) - first_position
        if known >= 0 and len(tokens) - known >= _EAGER_TOKENS:
            self._evaluate(tokens[known:], want_logits=False)

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        """The likeliest tokens one after the other, while they are likely enough."""
        wanted = min(limit, self._settings.n_draft_max, self._context.n_ctx - len(history))
        self._said = len(history)
        if wanted < 1:
            return Draft()
        self._evaluate(history[len(self.cache) :], want_logits=True)
        drafted: list[int] = []
        confidences: list[float] = []
        while True:
            logits = self._context.row(-1)
            token, confidence = guide.choose(logits)
            if token >= self._target_n_vocab or confidence < self._settings.p_min:
                break
            drafted.append(token)
            confidences.append(confidence)
            if len(drafted) == wanted or not guide.goes_on(confidence):
                break
            self._evaluate([token], want_logits=True)
        if not guide.keeps(len(drafted), self._settings.n_draft_min):
            return Draft()
        return Draft(tuple(drafted), self.kind, tuple(confidences))

    def _evaluate(self, tokens: Sequence[int], *, want_logits: bool) -> None:
        if max(tokens) >= self._model.n_vocab:
            raise EngineError(
                "The draft model does not know a token of this conversation.",
                f"{self._model.path.name} has {self._model.n_vocab:,} tokens; the conversation "
                f"uses id {max(tokens):,}.",
                "Choose a draft made for this model.",
            )
        for start in range(0, len(tokens), self._batch.capacity):
            chunk = tokens[start : start + self._batch.capacity]
            position = len(self.cache)
            if want_logits and start + len(chunk) == len(tokens):
                self._batch.fill(chunk, position, all_outputs=False)
            else:
                self._batch.fill_without_outputs(chunk, position)
            self._context.decode(self._batch)
            self.cache.extend(chunk)

    def accept(self, count: int) -> None:
        """Keep of the draft what stands."""
        if self._said:
            self.cache.trim(self._said + count)
            self._said = 0

    def close(self) -> None:
        """Free the context, then the model."""
        self._context.close()
        self._model.close()
