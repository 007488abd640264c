from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.speculation.harness import plain_tokens, request, session_of, tokens_of
from engine.speculation.head_checks import (
    Turn,
    answer,
    assert_in_step,
    assert_like_fresh,
    bare_prompt,
    converse,
)
from models import tiny_mtp
from models.draft_files import chat_file, mtp_file
from models.tiny_llama import build_tiny_llama
from models.tiny_mtp import MtpWeights, build_mimo2, build_qwen35
from models.vocabulary import bare_vocabulary
from slipstream.chat.records import FinishReason
from slipstream.engine.events import DraftingStopped, Finished, PrefillProgress, TextRun
from slipstream.engine.gguf import read_header
from slipstream.engine.llama import ROLLBACK, AbortFlag, Context, ContextSettings, Model
from slipstream.engine.requests import DraftRequest, Pace
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings, NullDrafter
from slipstream.engine.speculation.factory import has_mtp, open_drafter
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.hidden_states import LAST, states
from slipstream.engine.speculation.mtp import MtpDrafter, check_mtp
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.errors import DraftMisfit, EngineError, ExitCode

DEPTHS = range(1, 9)
BUILDERS: dict[str, Callable[[Path, MtpWeights], Path]] = {
    "mimo2": build_mimo2,
    "qwen35": build_qwen35,
}


@dataclass
class Zoo:
    """Loads each model once."""

    folder: Path
    models: dict[str, Model]

    def __call__(self, name: str) -> Model:
        """Like "mimo2 right" or "mimo2 mixed 3" (heads)."""
        if name not in self.models:
            kind, weights, *heads = name.split()
            make = getattr(tiny_mtp, weights, MtpWeights)
            path = self.folder / f"{name}.gguf"
            self.models[name] = Model(BUILDERS[kind](path, make(*map(int, heads))))
        return self.models[name]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    zoo = Zoo(tmp_path_factory.mktemp("mtp"), {})
    yield zoo
    for model in zoo.models.values():
        model.close()


def built_in(model: Model, depth: int, **values: object):
    def make(session: GenerationSession) -> MtpDrafter:
        chosen = DraftSettings(n_draft_max=depth, **values)  # type: ignore[arg-type]
        return MtpDrafter(model, session.context, chosen, n_threads=1, owns_model=False)

    return make


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_right_heads_are_always_accepted(zoo: Zoo, kind: str, depth: int) -> None:
    model = zoo(f"{kind} right")
    session = session_of(model, built_in(model, depth), 16)
    wanted = 1 + 3 * (depth + 1)
    figures = answer(model, session, bare_prompt(40), max_tokens=wanted)
    assert figures.acceptance_by_position == (1.0,) * depth
    assert (figures.rounds, figures.plain_passes) == (3, 0)
    session.close()


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_wrong_heads_change_nothing(zoo: Zoo, kind: str, depth: int) -> None:
    model = zoo(f"{kind} wrong")
    session = session_of(model, built_in(model, depth), 33)
    figures = answer(model, session, bare_prompt(50))
    assert figures.acceptance_rate == 0.0
    assert figures.rounds >= 18
    session.close()


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("depth", DEPTHS)
def test_mixed_heads_are_accepted_in_part(zoo: Zoo, kind: str, depth: int) -> None:
    model = zoo(f"{kind} mixed")
    session = session_of(model, built_in(model, depth))
    figures = answer(model, session, bare_prompt(60), max_tokens=30)
    assert figures.acceptance_rate is not None
    assert 0.0 < figures.acceptance_rate < 1.0
    session.close()


@pytest.mark.parametrize("depth", DEPTHS)
def test_chained_heads_draft_one_token_each(zoo: Zoo, depth: int) -> None:
    model = zoo("mimo2 right 3")
    session = session_of(model, built_in(model, depth), 16)
    reach = min(depth, 3)
    figures = answer(model, session, bare_prompt(40), max_tokens=1 + 4 * (reach + 1))
    assert figures.acceptance_by_position == (1.0,) * reach
    assert figures.rounds == 4
    answer(model, session, bare_prompt(60), max_tokens=30)
    session.close()


@pytest.mark.parametrize("name", ["mimo2 echo", "qwen35 echo", "mimo2 echo 3"])
@pytest.mark.parametrize("n_batch", [10, 16, 64])
def test_the_states_are_in_step_with_the_tokens(zoo: Zoo, name: str, n_batch: int) -> None:
    """The state after the token before foretells the pending one, so that it is drafted again."""
    model = zoo(name)
    session = session_of(model, built_in(model, 3), n_batch)
    answer(model, session, bare_prompt(37), max_tokens=9)
    events = list(session.generate(request(bare_prompt(45), max_tokens=9, logit_bias=())))
    history = [*session.cache.tokens, tokens_of(events)[-1]]
    assert session.drafter.draft(history, 3, DraftGuide()).tokens == (history[-1],) * 3
    session.close()


