"""Pacing in made-up worlds where costs and acceptance are known: never slower, near the best."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from slipstream.engine.speculation.acceptance_model import AcceptanceModel
from slipstream.engine.speculation.calibration import with_guesses
from slipstream.engine.speculation.cost_model import CostModel, CostProfile
from slipstream.engine.speculation.drafter import (
    Draft,
    Drafter,
    DrafterKind,
    DraftSettings,
    TargetPass,
)
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.paced_drafter import PacedDrafter, PaceProfile
from slipstream.engine.speculation.pacer import Ledger, Pacer
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter

KIND = DrafterKind.DRAFT_MODEL


@dataclass
class World:
    """A machine and a text. Seconds; `accepts` is the chance of each drafted token."""

    passes: Callable[[int], float]
    step: float
    accepts: float
    seed: int = 0
    noise: float = 0.0

    def __post_init__(self) -> None:
        self.now = 0.0
        self._chance = random.Random(self.seed)

    def spend(self, seconds: float) -> float:
        taken = seconds * (1 + self.noise * self._chance.random())
        self.now += taken
        return taken

    def stands(self) -> bool:
        return self._chance.random() < self.accepts


class Simulated(Drafter):
    """Costs time, and is as sure of a token as it is right on average."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.drafts = 0

    @property
    def kind(self) -> DrafterKind:
        return KIND

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        self.drafts += 1
        count = 0
        while count < limit:
            self.world.spend(self.world.step)
            count += 1
            if not guide.goes_on(self.world.accepts):
                break
        return Draft(tuple(range(count)), KIND, (self.world.accepts,) * count)


def profile_of(world: World, rows: int = 17) -> PaceProfile:
    return PaceProfile(CostProfile({n: world.passes(n) for n in range(1, rows + 1)}))


def paced(world: World, profile: PaceProfile | None = None) -> PacedDrafter:
    return PacedDrafter(
        Simulated(world),
        None,
        profile or profile_of(world),
        DraftSettings(n_draft_max=16),
        clock=lambda: world.now,
    )


def play(world: World, drafter: PacedDrafter, tokens: int) -> list[int]:
    """Let the drafter write so many tokens; returns the depth of every round."""
    depths, written = [], 0
    while written < tokens:
        draft = drafter.draft([0], 16, DraftGuide())
        count = len(draft.tokens)
        seconds = world.spend(world.passes(count + 1))
        accepted = 0
        while accepted < count and world.stands():
            accepted += 1
        drafter.accept(accepted)
        drafter.observe(TargetPass(count + 1, seconds, 0.0, accepted, (1,) * (accepted + 1)))
        depths.append(count)
        written += accepted + 1
    return depths


def best_fixed(world: World, longest: int = 16) -> tuple[int, float]:
    """The depth with the fewest seconds a token, and those, by the formula."""
    rates = []
    for depth in range(longest + 1):
        expected = sum(world.accepts**index for index in range(depth + 1))
        rates.append((world.passes(depth + 1) + depth * world.step) / expected)
    best = min(range(longest + 1), key=rates.__getitem__)
    return best, rates[best]


def linear(rise: float) -> Callable[[int], float]:
    return lambda rows: 0.020 * (1 + rise * (rows - 1))


def stepped(rows: int) -> float:
    """Four rows cost less than three, as with repacked weights."""
    return 0.020 * {1: 1.0, 2: 1.5, 3: 2.1, 4: 1.8}.get(rows, 1.8 + 0.3 * (rows - 4))


WORLDS = [
    World(linear(rise), step, accepts, seed=number)
    for number, (rise, step, accepts) in enumerate(
        (rise, step, accepts)
        for rise in (0.05, 0.3, 0.9)
        for step in (0.0005, 0.004, 0.018)
        for accepts in (0.0, 0.3, 0.6, 0.8, 0.95)
    )
] + [World(stepped, 0.002, accepts, seed=90) for accepts in (0.0, 0.5, 0.7, 0.9)]


def named(world: World) -> str:
    rise = world.passes(2) / world.passes(1) - 1
    return f"rise {rise:.2f} step {world.step} accepts {world.accepts}"


@pytest.mark.parametrize("world", WORLDS, ids=named)
def test_never_slower_than_plain_and_near_the_best_depth(world: World) -> None:
    world = replace(world)
    drafter = paced(world)
    play(world, drafter, 1_000)  # learns
    begun = world.now
    play(world, drafter, 4_000)
    each = (world.now - begun) / 4_000
    assert each <= world.passes(1) / 0.98
    assert each <= best_fixed(world)[1] / 0.93


