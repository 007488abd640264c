from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.harness import request, session_of, tokens_of
from engine.speculation.head_checks import (
    Turn,
    answer,
    assert_in_step,
    assert_like_fresh,
    bare_prompt,
    converse,
)
from models.draft_files import chat_file, eagle3_file
from models.tiny_eagle3 import HeadShape, build_eagle3, build_target, right_head
from models.tiny_mtp import MtpWeights, build_mimo2, build_qwen35
from slipstream.chat.records import FinishReason
from slipstream.engine.events import DraftingStopped, Finished, PrefillProgress
from slipstream.engine.gguf import read_header
from slipstream.engine.llama import ROLLBACK, AbortFlag, Context, ContextSettings, Model
from slipstream.engine.model_parts import read_parts
from slipstream.engine.requests import DraftRequest, Pace
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation import head_drafter
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings, NullDrafter
from slipstream.engine.speculation.eagle3 import HEAD_BATCH, Eagle3Drafter, check_eagle3
from slipstream.engine.speculation.factory import open_drafter
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.hidden_batch import HiddenBatch
from slipstream.errors import ContextSizeError, DraftMisfit, EngineError, ExitCode, ModelFileError

DEPTHS = range(1, 9)
SHAPES = {
    "right": right_head(),
    "wrong": right_head(wrong=True),
    "right, reduced": right_head(reduced=100),
    "mixed": HeadShape(drafts="mixed", norm_before_residual=True),
    "mixed, own embeddings": HeadShape(
        drafts="mixed", norm_before_residual=True, own_embeddings=True
    ),
    "mixed, shared output": HeadShape(drafts="mixed", norm_before_residual=True, own_output=False),
    "echo": HeadShape(drafts="echo", layers=(0, 2, 3)),
    "random": HeadShape(),
    "random, reduced": HeadShape(reduced=50),
    "random, all norms": HeadShape(norm_before_residual=True, norm_before_fc=True),
    "random, shares all": HeadShape(own_output=False, norm_before_fc=True, layers=(1, 2, 2)),
    "random, narrow": HeadShape(own_embeddings=True, width=32),
}


@dataclass
class Zoo:
    """One target of each kind, and heads for them by name."""

    folder: Path
    markov: Model
    dense: Model

    def target(self, name: str) -> Model:
        """The markov target, but for random heads."""
        return self.dense if name.startswith("random") else self.markov

    def head(self, name: str) -> Path:
        path = self.folder / f"{name}.gguf"
        if not path.exists():
            build_eagle3(path, self.target(name).path, SHAPES[name])
        return path

    def maker(self, name: str, depth: int, **values: object):
        def make(session: GenerationSession) -> Eagle3Drafter:
            chosen = DraftSettings(n_draft_max=depth, **values)  # type: ignore[arg-type]
            head = Model(self.head(name), head=True)
            return Eagle3Drafter(head, session.context, chosen, n_threads=1)

        return make


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    folder = tmp_path_factory.mktemp("eagle3")
    markov = Model(build_target(folder / "markov target.gguf", markov=True))
    dense = Model(build_target(folder / "dense target.gguf", markov=False))
    yield Zoo(folder, markov, dense)
    markov.close()
    dense.close()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_right_head_is_always_accepted(zoo: Zoo, depth: int) -> None:
    session = session_of(zoo.markov, zoo.maker("right", depth), 16)
    wanted = 1 + 3 * (depth + 1)
    figures = answer(zoo.markov, session, bare_prompt(40), max_tokens=wanted)
    assert figures.acceptance_by_position == (1.0,) * depth
    assert (figures.rounds, figures.plain_passes) == (3, 0)
    session.close()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_wrong_head_changes_nothing(zoo: Zoo, depth: int) -> None:
    session = session_of(zoo.markov, zoo.maker("wrong", depth), 33)
    figures = answer(zoo.markov, session, bare_prompt(50))
    assert figures.acceptance_rate == 0.0
    assert figures.rounds >= 18
    session.close()