@pytest.mark.parametrize(
    "name",
    [
        "mimo2 random",
        "mimo2 mixed",
        "mimo2 right",
        "qwen35 random",
        "qwen35 mixed",
        "mimo2 random 3",
        "mimo2 mixed 3",
    ],
)
@settings(deadline=None, derandomize=True, max_examples=8)
@given(
    turns=st.lists(
        st.tuples(st.integers(0, 120), st.integers(0, 15), st.integers(0, 6)),
        min_size=1,
        max_size=3,
    ),
    depth=st.integers(1, 8),
    n_batch=st.sampled_from([12, 33, 64, 512]),
)
def test_any_turns_equal_plain_decoding(
    zoo: Zoo, name: str, turns: list[Turn], depth: int, n_batch: int
) -> None:
    model = zoo(name)
    converse(model, built_in(model, depth), turns, depth=depth, n_batch=n_batch)


@pytest.mark.parametrize("name", ["mimo2 mixed", "qwen35 mixed", "mimo2 random"])
@pytest.mark.parametrize("seed", range(2))
def test_at_temperature_one_a_seed_gives_plain_decodings_text(
    zoo: Zoo, name: str, seed: int
) -> None:
    model = zoo(name)
    session = session_of(model, built_in(model, 4))
    hot = {"temperature": 1.0, "seed": seed, "max_tokens": 40}
    assert answer(model, session, bare_prompt(30), **hot).rounds > 0
    session.close()


@pytest.mark.parametrize("kind", BUILDERS)
def test_a_prompt_of_one_token(zoo: Zoo, kind: str) -> None:
    model = zoo(f"{kind} right")
    session = session_of(model, built_in(model, 4))
    for token in (5, 6):
        figures = answer(model, session, [token], max_tokens=11)
        assert figures.acceptance_rate == 1.0
    session.close()


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_next_turn_evaluates_only_what_is_new(zoo: Zoo, kind: str) -> None:
    model = zoo(f"{kind} mixed")
    session = session_of(model, built_in(model, 4))
    answer(model, session, bare_prompt(60), max_tokens=12)
    events = list(session.generate(request([*session.cache.tokens, 9, 8, 7], logit_bias=())))
    first = events[0]
    assert isinstance(first, PrefillProgress)
    assert first.total - first.cached == 3
    session.close()


def test_a_fork_far_back_evaluates_one_token_twice(zoo: Zoo) -> None:
    """The states of long ago are gone; the target's token before the fork brings its own back."""
    model = zoo("mimo2 random")
    make = built_in(model, 4)
    session = session_of(model, make)
    answer(model, session, bare_prompt(300), max_tokens=3)
    events = list(session.generate(request([*bare_prompt(100), 1, 2], logit_bias=())))
    first = events[0]
    assert isinstance(first, PrefillProgress)
    assert first.cached == 99
    assert_in_step(session)
    assert_like_fresh(model, session, make, tokens_of(events)[-1], 4)
    session.close()


def test_p_min_and_n_draft_min(zoo: Zoo) -> None:
    model = zoo("mimo2 right")
    session = session_of(model, built_in(model, 8, p_min=1.0))
    assert answer(model, session, bare_prompt(20)).drafted == 0
    session.set_drafter(built_in(model, 8, n_draft_min=8)(session))
    figures = answer(model, session, bare_prompt(30), max_tokens=7)
    assert (figures.rounds, figures.drafted) == (0, 0)
    session.close()


def test_chained_heads_shorten_a_draft_and_may_stop_early(zoo: Zoo) -> None:
    model = zoo("mimo2 right 3")
    session = session_of(model, built_in(model, 8, p_min=1.0))
    assert answer(model, session, bare_prompt(20)).drafted == 0
    session.set_drafter(built_in(model, 8, n_draft_min=4)(session))
    assert answer(model, session, bare_prompt(20)).drafted == 0
    session.close()


