"""Checks that a draft changes nothing: one prompt answered greedily with it and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from slipstream.chat.records import FinishReason, GenerationStatistics, SpeculationStatistics
from slipstream.engine.events import Finished, PrefillProgress, TextRun
from slipstream.engine.requests import Candidate, Divergence, LosslessnessReport
from slipstream.engine.session import GenerationRequest, GenerationSession

Progress = Callable[[int, int], None]
"""Tokens generated so far over both runs, and at most to come in all."""


def check_losslessness(
    session: GenerationSession,
    request: GenerationRequest,
    max_tokens: int,
    token_text: Callable[[int], str],
    progress: Progress,
) -> LosslessnessReport | None:
    """Answer twice at temperature 0, with the session's drafter and without, and compare.

    At most `max_tokens` are generated each time. None when it was cancelled; raises `UserError`
    when one of the two runs fails.
    """
    greedy = replace(request.settings, temperature=0.0, seed=0, max_tokens=max_tokens)
    greedy_request = replace(request, settings=greedy)
    drafted = _run(session, greedy_request, lambda done: progress(done, 2 * max_tokens))
    if drafted is None:
        return None
    first = len(drafted.tokens)
    plain = _run(
        session,
        replace(greedy_request, speculate=False),
        lambda done: progress(first + done, first + max_tokens),
    )
    if plain is None:
        return None
    return LosslessnessReport(
        with_draft=drafted.tokens,
        without_draft=plain.tokens,
        speculation=drafted.speculation,
        with_draft_rate=drafted.statistics.decode_tokens_per_second,
        without_draft_rate=plain.statistics.decode_tokens_per_second,
        divergence=_divergence(session, request.prompt, drafted.tokens, plain.tokens, token_text),
    )


class _Run:
    def __init__(self) -> None:
        self.tokens: tuple[int, ...] = ()
        self.statistics = GenerationStatistics()
        self.speculation = SpeculationStatistics()


def _run(
    session: GenerationSession, request: GenerationRequest, progress: Callable[[int], None]
) -> _Run | None:
    """One answer; None when it was cancelled."""
    run = _Run()
    for event in session.generate(request):
        match event:
            case PrefillProgress():
                progress(0)
            case TextRun():
                run.tokens += event.token_ids
                progress(len(run.tokens))
            case Finished():
                if event.error is not None:
                    raise event.error
                if event.reason is FinishReason.CANCELLED:
                    return None
                run.statistics, run.speculation = event.statistics, event.speculation
    return run


def _divergence(
    session: GenerationSession,
    prompt: Sequence[int],
    with_draft: tuple[int, ...],
    without_draft: tuple[int, ...],
    token_text: Callable[[int], str],
) -> Divergence | None:
    """The first place where the two differ, with what the target expects there."""
    pairs = enumerate(zip(with_draft, without_draft, strict=False))
    position = next((index for index, (one, other) in pairs if one != other), None)
    if position is None:
        return None
    probabilities = session.next_token_probabilities([*prompt, *without_draft[:position]])

    def candidate(tokens: tuple[int, ...]) -> Candidate:
        token = tokens[position]
        return Candidate(token, token_text(token), float(probabilities[token]))

    return Divergence(position, candidate(with_draft), candidate(without_draft))
