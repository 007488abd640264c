"""The words under and above an answer: its numbers, why it ended, how long it thought."""

from __future__ import annotations

from slipstream.chat.records import (
    AnswerRecord,
    FinishReason,
    GenerationStatistics,
    SpeculationStatistics,
)
from slipstream.ui.acceptance_words import length_in_words, share_in_words

_REASONS = {
    FinishReason.EOG: "complete",
    FinishReason.LENGTH: "token limit reached",
    FinishReason.CONTEXT: "context full",
    FinishReason.CANCELLED: "stopped",
    FinishReason.ERROR: "failed",
}
_SEPARATOR = " · "
_FIXED = "\u00a0"  # lines break between parts, and before a parenthesis
_SPEED = "tok/\u2060s"  # with a word joiner: no line breaks at the slash


def finish_words(answer: AnswerRecord) -> str:
    """Why the answer ended, in a few words."""
    if answer.finish_reason is FinishReason.STOP:
        shown = answer.stop_string.replace("\n", "↵")
        return f"stop string “{shown}”" if shown else "stop string"
    return _REASONS[answer.finish_reason]


def numbers_line(answer: AnswerRecord) -> str:
    """Speed, waiting time, prompt, length and reason, in this order, without what is unknown."""
    statistics = answer.statistics
    parts = []
    decode = statistics.decode_tokens_per_second
    if decode is not None:
        parts.append(f"{_rate(decode)} {_SPEED}")
    if statistics.time_to_first_token_seconds is not None:
        parts.append(f"first token {_seconds(statistics.time_to_first_token_seconds)}")
    if statistics.prompt_tokens:
        parts.append(_prompt_words(statistics))
    parts.append(_tokens(statistics.generated_tokens))
    if drafted := speculation_words(answer.speculation):
        parts.append(drafted)
    parts.append(finish_words(answer))
    return f"{_FIXED}· ".join(_unbroken(part) for part in parts)


def speculation_words(statistics: SpeculationStatistics) -> str:
    """How far the draft was right; empty where nothing was drafted.

    The rate counts verified tokens; they are called drafted where all drafted ones were verified.
    """
    if not statistics.rounds:
        return ""
    rate = share_in_words(statistics.accepted, statistics.verified)
    which = "drafted" if statistics.verified == statistics.drafted else "verified"
    accepted = f"{rate} of {statistics.verified:,} {which} accepted"
    return f"{_FIXED}· ".join(_unbroken(part) for part in (accepted, length_in_words(statistics)))


def thought_line(statistics: GenerationStatistics | None, thinking: bool) -> str:
    """The header of a folded reasoning block."""
    if thinking:
        return "Thinking…"
    if statistics is None or not statistics.reasoning_tokens:
        return "Thought"
    seconds = statistics.reasoning_seconds
    duration = f"{seconds:.1f} s" if seconds < 1 else _duration(round(seconds))
    return f"Thought for {duration}{_SEPARATOR}{_tokens(statistics.reasoning_tokens)}"


def progress_words(done: int, total: int) -> str:
    """How far the prompt has been read."""
    return f"Reading {done:,} of {total:,} tokens" if total > 0 else "Waiting for the model…"


def _prompt_words(statistics: GenerationStatistics) -> str:
    prefill = statistics.prefill_tokens_per_second
    size = _tokens(statistics.prompt_tokens)
    if statistics.cached_prompt_tokens:
        size += f", {statistics.cached_prompt_tokens:,} cached"
    return f"prompt {_rate(prefill)} {_SPEED} ({size})" if prefill is not None else f"prompt {size}"


def _unbroken(part: str) -> str:
    return part.replace(" ", _FIXED).replace(f"{_FIXED}(", " (")


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 0.1 else f"{value:.1f} s" if value < 60 else _duration(value)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"