def test_a_hybrid_target_takes_back_as_much_as_it_can(zoo: Zoo) -> None:
    model = zoo("qwen35 wrong")
    session = session_of(model, built_in(model, 20))
    assert model.is_hybrid
    assert session.context.n_rs_seq == session.context.max_rollback == ROLLBACK
    figures = answer(model, session, bare_prompt(20))
    assert figures.drafted <= ROLLBACK * figures.rounds
    session.close()
    small = session_of(model, built_in(model, 20), 8)
    assert small.context.max_rollback == 6  # llama.cpp aborts unless n_ubatch > n_rs_seq + 1
    answer(model, small, bare_prompt(20))
    small.close()


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize("back", [1, 2, 4, 8])
def test_a_hybrid_goes_back_within_its_latest_batch_or_says_no(
    zoo: Zoo, size: int, back: int
) -> None:
    """llama.cpp says yes to all of these and is wrong where `back` reaches the batch's start."""
    model = zoo("qwen35 random")
    prompt = bare_prompt(30 + size)
    session = session_of(model)
    list(session.generate(request(prompt[:30], max_tokens=0)))
    session._batch.fill(prompt[30:], 30, all_outputs=True)
    session.context.decode(session._batch)
    possible = session.context.trim(len(prompt) - back)
    assert possible == (back < size)
    if possible:
        assert not session.context.trim(len(prompt) - back - 1), "only once"
        kept = prompt[:-back]
        session._batch.fill([7, 8, 9], len(kept), all_outputs=True)
        session.context.decode(session._batch)
        whole = session_of(model)
        list(whole.generate(request([*kept, 7, 8, 9], max_tokens=0)))
        for token in range(model.n_vocab):
            ours, theirs = session.context.logits(2)[token], whole.context.logits(-1)[token]
            assert ours == pytest.approx(theirs, abs=1e-2)
        whole.close()
    session.close()


def test_regenerating_with_a_hybrid_target_gives_the_same_answer(zoo: Zoo) -> None:
    model = zoo("qwen35 random")
    session = session_of(model, built_in(model, 4), 12)
    for _ in range(2):
        answer(model, session, bare_prompt(37), max_tokens=8)
    session.close()


def test_prompt_lookup_goes_no_further_than_a_hybrid_target_can_go_back(zoo: Zoo) -> None:
    model = zoo("qwen35 right")
    lookup = PromptLookupDrafter(DraftSettings(n_draft_max=30))
    session = session_of(model, lambda _: lookup)
    wanted = request(bare_prompt(40) * 2, max_tokens=60, logit_bias=())
    events = list(session.generate(wanted))
    assert max(e.drafted for e in events if isinstance(e, TextRun)) == ROLLBACK
    assert tokens_of(events) == plain_tokens(
        model, bare_prompt(40) * 2, max_tokens=60, logit_bias=()
    )
    session.close()


def test_a_target_without_rollback_is_refused(zoo: Zoo) -> None:
    model = zoo("qwen35 right")
    settings = ContextSettings(n_ctx=256, n_batch=32, n_threads=1)
    context = Context(model, settings, AbortFlag(), n_rs_seq=0)
    with pytest.raises(DraftMisfit, match="take back"):
        MtpDrafter(model, context, DraftSettings(), n_threads=1, owns_model=False)
    context.close()


