from __future__ import annotations

import pytest

from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.speculation.drafter import DrafterKind
from slipstream.engine.speculation.verify_rule import VerifyRule, rule_in_force

HEADS = (DrafterKind.DRAFT_MODEL, DrafterKind.EAGLE3, DrafterKind.MTP)


@pytest.mark.parametrize("kind", HEADS)
def test_auto_rejects_where_it_is_exact_and_nobody_set_a_seed(kind: DrafterKind) -> None:
    settings = SamplerSettings()
    assert rule_in_force(VerifyRule.AUTO, settings, kind) == (VerifyRule.REJECT, "")
    seeded = SamplerSettings(seed=0)
    assert rule_in_force(VerifyRule.AUTO, seeded, kind) == (VerifyRule.COMPARE, "")
    assert rule_in_force(VerifyRule.REJECT, seeded, kind) == (VerifyRule.REJECT, "")
    assert rule_in_force(VerifyRule.COMPARE, settings, kind) == (VerifyRule.COMPARE, "")


def test_the_text_itself_is_compared_unless_told_otherwise() -> None:
    kind = DrafterKind.PROMPT_LOOKUP
    assert rule_in_force(VerifyRule.AUTO, SamplerSettings(), kind) == (VerifyRule.COMPARE, "")
    assert rule_in_force(VerifyRule.REJECT, SamplerSettings(), kind) == (VerifyRule.REJECT, "")


@pytest.mark.parametrize(
    ("values", "kind", "word"),
    [
        ({"temperature": 0}, DrafterKind.DRAFT_MODEL, "temperature 0"),
        ({"mirostat": 1}, DrafterKind.DRAFT_MODEL, "Mirostat"),
        ({"mirostat": 2}, DrafterKind.EAGLE3, "Mirostat"),
        ({"grammar": 'root ::= "a"'}, DrafterKind.MTP, "grammar"),
        ({}, DrafterKind.NONE, "drafted"),
    ],
)
def test_where_it_cannot_be_it_says_why(
    values: dict[str, object], kind: DrafterKind, word: str
) -> None:
    settings = SamplerSettings(**values)  # type: ignore[arg-type]
    rule, note = rule_in_force(VerifyRule.REJECT, settings, kind)
    assert rule is VerifyRule.COMPARE
    assert word in note
    assert rule_in_force(VerifyRule.AUTO, settings, kind) == (VerifyRule.COMPARE, "")
