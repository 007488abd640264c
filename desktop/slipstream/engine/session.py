"""A generation session: prefill, then rounds of draft, decode, verify, emit, until an end.

Owns the target's context, the token cache that mirrors it and the drafter; knows nothing of
threads or windows. Consumers iterate over its events.
"""

from __future__ import annotations

import logging
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slipstream.chat.records import FinishReason
from slipstream.engine.answer_text import AnswerText
from slipstream.engine.cache import TokenCache
from slipstream.engine.detokenizer import Pieces
from slipstream.engine.events import (
    DraftingStopped,
    Event,
    Finished,
    PrefillProgress,
    TextPiece,
    TextRun,
)
from slipstream.engine.llama import (
    AbortFlag,
    Batch,
    Context,
    ContextSettings,
    DecodeAborted,
    Model,
)
from slipstream.engine.marked_text import merged
from slipstream.engine.prompt_cache import PromptCache
from slipstream.engine.reasoning import ReasoningFormat
from slipstream.engine.sampler_chain import SamplerChain
from slipstream.engine.sampling import MAX_SEED, SamplerSettings
from slipstream.engine.speculation.counter import SpeculationCounter
from slipstream.engine.speculation.drafter import (
    Draft,
    Drafter,
    DrafterKind,
    NullDrafter,
    TargetPass,
)
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.rejection import RejectionSampling
from slipstream.engine.speculation.verify import Verdict, verify
from slipstream.engine.speculation.verify_rule import VerifyRule, rule_in_force
from slipstream.engine.stopwatch import Stopwatch
from slipstream.errors import (
    ContextSizeError,
    EngineError,
    UsageError,
    UserError,
    internal_fault,
)

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_MEASURED_TOKEN = 0
_PREFILL_ONLY = SamplerSettings(max_tokens=0)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to continue and how. `prompt` holds token ids, its BOS included.

    Without `speculate` this one answer is written without the drafter, which stays.
    """

    prompt: Sequence[int]
    settings: SamplerSettings = field(default_factory=SamplerSettings)
    reasoning: ReasoningFormat | None = None
    end_strings: tuple[str, ...] = ()  # end-of-turn texts, never shown
    speculate: bool = True
    verify: VerifyRule = VerifyRule.AUTO


def chunk_plan(start: int, end: int, n_batch: int) -> tuple[range, ...]:
    """The positions of a prompt from `start` to `end` in chunks of at most `n_batch`."""
    return tuple(range(at, min(at + n_batch, end)) for at in range(start, end, n_batch))


class GenerationSession:
    """Generates over one context, one answer at a time, reusing what its cache already holds.

    `abort` is the flag that `cancel` raises; sessions that follow each other may share one.
    Raises `EngineError` when used after `close()` or while another answer is being written.
    """

    def __init__(
        self,
        model: Model,
        settings: ContextSettings | None = None,
        *,
        drafter: Drafter | None = None,
        abort: AbortFlag | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._drafter: Drafter = drafter or NullDrafter()
        self._clock = clock
        self._abort = abort or AbortFlag()
        self._context = Context(model, settings or ContextSettings(), self._abort)
        self._batch = Batch(self._context.n_batch)
        self.cache = TokenCache(self._context)
        self.prompts = PromptCache(self._context, self.cache, clock=clock)
        self._pieces: dict[frozenset[str], Pieces] = {}
        self._busy = False
        self._drafter_failure: UserError | None = None
        self._counter = SpeculationCounter()
        self._pass_seconds = 0.0  # of the latest target pass
        self._sample_seconds = 0.0
        self._began_with = self._drafter.kind
        self._rule, self._rule_note = VerifyRule.COMPARE, ""
        self._rejection: RejectionSampling | None = None  # while that rule is in force
        self._unchanged = sys.maxsize  # of what the drafter followed, tokens that still stand

    @property
    def context(self) -> Context:
        """The target's context, for drafters that read its hidden states."""
        return self._context

    @property
    def abort(self) -> AbortFlag:
        """The flag that stops decoding, for drafters with a context of their own."""
        return self._abort

    @property
    def drafter(self) -> Drafter:
        """Who drafts for the next answer."""
        return self._drafter

    def set_drafter(self, drafter: Drafter) -> None:
        """Draft with this one from the next answer on; the one before is closed.

        Raises `EngineError` while an answer is being written; the drafter is then not taken.
        """
        self.exchange_drafter(drafter).close()

    def exchange_drafter(self, drafter: Drafter) -> Drafter:
        """Like `set_drafter`, but the one before is given back open, to be used again later.

        What the new one may have followed earlier is taken for forgotten.
        """
        if self._busy:
            raise EngineError("The draft cannot be changed while an answer is being written.")
        before, self._drafter = self._drafter, drafter
        self._unchanged = 0
        self.prompts.forget_drafter()
        return before

    def next_token_probabilities(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """What the target expects after `tokens`: softmax of its logits, shape (n_vocab,).

        Evaluated without the drafter. Raises like `generate`, and `EngineError` when cancelled.
        """
        request = GenerationRequest(tokens, speculate=False, settings=_PREFILL_ONLY)
        *_, last = self.generate(request)
        assert isinstance(last, Finished)
        if last.reason is FinishReason.CANCELLED:
            raise EngineError("The evaluation was cancelled.")
        logits = self._context.row(-1)
        weights = np.exp(logits.astype(np.float64) - logits.max())
        probabilities: NDArray[np.float64] = weights / weights.sum()
        return probabilities

    @property
    def n_ctx(self) -> int:
        """The context window in tokens."""
        return self._context.n_ctx

    @property
    def n_batch(self) -> int:
        """The largest prefill chunk in tokens."""
        return self._context.n_batch

    @property
    def n_threads(self) -> int:
        """Threads that compute one token at a time."""
        return self._context.n_threads

    @property
    def n_threads_batch(self) -> int:
        """Threads that compute several tokens at once."""
        return self._context.n_threads_batch

    @property
    def flash_attention(self) -> bool:
        """Whether llama.cpp may use flash attention."""
        return self._context.flash_attention

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute with so many threads from the next pass on; a drafter keeps its own."""
        self._context.set_threads(n_threads, n_threads_batch)

    def measure_passes(self, rows: int, count: int) -> list[float] | None:
        """Seconds of `count` target passes in turn, each over `rows` more tokens; leaves no trace.

        The first one has llama.cpp build its graph anew where the pass before had other rows.
        None while an answer is being written, when it was cancelled, and where the pass would not
        fit or could not be taken back.
        """
        position = len(self.cache)
        rollback = self._context.max_rollback
        if self._busy or position + rows * count > self.n_ctx or rows > self.n_batch:
            return None
        if rollback is not None and position:
            return None  # a recurrent model cannot forget a batch as a whole
        seconds = []
        try:
            for at in range(position, position + rows * count, rows):
                self._batch.fill([_MEASURED_TOKEN] * rows, at, all_outputs=True)
                begun = self._clock()
                self._context.decode(self._batch)
                self._context.logits(-1)  # waits until the pass is done
                seconds.append(self._clock() - begun)
        except DecodeAborted:
            return None
        finally:
            self.cache.recover()
        return seconds

    def cancel(self) -> None:
        """End the running answer, or the next one if none runs; callable from any thread."""
        self._abort.set()

    def withdraw_cancel(self) -> None:
        """Forget a cancel that came when nothing was running."""
        self._abort.clear()

    def generate(self, request: GenerationRequest) -> Iterator[Event]:
        """Yield `PrefillProgress` per chunk, `TextRun` per round, then one `Finished`.

        A consumer may stop early by closing the iterator; the cache stays in step with the
        context. A failure after the first token ends in `Finished` with reason "error" and the
        `error`; one before it is raised as `UserError`.
        """
        handle = self._context.handle  # raises after close()
        assert handle
        if self._busy:
            raise EngineError("The session is already writing an answer.")
        self._check_prompt(request.prompt)
        self._busy = True
        resting = self._drafter
        if not request.speculate:
            self._drafter = NullDrafter()
        try:
            yield from self._answer(request, resting)
        finally:
            if not request.speculate:
                self._drafter = resting
            self._busy = False
            self._abort.clear()
            if self._context.is_open:
                self.cache.recover()

    def _check_prompt(self, prompt: Sequence[int]) -> None:
        if not prompt:
            raise UsageError("The prompt is empty.", "There is nothing to continue.", "Type some.")
        if len(prompt) > self.n_ctx:
            raise ContextSizeError(
                "The conversation is longer than the context window.",
                f"It has {len(prompt):,} tokens, the window {self.n_ctx:,}.",
                "Start a new chat, shorten the message, or choose a larger context.",
            )
        if min(prompt) < 0 or max(prompt) >= self._model.n_vocab:
            raise UsageError(
                "The prompt has a token the model does not know.",
                f"Ids run from 0 to {self._model.n_vocab - 1:,}.",
                "Use the tokens of this model.",
            )

    def _answer(self, request: GenerationRequest, follower: Drafter) -> Iterator[Event]:
        asked = self._clock()
        settings, prompt = request.settings, list(request.prompt)
        seed = secrets.randbelow(MAX_SEED + 1) if settings.seed is None else settings.seed
        chain = SamplerChain(self._model, settings, seed, self.n_ctx)
        self._began_with = self._drafter.kind
        self._rule, self._rule_note = rule_in_force(request.verify, settings, self._began_with)
        rejects = self._rule is VerifyRule.REJECT
        self._rejection = RejectionSampling(chain, seed) if rejects else None
        self._counter = SpeculationCounter()  # a prefill that is cancelled reports this one
        try:
            self._unchanged = self.prompts.recall(prompt, follower, self._unchanged)
            # the last prompt token is always evaluated, for its logits
            shared = min(self.cache.common_prefix(prompt), len(prompt) - 1)
            cached = self.cache.trim(shared)
            self._unchanged = min(self._unchanged, cached)
            if request.speculate:
                cached = self._begin_drafting(cached)
            watch = Stopwatch(self._clock, len(prompt), cached, asked)
            chain.prime(prompt)
            row = 0
            for chunk in chunk_plan(cached, len(prompt), self.n_batch):
                if not self._prefill_chunk(prompt, chunk):
                    yield from self._told_failure()
                    yield self._finished(FinishReason.CANCELLED, seed, watch)
                    return
                self.prompts.evaluated(len(chunk), self._pass_seconds)
                row = len(chunk) - 1
                yield PrefillProgress(
                    done=chunk.stop,
                    total=len(prompt),
                    cached=cached,
                    seconds=watch.elapsed,
                    tokens_per_second=watch.prefilled(chunk.stop),
                )
            self._counter = SpeculationCounter()  # the prefill does not count
            if settings.max_tokens == 0:
                yield from self._told_failure()
                yield self._finished(FinishReason.LENGTH, seed, watch)
                return
            text = AnswerText(
                self._pieces_for(request.reasoning),
                settings.stop,
                request.end_strings,
                request.reasoning,
            )
            yield from self._rounds(prompt, row, settings.max_tokens, seed, chain, text, watch)
        finally:
            if self._rejection is not None:
                self._rejection.close()
            chain.close()

    def _begin_drafting(self, cached: int) -> int:
        """Trim both caches to what target and drafter share; returns that length."""
        unchanged, self._unchanged = self._unchanged, sys.maxsize
        while True:
            followed = self._drafting(self._drafter.begin, cached, unchanged, otherwise=cached)
            if followed >= cached:
                return cached
            cached = self.cache.trim(followed)
            unchanged = min(unchanged, cached)

    def _drafting(self, step: Callable[..., _T], *arguments: object, otherwise: _T) -> _T:
        """Let the drafter do a step. One that fails is closed, and the answer goes on without."""
        if isinstance(self._drafter, NullDrafter):
            return otherwise
        begun = self._clock()
        try:
            return step(*arguments)
        except DecodeAborted:
            return otherwise  # the answer was cancelled; the session notices by itself
        except UserError as error:
            failure = error
        except Exception as error:
            log.exception("the drafter failed")
            failure = EngineError("The drafter failed.", f"{type(error).__name__}: {error}")
        finally:
            self._counter.draft_seconds += self._clock() - begun
        log.warning("drafting stopped: %s", failure)
        self._drafter_failure = failure
        self._drafter.close()
        self._drafter = NullDrafter()
        return otherwise

    def _told_failure(self) -> Iterator[DraftingStopped]:
        """The drafter's failure, once."""
        failure, self._drafter_failure = self._drafter_failure, None
        if failure is not None:
            yield DraftingStopped(failure)

    def _pieces_for(self, reasoning: ReasoningFormat | None) -> Pieces:
        visible = frozenset(reasoning.visible_control_texts if reasoning else ())
        if visible not in self._pieces:
            self._pieces[visible] = Pieces(self._model, visible)
        return self._pieces[visible]

    def _prefill_chunk(self, prompt: list[int], chunk: range) -> bool:
        """Evaluate one chunk; False when the answer was cancelled before it was done."""
        tokens = prompt[chunk.start : chunk.stop]
        if chunk.stop == len(prompt):
            self._batch.fill(tokens, chunk.start, all_outputs=False)
        else:
            self._batch.fill_without_outputs(tokens, chunk.start)
        return self._decode(tokens, chunk.start)

    def _decode(self, tokens: list[int], position: int) -> bool:
        """Evaluate what the batch holds and note it; False when cancelled."""
        if self._abort.is_set():
            return False
        begun = self._clock()
        try:
            self._context.decode(self._batch)
        except DecodeAborted:
            self.cache.extend(tokens[: max(0, self._context.length() - position)])
            return False
        self._pass_seconds = self._clock() - begun
        self._counter.verify_seconds += self._pass_seconds
        self.cache.extend(tokens)
        self._drafting(self._drafter.process, tokens, position, otherwise=None)
        return True

    def _rounds(
        self,
        prompt: list[int],
        first_row: int,
        max_tokens: int,
        seed: int,
        chain: SamplerChain,
        text: AnswerText,
        watch: Stopwatch,
    ) -> Iterator[Event]:
        """Verify, emit, draft, decode, until something ends the answer."""
        history = prompt
        draft = Draft()
        row = first_row
        evaluated = False  # the first token comes from the prefill, not from a pass of its own
        started = self._clock()
        try:
            while True:
                sampling = self._clock()
                verdict = self._verify(draft, row, chain)
                self._sample_seconds = self._clock() - sampling
                self._counter.sample_seconds += self._sample_seconds
                run = self._emit(verdict, draft, text, watch, started, evaluated=evaluated)
                history.extend(run.token_ids)
                yield from self._told_failure()
                yield run
                reason = self._end(verdict, text, watch, max_tokens)
                if reason is not None:
                    break
                started = self._clock()
                draft = self._draft(history, max_tokens - watch.generated)
                pending = [history[-1], *draft.tokens]
                position = len(self.cache)
                self._batch.fill(pending, position, all_outputs=True)
                if not self._decode(pending, position):
                    reason = FinishReason.CANCELLED
                    break
                row, evaluated = 0, True
        except Exception as error:  # whatever it is, what was said so far must not be lost
            if not isinstance(error, UserError):
                log.exception("the answer failed midway")
                error = internal_fault(error)
            yield self._finished(FinishReason.ERROR, seed, watch, text, error)
            return
        yield self._finished(reason, seed, watch, text)

    def _verify(self, draft: Draft, first_row: int, chain: SamplerChain) -> Verdict:
        """Which of the draft stands, and what the target adds, by the rule in force."""
        ends = self._model.is_end_of_generation
        if self._rejection is None or not draft.tokens:
            return verify(draft, lambda row: chain.sample(self._context, first_row + row), ends)
        return self._rejection.verify(
            draft.tokens, lambda row: self._context.row(first_row + row), ends
        )

    def _draft(self, history: list[int], tokens_left: int) -> Draft:
        """A draft that fits the window, the batch and the tokens still wanted."""
        room = min(self.n_ctx - len(self.cache), self.n_batch) - 1
        if self._context.max_rollback is not None:
            room = min(room, self._context.max_rollback)  # all of it may have to be taken back
        limit = room if tokens_left < 0 else min(room, tokens_left - 1)
        if limit < 1:
            return Draft()
        kind = self._drafter.kind
        guide = DraftGuide() if self._rejection is None else self._rejection.guide()
        draft = self._drafting(self._drafter.draft, history, limit, guide, otherwise=Draft())
        assert len(draft.tokens) <= limit
        return draft if draft.kind or not draft.tokens else replace(draft, kind=kind)

    def _emit(
        self,
        verdict: Verdict,
        draft: Draft,
        text: AnswerText,
        watch: Stopwatch,
        started: float,
        *,
        evaluated: bool,
    ) -> TextRun:
        """Take what counts of a verdict and forget the rest; tokens after a stop do not count."""
        emitted: list[int] = []
        pieces: list[TextPiece] = []
        reasoning_tokens = 0
        for token in verdict.tokens:
            emitted.append(token)
            if verdict.ended and len(emitted) == len(verdict.tokens):
                break  # an end-of-generation token has no text
            pieces += text.feed(token, accepted=len(emitted) <= verdict.accepted)
            reasoning_tokens += text.reasoning
            if text.ended:
                break
        kept = len(emitted) - 1  # the last one is pending: sampled, not in the cache
        if kept < len(draft.tokens):
            self.cache.trim(len(self.cache) - len(draft.tokens) + kept)
        self._drafting(self._drafter.accept, kept, otherwise=None)
        flags = tuple(index < verdict.accepted for index in range(len(emitted)))
        if evaluated:
            count = len(draft.tokens)
            kind = draft.kind or DrafterKind.NONE
            self._counter.passed(count + draft.cut, count, sum(flags), kind)
            seen = TargetPass(
                count + 1, self._pass_seconds, self._sample_seconds, sum(flags), tuple(emitted)
            )
            self._drafting(self._drafter.observe, seen, otherwise=None)
        watch.sampled(len(emitted))
        watch.reasoned(reasoning_tokens, still=text.reasoning)
        return TextRun(
            token_ids=tuple(emitted),
            accepted_flags=flags,
            drafted=len(draft.tokens),
            pieces=merged(pieces),
            generated_tokens=watch.generated,
            context_tokens=len(self.cache),
            seconds=self._clock() - started,
            tokens_per_second=watch.average_rate(),
            current_tokens_per_second=watch.current_rate(),
            time_to_first_token_seconds=watch.first_token_seconds(),
            speculation=self._counter.statistics(),
            pace=self._drafter.status(),
        )

    def _end(
        self, verdict: Verdict, text: AnswerText, watch: Stopwatch, max_tokens: int
    ) -> FinishReason | None:
        """Why the answer is over after this round, None when it goes on."""
        if text.ended:
            return FinishReason.STOP if text.stop_string else FinishReason.EOG
        if verdict.ended:
            return FinishReason.EOG
        if 0 <= max_tokens <= watch.generated:
            return FinishReason.LENGTH
        if self._abort.is_set():
            return FinishReason.CANCELLED
        if len(self.cache) >= self.n_ctx:
            return FinishReason.CONTEXT
        return None

    def _finished(
        self,
        reason: FinishReason,
        seed: int,
        watch: Stopwatch,
        text: AnswerText | None = None,
        error: UserError | None = None,
    ) -> Finished:
        return Finished(
            reason=reason,
            seed=seed,
            statistics=watch.statistics(len(self.cache)),
            pieces=text.finish() if text else (),
            stop_string=text.stop_string if text else "",
            error=error,
            drafter=self._began_with,
            verify=self._rule,
            verify_note=self._rule_note,
            speculation=self._counter.statistics(),
            pace=self._drafter.status(),
        )

    def close(self) -> None:
        """Free drafter and context, in that order. Calling it twice is harmless."""
        self.prompts.clear()
        try:
            self._drafter.close()
        finally:
            self._context.close()