def test_attention_alone_takes_back_anything(zoo: Zoo) -> None:
    session = session_of(zoo("mimo2 right"))
    assert session.context.max_rollback is None
    session.close()


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("at", [1, 3, 4, 6])
def test_the_second_answer_after_a_cancel(zoo: Zoo, kind: str, at: int) -> None:
    model = zoo(f"{kind} mixed")
    make = built_in(model, 4)
    session = session_of(model, make, 16)
    context = session.drafter._context  # type: ignore[attr-defined]
    decode, calls = context.decode, 0

    def cancelling(batch: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            session.cancel()
        decode(batch)

    context.decode = cancelling
    events = list(session.generate(request(bare_prompt(40), logit_bias=())))
    context.decode = decode
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED
    assert not any(isinstance(event, DraftingStopped) for event in events)
    figures = answer(model, session, bare_prompt(50), max_tokens=40)
    assert figures.accepted > 0
    assert_like_fresh(model, session, make, 7, 4)
    session.close()


def test_a_separate_file_of_heads(zoo: Zoo, tmp_path: Path) -> None:
    target = zoo("mimo2 right")
    path = build_mimo2(tmp_path / "heads.gguf", tiny_mtp.right(), only_heads=True)
    heads = Model(path)
    session = session_of(
        target,
        lambda s: MtpDrafter(
            heads, s.context, DraftSettings(n_draft_max=3), n_threads=1, owns_model=True
        ),
    )
    assert answer(target, session, bare_prompt(30), max_tokens=13).acceptance_rate == 1.0
    session.close()
    with pytest.raises(EngineError):
        assert heads.handle


def test_closing_gives_the_states_up_and_the_target_goes_on(zoo: Zoo) -> None:
    model = zoo("mimo2 right")
    session = session_of(model, built_in(model, 4))
    drafter = session.drafter
    answer(model, session, bare_prompt(20))
    session.set_drafter(NullDrafter())
    drafter.close()
    list(session.generate(request(bare_prompt(25), logit_bias=())))
    with pytest.raises(EngineError, match="no hidden states"):
        states(session.context, LAST, 1, model.n_embd_out)
    session.set_drafter(built_in(model, 4)(session))
    figures = answer(model, session, bare_prompt(30), max_tokens=11)
    assert figures.acceptance_rate == 1.0
    drafter = session.drafter
    session.close()
    drafter.close()
    assert model.handle


def test_what_the_drafter_says_of_itself(zoo: Zoo) -> None:
    model = zoo("mimo2 right")
    session = session_of(model, built_in(model, 4))
    drafter = session.drafter
    assert isinstance(drafter, MtpDrafter)
    assert drafter.kind is DrafterKind.MTP
    assert (drafter.need_embd, drafter.need_embd_pre_norm) == (False, True)
    session.close()


def test_a_step_out_of_order_is_an_error_and_not_a_wrong_draft(zoo: Zoo) -> None:
    model = zoo("mimo2 right")
    session = session_of(model, built_in(model, 4))
    answer(model, session, bare_prompt(20))
    drafter = session.drafter
    with pytest.raises(EngineError, match="lost track"):
        drafter.process([1], 100)
    with pytest.raises(EngineError, match="lost track"):
        drafter.draft(bare_prompt(90), 4, DraftGuide())
    with pytest.raises(EngineError, match="does not know"):
        drafter.process([5000], 20)
    session.close()


@pytest.mark.parametrize(
    ("heads", "target", "reason"),
    [
        (mtp_file(width=16), chat_file("mimo2"), "width 16"),
        (mtp_file("step35"), chat_file("mimo2"), "step35"),
        (chat_file("mimo2"), chat_file("mimo2"), "no MTP layer"),
        (chat_file("qwen35", mtp_layers=2), chat_file("qwen35", mtp_layers=2), "one MTP layer"),
        (mtp_file("gemma3"), chat_file("gemma3"), "gemma3"),
        (chat_file("gemma4-assistant"), chat_file("gemma4"), "share the memory"),
    ],
)
def test_a_misfit_is_told_from_the_headers(
    tmp_path: Path, heads: object, target: object, reason: str
) -> None:
    ours = read_header(target.write(tmp_path / "target.gguf"))  # type: ignore[attr-defined]
    theirs = read_header(heads.write(tmp_path / "heads.gguf"))  # type: ignore[attr-defined]
    with pytest.raises(DraftMisfit, match=reason) as caught:
        check_mtp(theirs, ours)
    assert caught.value.exit_code is ExitCode.DRAFT_MISFIT


def test_a_model_without_heads_is_refused_and_a_context_for_them_too(tmp_path: Path) -> None:
    model = Model(build_tiny_llama(tmp_path / "llama.gguf", vocabulary=bare_vocabulary()))
    session = session_of(model)
    with pytest.raises(DraftMisfit):
        built_in(model, 4)(session)
    with pytest.raises(EngineError, match="MTP"):
        Context(model, ContextSettings(n_ctx=64), AbortFlag(), mtp=True)
    session.close()
    model.close()


def test_heads_that_were_not_loaded_are_refused_instead_of_an_abort(tmp_path: Path) -> None:
    model = Model(build_mimo2(tmp_path / "mimo2.gguf", tiny_mtp.right()), load_mtp=False)
    assert (model.n_layer, model.n_layer_nextn) == (2, 1)
    session = session_of(model)
    with pytest.raises(EngineError, match="without MTP"):
        built_in(model, 4)(session)
    session.close()
    model.close()


def test_the_factory_makes_one_from_the_target_or_a_file(zoo: Zoo, tmp_path: Path) -> None:
    model = zoo("mimo2 right")
    path = build_mimo2(tmp_path / "heads.gguf", tiny_mtp.right(), only_heads=True)
    session = session_of(model)
    for wanted in (None, path):
        request = DraftRequest(
            path=wanted, kind=None, settings=DraftSettings(n_draft_max=3), pace=Pace.FIXED
        )
        session.set_drafter(open_drafter(request, model, session))
        assert session.drafter.kind is DrafterKind.MTP
        assert answer(model, session, bare_prompt(20), max_tokens=13).acceptance_rate == 1.0
    session.close()


@pytest.mark.parametrize("part", [1, 2, 3])
def test_heads_in_the_last_part_of_a_split_model(tmp_path: Path, part: int) -> None:
    build_mimo2(tmp_path / "m.gguf", tiny_mtp.right(), part_size=12)
    path = tmp_path / f"m-{part:05d}-of-00003.gguf"
    tensors = {tensor.name for tensor in read_header(tmp_path / "m-00003-of-00003.gguf").tensors}
    assert "blk.2.nextn.eh_proj.weight" in tensors
    model = Model(path)
    session = session_of(model)
    assert model.loaded_mtp
    assert has_mtp(model)
    request = DraftRequest(
        path=None, kind=None, settings=DraftSettings(n_draft_max=3), pace=Pace.FIXED
    )
    session.set_drafter(open_drafter(request, model, session))
    assert session.drafter.kind is DrafterKind.MTP
    assert answer(model, session, bare_prompt(20), max_tokens=13).acceptance_rate == 1.0
    session.close()
    model.close()
