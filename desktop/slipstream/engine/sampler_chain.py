"""The native sampler chain of one answer, built from `SamplerSettings`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

from slipstream.engine.candidates import Candidates, Distribution, Logits
from slipstream.engine.grammar import check_grammar
from slipstream.engine.llama import Context, Model, lib
from slipstream.engine.sampling import SamplerSettings
from slipstream.errors import EngineError, UsageError

_MIROSTAT_CANDIDATES = 100  # "m" of mirostat 1, llama.cpp's default


class DraftChain:
    """A copy of a chain without its draw, to sample drafts by the same rules.

    What it accepts does not reach the chain it was copied from.
    """

    def __init__(self, native: Any, candidates: Candidates) -> None:
        self._native = native
        self._candidates = candidates

    def distribution(self, logits: Logits) -> Distribution:
        """What may follow by a row of the draft's logits, shape (n_vocab of the draft,)."""
        return self._candidates.distribution(self._native, logits)

    def accept(self, token: int) -> None:
        """Let penalties and DRY see a drafted token."""
        lib.llama_sampler_accept(self._native, token)

    def close(self) -> None:
        """Free the copy. Calling it twice is harmless."""
        if self._native is not None:
            lib.llama_sampler_free(self._native)
            self._native = None


class SamplerChain:
    """Draws tokens from rows of logits and remembers them for penalties and grammar.

    One draw from the random numbers per token, so seed and settings fix the text. With a grammar
    a token is drawn freely first and only drawn again under the grammar when it breaks it, as
    llama.cpp's own programs do: checking one token is cheap, filtering a vocabulary is not.

    Raises `UsageError` for a grammar that cannot be parsed or a bias for an unknown token.
    """

    def __init__(self, model: Model, settings: SamplerSettings, seed: int, n_ctx: int) -> None:
        self._model = model
        self._settings = settings
        self._n_ctx = n_ctx
        self._chain: Any = None
        self._grammar: Any = None
        self._candidates = Candidates(model.n_vocab)
        self._check_biases()
        if settings.grammar:
            check_grammar(settings.grammar)
            self._grammar = lib.llama_sampler_init_grammar(
                model.vocab, settings.grammar.encode(errors="replace"), b"root"
            )
            if not self._grammar:
                self._grammar = None
                raise UsageError(
                    "The grammar cannot be used.",
                    "It is not valid GBNF, or has no rule named root.",
                    'A grammar looks like: root ::= "yes" | "no"',
                )
        # the last part draws; the others stand in a chain of their own, which leaves a distribution
        *parts, draw = self._samplers(seed)
        self._takes_largest = settings.greedy and not parts and self._grammar is None
        self._before_draw = _chain_of(parts)
        self._chain = _chain_of([self._before_draw, draw])

    def _check_biases(self) -> None:
        unknown = [t for t, _ in self._settings.logit_bias if t >= self._model.n_vocab]
        if unknown:
            raise UsageError(
                f"The logit bias names token {unknown[0]:,}, which the model does not have.",
                f"{self._model.path.name} has the ids 0 to {self._model.n_vocab - 1:,}.",
                "Remove that bias.",
            )

    def _samplers(self, seed: int) -> list[Any]:
        """The parts in the order documented as `SAMPLING_ORDER`."""
        s = self._settings
        parts: list[Any] = []
        if s.logit_bias:
            biases = (lib.llama_logit_bias * len(s.logit_bias))(*s.logit_bias)
            parts.append(
                lib.llama_sampler_init_logit_bias(self._model.n_vocab, len(biases), biases)
            )
        if self._penalises:
            parts.append(
                lib.llama_sampler_init_penalties(
                    self._model.n_vocab,
                    self._window(s.repeat_last_n),
                    s.repeat_penalty,
                    s.frequency_penalty,
                    s.presence_penalty,
                )
            )
        if s.dry_multiplier > 0:
            parts.append(self._dry())
        if s.greedy:
            return [*parts, lib.llama_sampler_init_greedy()]
        if s.mirostat:
            return [*parts, lib.llama_sampler_init_temp(s.temperature), self._mirostat(seed)]
        keep = 1
        stages: list[tuple[bool, Callable[[], Any]]] = [
            (s.top_n_sigma > 0, lambda: lib.llama_sampler_init_top_n_sigma(s.top_n_sigma)),
            (s.top_k > 0, lambda: lib.llama_sampler_init_top_k(s.top_k)),
            (s.typical_p < 1, lambda: lib.llama_sampler_init_typical(s.typical_p, keep)),
            (s.top_p < 1, lambda: lib.llama_sampler_init_top_p(s.top_p, keep)),
            (s.min_p > 0, lambda: lib.llama_sampler_init_min_p(s.min_p, keep)),
            (
                s.xtc_probability > 0,
                lambda: lib.llama_sampler_init_xtc(s.xtc_probability, s.xtc_threshold, keep, seed),
            ),
        ]
        parts += [make() for wanted, make in stages if wanted]
        parts.append(
            lib.llama_sampler_init_temp_ext(s.temperature, s.dynatemp_range, s.dynatemp_exponent)
        )
        return [*parts, lib.llama_sampler_init_dist(seed)]

    @property
    def _penalises(self) -> bool:
        s = self._settings
        acts = s.repeat_penalty != 1 or s.frequency_penalty != 0 or s.presence_penalty != 0
        return acts and s.repeat_last_n != 0

    def _window(self, tokens: int) -> int:
        """A window in tokens; -1 stands for the whole context (llama.cpp itself reads it as 0)."""
        return self._n_ctx if tokens < 0 else tokens

    def _dry(self) -> Any:
        s = self._settings
        breakers = [text.encode(errors="replace") for text in s.dry_sequence_breakers if text]
        return lib.llama_sampler_init_dry(
            self._model.vocab,
            s.dry_multiplier,
            s.dry_base,
            s.dry_allowed_length,
            self._window(s.dry_penalty_last_n),
            (ctypes.c_char_p * len(breakers))(*breakers),
            len(breakers),
        )

    def _mirostat(self, seed: int) -> Any:
        s = self._settings
        if s.mirostat == 1:
            return lib.llama_sampler_init_mirostat(
                self._model.n_vocab, seed, s.mirostat_tau, s.mirostat_eta, _MIROSTAT_CANDIDATES
            )
        return lib.llama_sampler_init_mirostat_v2(seed, s.mirostat_tau, s.mirostat_eta)

    def prime(self, prompt: Sequence[int]) -> None:
        """Let penalties and DRY see the prompt, as llama.cpp's own programs do."""
        if self._penalises or self._settings.dry_multiplier > 0:
            for token in prompt[-self._n_ctx :]:
                lib.llama_sampler_accept(self._chain, token)

    def sample(self, context: Context, row: int) -> int:
        """Draw a token from an output row and accept it.

        Raises `EngineError` when a grammar leaves no token to go on with.
        """
        if self._chain is None:
            raise EngineError("The sampler was already closed.")
        if self._takes_largest:  # as the chain would, without a list of all candidates
            return int(context.row(row).argmax())
        if self._grammar is None:
            return int(lib.llama_sampler_sample(self._chain, context.handle, row))
        token = self._draw(context, row, under_grammar=False)
        if not self._grammar_allows(token):
            token = self._draw(context, row, under_grammar=True)
            if not self._grammar_allows(token):
                raise EngineError(
                    "The grammar leaves nothing to go on with.",
                    "No token of the model fits it at this place.",
                    "Check the grammar, or leave it out.",
                )
        lib.llama_sampler_accept(self._grammar, token)
        lib.llama_sampler_accept(self._chain, token)
        return token

    def distribution(self, logits: Logits) -> Distribution:
        """What `sample` would draw from for a row, shape (n_vocab,), without a grammar.

        To be called once for each token: XTC draws from its random numbers.
        """
        return self._candidates.distribution(self._before_draw, logits)

    def accept(self, token: int) -> None:
        """Let penalties and DRY see a token that was not drawn by `sample`."""
        lib.llama_sampler_accept(self._chain, token)

    def for_draft(self) -> DraftChain:
        """A copy to sample a draft with, to be closed; not for mirostat or under a grammar."""
        return DraftChain(lib.llama_sampler_clone(self._before_draw), self._candidates)

    def _draw(self, context: Context, row: int, *, under_grammar: bool) -> int:
        candidates = self._candidates.load(context.row(row))
        if under_grammar:
            lib.llama_sampler_apply(self._grammar, ctypes.byref(candidates))
        lib.llama_sampler_apply(self._chain, ctypes.byref(candidates))
        return int(candidates.data[candidates.selected].id)

    def _grammar_allows(self, token: int) -> bool:
        single = lib.llama_token_data(id=token, logit=1.0, p=0.0)
        array = lib.llama_token_data_array(
            data=ctypes.pointer(single), size=1, selected=-1, sorted=False
        )
        lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return not math.isinf(single.logit)

    def close(self) -> None:
        """Free the chain and the grammar. Calling it twice is harmless."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None
        if self._grammar is not None:
            lib.llama_sampler_free(self._grammar)
            self._grammar = None


def _chain_of(samplers: Sequence[Any]) -> Any:
    """A native chain, which owns its parts."""
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    for sampler in samplers:
        lib.llama_sampler_chain_add(chain, sampler)
    return chain