@pytest.mark.parametrize("world", WORLDS, ids=named)
def test_learning_costs_little(world: World) -> None:
    world = replace(world)
    play(world, paced(world), 200)
    assert world.now <= 200 * world.passes(1) * 1.035


@pytest.mark.parametrize("accepts", [0.0, 0.6, 0.95])
def test_a_noisy_machine_changes_little(accepts: float) -> None:
    world = World(linear(0.3), 0.004, accepts, seed=5, noise=0.6)
    drafter = paced(world)
    play(world, drafter, 1_000)
    begun = world.now
    play(world, drafter, 4_000)
    mean = 1 + world.noise / 2
    each = (world.now - begun) / 4_000 / mean
    assert each <= world.passes(1) / 0.97
    assert each <= best_fixed(world)[1] / 0.88


def test_what_cannot_pay_is_hardly_tried_and_what_pays_is_used() -> None:
    hopeless = World(linear(0.9), 0.030, 0.9)
    drafter = paced(hopeless)
    depths = play(hopeless, drafter, 2_000)
    assert sum(map(bool, depths)) <= 3
    good = World(linear(0.05), 0.001, 0.9)
    depths = play(good, paced(good), 2_000)
    assert sum(depths) / len(depths) > 4


def test_a_text_that_changes_is_noticed_both_ways() -> None:
    world = World(linear(0.2), 0.002, 0.05)
    drafter = paced(world)
    assert sum(map(bool, play(world, drafter, 1_500)[-500:])) < 30
    world.accepts = 0.95
    depths = play(world, drafter, 4_000)
    assert sum(map(bool, depths[-100:])) > 90
    world.accepts = 0.05
    depths = play(world, drafter, 1_500)
    assert sum(map(bool, depths[-500:])) < 40


def test_a_machine_that_slows_down_is_followed() -> None:
    world = World(linear(0.3), 0.002, 0.8)
    drafter = paced(world)
    play(world, drafter, 500)
    world.passes = lambda rows: 3 * linear(0.3)(rows)
    play(world, drafter, 500)
    assert drafter.pacer.plain_seconds == pytest.approx(0.060, rel=0.1)


def test_a_plain_round_is_seen_from_time_to_time() -> None:
    world = World(linear(0.05), 0.001, 0.97)
    drafter = paced(world)
    depths = play(world, drafter, 3_000)
    assert depths.count(0) >= len(depths) // 80
    age = drafter.status().plain_age_seconds
    assert age is not None
    assert age < 64 * world.passes(17)


def test_the_status_tells_depth_and_gain() -> None:
    world = World(linear(0.05), 0.001, 0.9)
    drafter = paced(world)
    assert drafter.status().gain is None
    play(world, drafter, 1_000)
    status = drafter.status()
    assert status.gain == pytest.approx(world.passes(1) / best_fixed(world)[1], rel=0.15)


def test_a_long_catch_up_must_pay_within_the_answer() -> None:
    costs = CostModel(CostProfile({1: 0.02, 2: 0.021, 3: 0.022}, {KIND: 0.001}, {KIND: 0.01}))
    pacer = Pacer(costs, {})
    assert pacer.depth(KIND, 2, behind=1, tokens_left=500) == 2
    assert pacer.depth(KIND, 2, behind=100_000, tokens_left=500) == 0
    assert pacer.depth(KIND, 2, behind=100, tokens_left=10) == 0


def test_nothing_is_drafted_before_a_plain_pass_is_known() -> None:
    pacer = Pacer(CostModel(CostProfile()), {})
    assert pacer.depth(KIND, 4, behind=0, tokens_left=500) == 0


def test_costs_that_were_not_measured_are_learnt_from_the_first_passes() -> None:
    pacer = Pacer(CostModel(CostProfile()), {})
    for _ in range(3):
        pacer.observe(TargetPass(1, 0.01, 0.0, 0, (1,)), DrafterKind.NONE, 0.0)
    assert pacer.costs.pass_seconds(1) == pytest.approx(0.01)


def test_a_draft_that_came_to_nothing_is_paid_by_who_made_it() -> None:
    """Drafts shorter than allowed are dropped; what they cost counts all the same."""

    class Short(Simulated):
        def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
            super().draft(history, limit, guide)
            return Draft()

    world = World(linear(0.3), 0.02, 0.0)
    short = Short(world)
    drafter = PacedDrafter(
        short, None, profile_of(world), DraftSettings(n_draft_max=16), clock=lambda: world.now
    )
    play(world, drafter, 400)
    assert short.drafts < 12
    assert world.now < 400 * world.passes(1) * 1.035


