"""The search for the best draft, with tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.tiny_llama import build_other_vocabulary_llama, build_tiny_llama
from models.vocabulary import CHATML
from slipstream.engine.draft_search import SEARCH_TASKS, find_best_draft
from slipstream.engine.requests import LoadRequest
from slipstream.engine.target import Target


@pytest.fixture
def target(tmp_path: Path) -> Target:
    loaded = Target(
        LoadRequest(build_tiny_llama(tmp_path / "target.gguf", chat_template=CHATML), n_ctx=2048)
    )
    yield loaded
    loaded.close()


def test_every_way_is_tried_and_the_unfit_one_is_told(target: Target, tmp_path: Path) -> None:
    draft = build_tiny_llama(tmp_path / "draft.gguf")
    stranger = build_other_vocabulary_llama(tmp_path / "stranger.gguf")
    seen: list[tuple[int, int]] = []
    found = find_best_draft(target, (draft, stranger), lambda *told: seen.append(told))
    assert found is not None
    by_key = {finding.key: finding for finding in found}
    assert set(by_key) == {"prompt-lookup", str(draft), str(stranger)}
    assert by_key[str(stranger)].gain is None
    assert by_key[str(stranger)].obstacle.startswith("Token ")
    gains = [finding.gain or 0.0 for finding in found]
    assert gains == sorted(gains, reverse=True)
    total = 3 * 2 * len(SEARCH_TASKS) * 2
    assert seen[0] == (0, total)
    assert target.session.drafter.kind == "none"


def test_a_cancelled_search_finds_nothing(target: Target) -> None:
    def cancel(done: int, _total: int) -> None:
        if done == 2:
            target.session.cancel()

    assert find_best_draft(target, (), cancel) is None
    assert find_best_draft(target, (), lambda *_: None) is not None
