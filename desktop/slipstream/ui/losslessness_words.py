"""What a losslessness check found, in words."""

from __future__ import annotations

from slipstream.engine.requests import Candidate, Divergence, LosslessnessReport
from slipstream.ui.acceptance_words import share_in_words

_ROUNDING = (
    "The target finds both about equally likely, so rounding decides between them: a pass over "
    "several tokens adds the same numbers up in another order than a pass over one. "
    "Both answers are the target's own."
)
_NOT_ROUNDING = (
    "The two are further apart than rounding explains. This should not happen: please report it "
    "with the names of both model files."
)


def headline(report: LosslessnessReport) -> str:
    """The outcome in one line."""
    if report.divergence is None:
        return f"Identical, {_tokens(len(report.without_draft))}"
    position = report.divergence.position
    same = "The first token" if position == 0 else f"Token {position + 1:,}"
    return f"{same} differs"


def explanation(report: LosslessnessReport) -> str:
    """What the outcome means, in a sentence or a few."""
    if report.divergence is not None:
        return _ROUNDING if report.divergence.is_rounding else _NOT_ROUNDING
    if not report.speculation.verified:
        return "Nothing was drafted in this answer, so there was nothing to get wrong."
    figures = report.speculation
    accepted = share_in_words(figures.accepted, figures.verified)
    words = (
        "With the draft and without it the target wrote the same, token by token. "
        f"{accepted} of {figures.verified:,} drafted tokens were accepted"
    )
    if report.with_draft_rate and report.without_draft_rate:
        ratio = report.with_draft_rate / report.without_draft_rate
        words += (
            f"; the draft made it {ratio:.2f}× as fast "
            f"({report.with_draft_rate:.1f} and {report.without_draft_rate:.1f} tok/\u2060s)"
        )
    return f"{words}."


def candidates(divergence: Divergence) -> tuple[tuple[str, str, str], ...]:
    """A row for each candidate: which answer took it, its text, the target's probability."""
    return (
        ("With the draft", *_candidate(divergence.with_draft)),
        ("Without", *_candidate(divergence.without_draft)),
    )


def _candidate(candidate: Candidate) -> tuple[str, str]:
    shown = candidate.text.replace("\n", "↵").replace("\t", "⇥")
    return f"“{shown}”", f"{100 * candidate.probability:.2f} %"


def _tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"