def test_the_ledger_bounds_the_loss() -> None:
    ledger = Ledger()
    ledger.add("mtp", spent=10.0, plain=10.0)
    assert ledger.left("mtp", credit=0.0, share=0.01) == pytest.approx(0.1)
    assert ledger.left("mtp", credit=0.15, share=0.01) == pytest.approx(0.25)
    ledger.add("mtp", spent=3.0, plain=2.0)
    assert ledger.left("mtp", credit=0.0, share=0.01) < -0.8


def test_what_an_answer_has_won_may_be_lost_in_it_and_in_no_other() -> None:
    ledger = Ledger()
    ledger.add("mtp", spent=1.0, plain=2.0)
    ledger.add("eagle3", spent=2.0, plain=1.0)
    assert ledger.left("mtp", credit=0.0, share=0.01) > 0.9
    ledger.begin_answer()
    assert ledger.left("mtp", credit=0.0, share=0.01) == pytest.approx(0.01 * ledger.elapsed)
    assert ledger.left("eagle3", credit=0.0, share=0.01) < -0.9


def test_each_way_to_draft_has_an_account_of_its_own() -> None:
    ledger = Ledger()
    ledger.add("draft-model", spent=10.0, plain=5.0)
    assert ledger.left("draft-model", credit=0.0, share=0.01) < 0
    assert ledger.left("prompt-lookup", credit=0.0, share=0.01) > 0.05


def test_what_asking_costs_is_not_held_against_what_was_asked() -> None:
    """Looking a text up takes some time in every round, and is worth it once a match comes."""
    pacer = Pacer(CostModel(CostProfile({1: 0.01, 4: 0.012})), {})
    lookup = DrafterKind.PROMPT_LOOKUP
    for _ in range(20):
        pacer.acceptance(lookup).observe((0.9,) * 3, 3)
    pacer.observe(TargetPass(4, 0.012, 0.0, 0, (1,)), lookup, 0.0)  # one draft was refused
    for _ in range(300):
        pacer.observe(TargetPass(1, 0.01, 0.0, 0, (1,)), DrafterKind.NONE, 0.0002)
    assert pacer.worth_unasked(lookup, (0.9,) * 3) == 3


def looked_up(world: World, pacer: Pacer) -> int:
    """A draft that costs nothing and turns out right; returns its depth."""
    count = pacer.worth_unasked(DrafterKind.PROMPT_LOOKUP, (0.9,) * 16)
    rows = count + 1
    seen = TargetPass(rows, world.passes(rows), 0.0, count, (1,) * rows)
    pacer.observe(seen, DrafterKind.PROMPT_LOOKUP, 0.0)
    return count


@pytest.mark.parametrize(("steepness", "first"), [(0.5, 12), (0.15, 16)])
def test_drafts_that_cost_nothing_grow_as_they_turn_out_right(steepness: float, first: int) -> None:
    """Two passes may be lost at first, and six on what surely pays: where sixteen rows cost as
    much as eight, that is not enough."""
    world = World(linear(steepness), 0.0, 1.0)
    pacer = Pacer(CostModel(profile_of(world).costs), {})
    for _ in range(100):
        pacer.acceptance(DrafterKind.PROMPT_LOOKUP).observe((0.9,) * 16, 16)
    pacer.observe(TargetPass(1, world.passes(1), 0.0, 0, (1,)), DrafterKind.NONE, 0.0)
    depths = [looked_up(world, pacer) for _ in range(8)]
    assert depths[0] == first
    assert depths == sorted(depths)
    assert depths[-1] == 16
    pacer.begin_answer()
    assert looked_up(world, pacer) < 16 or first == 16