@pytest.mark.parametrize("name", ["mixed", "mixed, own embeddings", "mixed, shared output"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_mixed_head_is_accepted_in_part(zoo: Zoo, name: str, depth: int) -> None:
    session = session_of(zoo.markov, zoo.maker(name, depth))
    figures = answer(zoo.markov, session, bare_prompt(60), max_tokens=30)
    assert figures.acceptance_rate is not None
    assert 0.0 < figures.acceptance_rate < 1.0
    session.close()


def test_a_reduced_vocabulary_drafts_its_own_tokens_only(zoo: Zoo) -> None:
    session = session_of(zoo.markov, zoo.maker("right, reduced", 3))
    figures = answer(zoo.markov, session, bare_prompt(30), max_tokens=60)
    assert figures.acceptance_rate is not None
    assert 0.0 < figures.acceptance_rate < 1.0
    session.close()


@pytest.mark.parametrize("n_batch", [5, 16, 200])
def test_the_states_are_in_step_with_the_tokens(zoo: Zoo, n_batch: int) -> None:
    """The state where the token before stood foretells the pending one: it is drafted again."""
    session = session_of(zoo.markov, zoo.maker("echo", 3), n_batch)
    answer(zoo.markov, session, bare_prompt(137), max_tokens=9)
    prompt = bare_prompt(145)
    events = list(session.generate(request(prompt, max_tokens=9, logit_bias=())))
    history = [*session.cache.tokens, tokens_of(events)[-1]]
    drafted = session.drafter.draft(history, min(3, n_batch), DraftGuide()).tokens
    assert drafted == (history[-1],) * 3
    session.close()


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in {"wrong", "echo"}])
@settings(deadline=None, derandomize=True, max_examples=6)
@given(
    turns=st.lists(
        st.tuples(st.integers(0, 150), st.integers(0, 15), st.integers(0, 6)),
        min_size=1,
        max_size=3,
    ),
    depth=st.integers(1, 8),
    n_batch=st.sampled_from([12, 33, 64, 512]),
)
def test_any_turns_equal_plain_decoding(
    zoo: Zoo, name: str, turns: list[Turn], depth: int, n_batch: int
) -> None:
    converse(zoo.target(name), zoo.maker(name, depth), turns, depth=depth, n_batch=n_batch)


@pytest.mark.parametrize("seed", range(2))
def test_at_temperature_one_a_seed_gives_plain_decodings_text(zoo: Zoo, seed: int) -> None:
    session = session_of(zoo.markov, zoo.maker("mixed", 4))
    hot = {"temperature": 1.0, "seed": seed, "max_tokens": 40}
    assert answer(zoo.markov, session, bare_prompt(30), **hot).rounds > 0
    session.close()


@pytest.mark.parametrize("name", ["right", "random"])
def test_a_prompt_of_one_token(zoo: Zoo, name: str) -> None:
    model = zoo.target(name)
    session = session_of(model, zoo.maker(name, 4))
    for token in (5, 6):
        figures = answer(model, session, [token], max_tokens=11)
        assert figures.rounds > 0
    assert name == "random" or figures.acceptance_rate == 1.0
    session.close()


def test_the_next_turn_evaluates_only_what_is_new(zoo: Zoo) -> None:
    session = session_of(zoo.markov, zoo.maker("mixed", 4))
    answer(zoo.markov, session, bare_prompt(60), max_tokens=12)
    events = list(session.generate(request([*session.cache.tokens, 9, 8, 7], logit_bias=())))
    first = events[0]
    assert isinstance(first, PrefillProgress)
    assert first.total - first.cached == 3
    session.close()


def test_a_fork_far_back_evaluates_one_token_twice(zoo: Zoo) -> None:
    make = zoo.maker("random", 4)
    session = session_of(zoo.dense, make)
    answer(zoo.dense, session, bare_prompt(300), max_tokens=3)
    events = list(session.generate(request([*bare_prompt(100), 1, 2], logit_bias=())))
    first = events[0]
    assert isinstance(first, PrefillProgress)
    assert first.cached == 99
    assert_in_step(session)
    assert_like_fresh(zoo.dense, session, make, tokens_of(events)[-1], 4)
    session.close()


def test_a_head_chosen_in_mid_conversation_reads_it_from_the_start(zoo: Zoo) -> None:
    session = session_of(zoo.markov)
    list(session.generate(request(bare_prompt(40), logit_bias=())))
    session.set_drafter(zoo.maker("right", 4)(session))
    figures = answer(zoo.markov, session, bare_prompt(50), max_tokens=11)
    assert figures.acceptance_rate == 1.0
    session.close()


def test_p_min_and_n_draft_min(zoo: Zoo) -> None:
    session = session_of(zoo.markov, zoo.maker("right", 8, p_min=1.0))
    assert answer(zoo.markov, session, bare_prompt(20)).drafted == 0
    session.set_drafter(zoo.maker("right", 8, n_draft_min=8)(session))
    figures = answer(zoo.markov, session, bare_prompt(30), max_tokens=7)
    assert (figures.rounds, figures.drafted) == (0, 0)
    session.close()


