"""By which rule drafts are verified: what can be asked for, and what is in force for an answer.

Plain values; importable without llama.cpp.
"""

from __future__ import annotations

from enum import StrEnum

from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import DrafterKind


class VerifyRule(StrEnum):
    """How drafted tokens are accepted, in the words of the command line."""

    AUTO = "auto"  # rejection sampling where it is exact and pays
    COMPARE = "compare"  # sample-and-compare: a seed gives plain decoding's text
    REJECT = "reject"  # rejection sampling: plain decoding's distribution, but not its text


def rule_in_force(
    asked: VerifyRule, settings: SamplerSettings, drafter: DrafterKind
) -> tuple[VerifyRule, str]:
    """`COMPARE` or `REJECT`, and in words why it is not what was asked for ("" where it is).

    Drafts from the text itself are compared unless rejection sampling is asked for: it would
    accept as many of them, and a seed would no longer give the same text.
    """
    if asked is VerifyRule.COMPARE:
        return asked, ""
    obstacle = _obstacle(settings, drafter)
    if asked is VerifyRule.REJECT:
        return (VerifyRule.COMPARE, obstacle) if obstacle else (VerifyRule.REJECT, "")
    if obstacle or settings.seed is not None or drafter is DrafterKind.PROMPT_LOOKUP:
        return VerifyRule.COMPARE, ""
    return VerifyRule.REJECT, ""


def _obstacle(settings: SamplerSettings, drafter: DrafterKind) -> str:
    """Why rejection sampling would not be exact or have nothing to do, "" where it can be used."""
    if drafter is DrafterKind.NONE:
        return "Nothing is drafted."
    if settings.greedy:
        return "At temperature 0 nothing is left to chance, so that drafts can only be compared."
    if settings.mirostat:
        return "Mirostat draws by itself, so that drafts can only be compared."
    if settings.grammar:
        return (
            "Under a grammar a token is drawn freely and drawn again where it breaks the grammar, "
            "so that drafts can only be compared."
        )
    return ""