def test_a_sure_draft_that_is_refused_stops_drafting_for_long() -> None:
    world = World(linear(0.5), 0.0, 1.0)
    pacer = Pacer(CostModel(profile_of(world).costs), {})
    for _ in range(100):
        pacer.acceptance(DrafterKind.PROMPT_LOOKUP).observe((0.9,) * 16, 16)
    plain = TargetPass(1, world.passes(1), 0.0, 0, (1,))
    pacer.observe(plain, DrafterKind.NONE, 0.0)
    count = pacer.worth_unasked(DrafterKind.PROMPT_LOOKUP, (0.9,) * 16)
    refused = TargetPass(count + 1, world.passes(count + 1), 0.0, 0, (1,))
    pacer.observe(refused, DrafterKind.PROMPT_LOOKUP, 0.0)
    for _ in range(100):
        assert pacer.worth_unasked(DrafterKind.PROMPT_LOOKUP, (0.9,) * 16) == 0
        pacer.observe(plain, DrafterKind.NONE, 0.0)


def test_a_first_guess_stakes_half_of_what_may_be_lost() -> None:
    """At 77 % a token, a few of them are expected to pay, but not surely."""
    world = World(linear(0.5), 0.0, 0.77, seed=3)
    pacer = Pacer(CostModel(profile_of(world).costs), {})
    for _ in range(400):
        accepted = next((at for at in range(16) if not world.stands()), 16)
        pacer.acceptance(DrafterKind.PROMPT_LOOKUP).observe((0.9,) * 16, accepted)
    pacer.observe(TargetPass(1, world.passes(1), 0.0, 0, (1,)), DrafterKind.NONE, 0.0)
    assert pacer.worth(DrafterKind.PROMPT_LOOKUP, (0.9,) * 16)[0] > 1
    assert 1 <= looked_up(world, pacer) <= 3


def test_a_small_predicted_gain_is_taken_for_none() -> None:
    pacer = Pacer(CostModel(CostProfile({1: 0.0100, 2: 0.0178})), {})
    lookup = DrafterKind.PROMPT_LOOKUP
    for _ in range(400):  # 80 % are accepted: 1.8 tokens for 1.78 passes
        pacer.acceptance(lookup).observe((0.5,), 1)
        pacer.acceptance(lookup).observe((0.5,), 1)
        pacer.acceptance(lookup).observe((0.5,), 1)
        pacer.acceptance(lookup).observe((0.5,), 1)
        pacer.acceptance(lookup).observe((0.5,), 0)
    assert pacer.worth_unasked(lookup, (0.5,)) == 0


def test_passes_between_measured_ones_are_interpolated() -> None:
    costs = CostModel(CostProfile({1: 1.0, 2: 1.5, 4: 2.5}))
    assert costs.pass_seconds(3) == pytest.approx(2.0)
    assert costs.pass_seconds(6) == pytest.approx(3.5)
    costs.observe_pass(4, 100.0)  # something interrupted it
    assert costs.pass_seconds(4) == pytest.approx(2.5)


def test_acceptance_is_learnt_by_position_and_confidence() -> None:
    model = AcceptanceModel()
    assert model.at_confidence(0.95) > model.at_confidence(0.15)
    for _ in range(200):
        model.observe((0.95, 0.15), 1)
    assert model.at_position(0) > 0.9
    assert model.at_position(1) < 0.1
    assert model.at_position(5) < 0.2  # never seen: as the one before
    assert model.at_confidence(0.95) > 0.9
    assert model.at_confidence(0.15) < 0.1
    again = AcceptanceModel(model.profile())
    assert again.at_confidence(0.95) == model.at_confidence(0.95)
    assert model.at_best(1) > model.at_position(1)


def test_the_chance_of_a_draft_is_that_of_all_its_tokens() -> None:
    model = AcceptanceModel()
    for accepted in (3, 2, 3, 0, 1, 3, 3):
        model.observe((0.9, 0.4, 0.9), accepted)
    first = model.at_confidence(0.9)
    second = first * (model.at_confidence(0.4) + model.at_position(1)) / 2
    third = second * (model.at_confidence(0.9) + model.at_position(2)) / 2
    assert model.chances((0.9, 0.4, 0.9)) == pytest.approx([first, second, third])


def test_a_refused_token_says_nothing_of_those_behind_it() -> None:
    model = AcceptanceModel()
    before = model.at_position(2)
    for _ in range(50):
        model.observe((0.5, 0.5, 0.5), 0)
    assert model.profile().positions.keys() == {0}
    assert model.at_position(2) < before


class Reader(Simulated):
    """Has read nothing yet, and reading takes time."""

    def __init__(self, world: World, each: float) -> None:
        super().__init__(world)
        self.each = each
        self.read = 0
        self.processed = 0

    def behind(self, length: int) -> int:
        return length - self.read

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        self.processed += len(tokens)

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        self.world.spend(self.each * self.behind(len(history)))
        self.read = len(history)
        return super().draft(history, limit, guide)