@pytest.mark.parametrize("at", [1, 3, 4, 6])
@pytest.mark.parametrize("step", ["decode", "encode"])
def test_the_second_answer_after_a_cancel(zoo: Zoo, at: int, step: str) -> None:
    make = zoo.maker("mixed", 4)
    session = session_of(zoo.markov, make, 16)
    context = session.drafter._context  # type: ignore[attr-defined]
    real, calls = getattr(context, step), 0

    def cancelling(batch: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            session.cancel()
        real(batch)

    setattr(context, step, cancelling)
    events = list(session.generate(request(bare_prompt(40), logit_bias=())))
    setattr(context, step, real)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED
    assert not any(isinstance(event, DraftingStopped) for event in events)
    assert answer(zoo.markov, session, bare_prompt(50), max_tokens=40).accepted > 0
    assert_like_fresh(zoo.markov, session, make, 7, 4)
    session.close()


def test_a_head_reads_nothing_until_it_is_to_draft(zoo: Zoo) -> None:
    session = session_of(zoo.dense, zoo.maker("mixed", 4), 16)
    drafter = session.drafter
    assert isinstance(drafter, Eagle3Drafter)
    said = bare_prompt(40)
    list(session.generate(request(said, max_tokens=0)))
    assert drafter._context.length() == 0
    assert drafter.behind(41) == 41  # the pending token is one of them
    draft = drafter.draft([*said, 7], 4, DraftGuide())
    assert len(draft.tokens) == 4
    assert drafter._context.length() == 40  # the first token has no pair
    assert drafter.behind(41) == 0
    session.close()


def test_what_was_refused_is_never_read(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(zoo.dense, zoo.maker("random", 4))
    drafter = session.drafter
    assert isinstance(drafter, Eagle3Drafter)
    read: list[int] = []
    encode = Eagle3Drafter._read

    def counted(self: Eagle3Drafter, given: np.ndarray) -> np.ndarray:
        read.append(len(given))
        return encode(self, given)

    monkeypatch.setattr(Eagle3Drafter, "_read", counted)
    figures = answer(zoo.dense, session, bare_prompt(20), max_tokens=12)
    assert figures.accepted == 0
    assert figures.drafted > 30
    assert read[0] == 20
    assert set(read[1:]) == {1}  # of five rows each
    session.close()


def test_states_that_wait_are_read_before_they_take_too_much_memory(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_drafter, "MOST_WAITING", 30 * 3 * 64 * 4)
    session = session_of(zoo.dense, zoo.maker("mixed", 4), 16)
    drafter = session.drafter
    assert isinstance(drafter, Eagle3Drafter)
    list(session.generate(request(bare_prompt(40), max_tokens=0)))
    assert drafter._context.length() == 31  # after two chunks
    assert_like_fresh(zoo.dense, session, zoo.maker("mixed", 4), 7, 4)
    session.close()


def test_closing_gives_the_states_up_and_the_target_goes_on(zoo: Zoo) -> None:
    session = session_of(zoo.markov, zoo.maker("right", 4))
    drafter = session.drafter
    assert isinstance(drafter, Eagle3Drafter)
    answer(zoo.markov, session, bare_prompt(20))
    session.set_drafter(NullDrafter())
    drafter.close()
    with pytest.raises(EngineError):
        assert drafter._model.handle
    list(session.generate(request(bare_prompt(25), logit_bias=())))
    session.set_drafter(zoo.maker("right", 4)(session))
    assert answer(zoo.markov, session, bare_prompt(30), max_tokens=11).acceptance_rate == 1.0
    drafter = session.drafter
    session.close()
    drafter.close()


def test_what_the_drafter_says_of_itself(zoo: Zoo) -> None:
    session = session_of(zoo.markov, zoo.maker("right", 4))
    drafter = session.drafter
    assert isinstance(drafter, Eagle3Drafter)
    assert drafter.kind is DrafterKind.EAGLE3
    assert (drafter.need_embd, drafter.need_embd_pre_norm) == (False, True)
    session.close()


def test_a_target_that_gives_out_the_state_after_its_last_layer(tmp_path: Path) -> None:
    target = Model(build_mimo2(tmp_path / "mimo2.gguf", MtpWeights(markov=True)))
    shape = HeadShape(drafts="mixed", norm_before_residual=True, layers=(0, 1, 2))
    head = build_eagle3(tmp_path / "head.gguf", target.path, shape)
    session = session_of(
        target,
        lambda s: Eagle3Drafter(
            Model(head, head=True), s.context, DraftSettings(n_draft_max=4), n_threads=1
        ),
        16,
    )
    assert answer(target, session, bare_prompt(50)).accepted > 0
    session.close()
    target.close()


@pytest.mark.parametrize("depth", [1, 4, 20])
def test_a_hybrid_target(tmp_path: Path, depth: int) -> None:
    target = Model(build_qwen35(tmp_path / "qwen35.gguf", MtpWeights(markov=True)))
    shape = HeadShape(drafts="mixed", norm_before_residual=True, layers=(0, 1, 2))
    head = build_eagle3(tmp_path / "head.gguf", target.path, shape)
    session = session_of(
        target,
        lambda s: Eagle3Drafter(
            Model(head, head=True), s.context, DraftSettings(n_draft_max=depth), n_threads=1
        ),
        16,
    )
    for length in (50, 30, 60):
        figures = answer(target, session, bare_prompt(length), max_tokens=30)
        assert 0 < figures.accepted < figures.drafted <= ROLLBACK * figures.rounds
    session.close()
    target.close()


def test_a_decode_with_mixed_outputs_returns_the_wrong_row(zoo: Zoo) -> None:
    """Why the head is never asked for the last of several rows."""
    session = session_of(zoo.dense, zoo.maker("random", 4))
    context = session.drafter._context  # type: ignore[attr-defined]
    states = np.random.default_rng(3).standard_normal((3, 64)).astype(np.float32)

    def logits(row: int) -> np.ndarray:
        return np.ctypeslib.as_array(context.logits(row), shape=(128,)).copy()

    batch = HiddenBatch(HEAD_BATCH, 64)
    batch.fill([1, 2, 3], states, 0, outputs=3)
    context.decode(batch)
    rows = [logits(row) for row in range(3)]
    context.clear()
    batch.fill([1, 2, 3], states, 0, outputs=1)
    context.decode(batch)
    mixed = logits(2)
    assert np.allclose(mixed, rows[0], atol=1e-4)
    assert not np.allclose(mixed, rows[2], atol=1e-4)
    session.close()


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (HeadShape(layers=(0, 1, 2, 3)), "4 layers"),
        (HeadShape(layers=(0, 1)), "2 layers"),
        (HeadShape(layers=(0, 2, 4)), "after the last layer"),
        (HeadShape(layers=(0, 2, 9)), "layer 9"),
        (HeadShape(layers=(0, 2, -1)), "layer -1"),
        (HeadShape(reduced=100, misled=100), "drafts token 1[0-9]{2}, and the target has 128"),
        (HeadShape(reduced=100, misled=-100), "drafts token -[0-9]+, and the target has 128"),
    ],
)
def test_a_bad_head_for_a_real_target(
    zoo: Zoo, tmp_path: Path, shape: HeadShape, reason: str
) -> None:
    path = build_eagle3(tmp_path / "bad.gguf", zoo.dense.path, shape)
    with pytest.raises(DraftMisfit, match=reason) as caught:
        check_eagle3(read_parts(path), read_header(zoo.dense.path))
    assert caught.value.exit_code is ExitCode.DRAFT_MISFIT
    if len(shape.layers) != 3:
        with pytest.raises(ModelFileError):
            Model(path, head=True)
        return
    session = session_of(zoo.dense)
    head = Model(path, head=True)
    with pytest.raises(DraftMisfit, match=reason):
        Eagle3Drafter(head, session.context, DraftSettings(), n_threads=1)
    head.close()
    list(session.generate(request(bare_prompt(9), logit_bias=())))
    session.close()


