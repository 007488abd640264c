"""The check that a draft changes nothing, with drafts that are right, wrong and dishonest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.speculation import harness
from engine.speculation.harness import prompt_of, session_of, tokens_of
from models.tiny_llama import build_tiny_llama
from slipstream.engine.llama import Model
from slipstream.engine.losslessness import check_losslessness
from slipstream.engine.requests import Candidate, Divergence
from slipstream.engine.session import GenerationRequest, GenerationSession
from slipstream.engine.speculation.drafter import Draft
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.errors import EngineError

PROMPT = prompt_of(12)
ENDLESS = ((2, -float("inf")), (344, -float("inf")))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(build_tiny_llama(tmp_path_factory.mktemp("lossless") / "target.gguf"))


def request(prompt: Sequence[int]) -> GenerationRequest:
    return harness.request(prompt, logit_bias=ENDLESS)


def text_of(token: int) -> str:
    return f"<{token}>"


def ignore(done: int, total: int) -> None:
    """Nobody watches."""


class Repeating(PromptLookupDrafter):
    """Drafts what was said before, right or not."""

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        return Draft(tuple(history[-min(limit, 3) :]))


def test_an_honest_session_is_identical_and_counts_what_was_drafted(target: Model) -> None:
    session = session_of(target, lambda _: Repeating())
    seen: list[tuple[int, int]] = []
    report = check_losslessness(
        session, request(PROMPT), 20, text_of, lambda done, total: seen.append((done, total))
    )
    assert report is not None
    assert report.is_identical
    assert report.divergence is None
    assert len(report.with_draft) == 20
    assert report.speculation.verified > 0
    assert seen[0] == (0, 40)
    assert seen[-1] == (40, 40)
    assert session.drafter.kind == "prompt-lookup"
    session.close()


def test_the_drafter_is_in_step_after_a_check(target: Model) -> None:
    session = session_of(target, lambda _: Repeating())
    before = tokens_of(list(session.generate(request(PROMPT))))
    check_losslessness(session, request(PROMPT), 9, text_of, ignore)
    assert tokens_of(list(session.generate(request(PROMPT)))) == before
    session.close()


class Cheating(GenerationSession):
    """Emits another token than the target's as the sixth, while it drafts."""

    def generate(self, asked):  # type: ignore[no-untyped-def]
        from dataclasses import replace

        from slipstream.engine.events import TextRun

        count = 0
        for event in super().generate(asked):
            if asked.speculate and isinstance(event, TextRun):
                ids = list(event.token_ids)
                if count <= 5 < count + len(ids):
                    ids[5 - count] = 77
                count += len(ids)
                event = replace(event, token_ids=tuple(ids))
            yield event


def test_a_difference_is_found_with_both_probabilities(target: Model) -> None:
    session = Cheating(target)
    session.set_drafter(Repeating())
    report = check_losslessness(session, request(PROMPT), 12, text_of, ignore)
    assert report is not None
    assert not report.is_identical
    found = report.divergence
    assert found is not None
    assert found.position == 5
    assert found.with_draft.token == 77
    assert found.with_draft.text == "<77>"
    assert found.without_draft.token == report.without_draft[5]
    probabilities = session.next_token_probabilities([*PROMPT, *report.without_draft[:5]])
    assert probabilities.sum() == pytest.approx(1)
    allowed = np.delete(probabilities, [token for token, _ in ENDLESS])
    assert found.without_draft.probability == pytest.approx(allowed.max())
    assert found.with_draft.probability == pytest.approx(probabilities[77])
    session.close()


def test_a_cancelled_check_compares_nothing(target: Model) -> None:
    session = session_of(target, lambda _: Repeating())

    def cancel_at(limit: int):  # type: ignore[no-untyped-def]
        def tell(done: int, total: int) -> None:
            if done >= limit:
                session.cancel()

        return tell

    assert check_losslessness(session, request(PROMPT), 20, text_of, cancel_at(4)) is None
    assert check_losslessness(session, request(PROMPT), 20, text_of, cancel_at(25)) is None
    report = check_losslessness(session, request(PROMPT), 8, text_of, ignore)
    assert report is not None
    assert report.is_identical
    session.close()


def test_a_failure_of_the_target_is_raised(target: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(target)
    decode, calls = session.context.decode, 0

    def failing(batch: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise EngineError("It broke.")
        decode(batch)  # type: ignore[arg-type]

    monkeypatch.setattr(session.context, "decode", failing)
    with pytest.raises(EngineError, match="It broke"):
        check_losslessness(session, request(PROMPT), 8, text_of, ignore)
    session.close()


@pytest.mark.parametrize(("other", "is_rounding"), [(0.401, True), (0.39, True), (0.37, False)])
def test_close_candidates_are_a_matter_of_rounding(other: float, is_rounding: bool) -> None:
    found = Divergence(3, Candidate(1, "a", 0.4), Candidate(2, "b", other))
    assert found.is_rounding is is_rounding


def test_probabilities_after_a_long_prompt(target: Model) -> None:
    """The last token's row is read whatever the number of chunks before it."""
    expected = None
    for n_batch in (64, 33, 32):
        session = session_of(target, n_batch=n_batch)
        found = session.next_token_probabilities(prompt_of(65))
        expected = found if expected is None else expected
        assert found == pytest.approx(expected, abs=1e-3)  # rows round differently
        session.close()