@pytest.mark.parametrize("pays", [False, True])
def test_a_long_conversation_is_read_only_for_a_draft_that_pays(pays: bool) -> None:
    """By a guess from the sizes of both files, before the draft was ever tried."""
    world = World(linear(0.3), 0.001 if pays else 0.018, 0.9)
    reader = Reader(world, 0.0001)
    known = profile_of(world).costs
    costs = with_guesses(known, KIND, size=0.05 if pays else 0.9)
    assert costs.steps[KIND] == pytest.approx(0.020 * (0.05 if pays else 0.9))
    drafter = PacedDrafter(
        reader, None, PaceProfile(costs), DraftSettings(n_draft_max=16), clock=lambda: world.now
    )
    drafter.process(range(1_000), 0)
    assert reader.processed == 0  # it can catch up later
    draft = drafter.draft(range(1_000), 500, DraftGuide())
    assert bool(draft.tokens) is pays
    assert reader.read == (1_000 if pays else 0)


def test_what_is_cut_counts_as_drafted() -> None:
    """Cheap to draft, dear to verify: the tail is left out, and told."""
    world = World(lambda rows: 0.02 * (1 + 0.6 * max(0, rows - 3)), 0.0001, 0.9)

    class Stubborn(Simulated):
        def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
            return Draft(tuple(range(limit)), KIND, (0.9,) * limit)

    drafter = PacedDrafter(
        Stubborn(world), None, profile_of(world), DraftSettings(n_draft_max=8),
        clock=lambda: world.now,
    )  # fmt: skip
    draft = drafter.draft([0], 100, DraftGuide())
    assert 1 <= len(draft.tokens) < 8
    assert len(draft.tokens) + draft.cut == 8


def lookup_only(world: World) -> PacedDrafter:
    settings = DraftSettings(n_draft_max=16)
    return PacedDrafter(
        None,
        PromptLookupDrafter(settings),
        profile_of(world),
        settings,
        clock=lambda: world.now,
    )


def write(world: World, drafter: PacedDrafter, text: Sequence[int]) -> list[int]:
    """The target writes just this text; returns the depth of every round."""
    history, depths = [text[0]], []
    drafter.begin(0, 0)
    while len(history) < len(text):
        limit = min(16, len(text) - len(history))
        draft = drafter.draft(history, limit, DraftGuide())
        coming = list(text[len(history) :])
        accepted = 0
        while accepted < len(draft.tokens) and draft.tokens[accepted] == coming[accepted]:
            accepted += 1
        emitted = tuple(coming[: accepted + 1])
        rows = len(draft.tokens) + 1
        seconds = world.spend(world.passes(rows))
        drafter.accept(accepted)
        drafter.observe(TargetPass(rows, seconds, 0.0, min(accepted, len(emitted)), emitted))
        history += emitted
        depths.append(len(draft.tokens))
    return depths


def test_prompt_lookup_learns_without_being_verified() -> None:
    """Where matches mislead, it stops; it finds out that they hold again at no cost."""
    world = World(linear(0.6), 0.0, 0.0)
    drafter = lookup_only(world)
    chance = random.Random(3)
    misleading: list[int] = []
    for _ in range(120):  # three known tokens, and something else each time
        misleading += [1, 2, 3, chance.randint(10, 5_000), chance.randint(10, 5_000)]
    write(world, drafter, misleading)
    begun = world.now
    depths = write(world, drafter, misleading[50:] + misleading[:50])
    assert world.now - begun <= 1.02 * world.passes(1) * len(misleading)
    story = [chance.randint(10, 5_000) for _ in range(60)]
    depths = write(world, drafter, story * 6)
    assert sum(depths[-8:]) > 60


def test_what_was_learnt_is_kept_when_it_is_closed() -> None:
    world = World(linear(0.3), 0.004, 0.6)
    kept: list[PaceProfile] = []
    drafter = PacedDrafter(
        Simulated(world), None, profile_of(world), DraftSettings(), keep=kept.append,
        clock=lambda: world.now,
    )  # fmt: skip
    drafter.close()
    assert kept == []  # nothing was learnt
    play(world, drafter, 300)
    drafter.close()
    (profile,) = kept
    assert profile.costs.steps[KIND] == pytest.approx(0.004, rel=0.01)
    begun = world.now
    play(world, paced(world, profile), 200)
    assert world.now - begun <= 200 * world.passes(1) * 1.01