@pytest.mark.parametrize(
    ("head", "target", "reason"),
    [
        (chat_file(), chat_file(), "not an EAGLE-3 head"),
        (eagle3_file(target_width=16, embeddings=True, output=True), chat_file(), "width 16"),
        (eagle3_file(), chat_file("gemma3"), "gemma3"),
        (eagle3_file(width=16, output=True), chat_file(), "no token embeddings"),
        (eagle3_file(width=16, embeddings=True), chat_file(), "no output"),
    ],
)
def test_a_misfit_is_told_from_the_headers(
    tmp_path: Path, head: object, target: object, reason: str
) -> None:
    ours = read_header(target.write(tmp_path / "target.gguf"))  # type: ignore[attr-defined]
    theirs = read_parts(head.write(tmp_path / "head.gguf"))  # type: ignore[attr-defined]
    with pytest.raises(DraftMisfit, match=reason):
        check_eagle3(theirs, ours)


def test_a_head_is_no_chat_model(zoo: Zoo) -> None:
    with pytest.raises(ModelFileError, match="not a chat model"):
        Model(zoo.head("random"))


def test_a_head_that_shares_weights_needs_its_target(zoo: Zoo) -> None:
    head = Model(zoo.head("random"), head=True)
    with pytest.raises(ContextSizeError, match="ctx_other"):
        Context(head, ContextSettings(n_ctx=64, n_threads=1), AbortFlag())
    head.close()


def test_the_factory_makes_one_from_a_file(zoo: Zoo) -> None:
    session = session_of(zoo.markov)
    wanted = DraftRequest(
        path=zoo.head("right"), kind=None, settings=DraftSettings(n_draft_max=3), pace=Pace.FIXED
    )
    session.set_drafter(open_drafter(wanted, zoo.markov, session))
    assert session.drafter.kind is DrafterKind.EAGLE3
    assert answer(zoo.markov, session, bare_prompt(20), max_tokens=13).acceptance_rate == 1.0
    session.close()
