"""Drafts only as far as it pays: prompt lookup where the text repeats, else another drafter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from slipstream.engine.speculation.acceptance_model import AcceptanceProfile
from slipstream.engine.speculation.cost_model import CostModel, CostProfile
from slipstream.engine.speculation.drafter import (
    Draft,
    Drafter,
    DrafterKind,
    DrafterState,
    DraftSettings,
    PaceStatus,
    TargetPass,
)
from slipstream.engine.speculation.guide import DraftGuide, Logits
from slipstream.engine.speculation.pacer import Pacer, acceptance_model
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter

_KEPT_AFTER = 32  # rounds; what was learnt of fewer waits for the next answer
_TOLD_EVERY = 8  # rounds; nobody reads faster
_MANY_BEHIND = 16  # tokens; fewer are part of a draft's first step
_LOOKUP = DrafterKind.PROMPT_LOOKUP


@dataclass(frozen=True, slots=True)
class PaceProfile:
    """What was learnt of a pair of models on a machine, to begin with the next time."""

    costs: CostProfile = field(default_factory=CostProfile)
    acceptance: dict[str, AcceptanceProfile] = field(default_factory=dict)


class PacedDrafter(Drafter):
    """Asks its drafters and a pacer each round.

    Prompt lookup costs nothing to ask, so it also learns from drafts that were not verified: what
    the target wrote by itself tells whether they were right.
    """

    def __init__(
        self,
        main: Drafter | None,
        lookup: PromptLookupDrafter | None,
        profile: PaceProfile,
        settings: DraftSettings,
        *,
        keep: Callable[[PaceProfile], None] = lambda profile: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._main = main
        self._lookup = lookup
        self._settings = settings
        self._keep = keep
        self._rounds = 0  # since what was learnt was kept
        self._clock = clock
        self.pacer = Pacer(
            CostModel(profile.costs),
            {kind: acceptance_model(kind, kept) for kind, kept in profile.acceptance.items()},
        )
        self._draft = Draft()  # of the present round
        self._draft_seconds = 0.0
        self._foreseen: tuple[int, ...] = ()  # what prompt lookup expected and nobody verified
        self._foreseen_at = 0  # how much of it came true
        self._foreseen_confidences: tuple[float, ...] = ()
        self._plain_at: float | None = None  # when a plain round was seen last
        self._depth = 0
        self._told, self._told_at = PaceStatus(0, None, None, None), -_TOLD_EVERY

    @property
    def kind(self) -> DrafterKind:
        """The main drafter's; prompt lookup's where there is no other."""
        return self._main.kind if self._main is not None else _LOOKUP

    @property
    def looks_up(self) -> bool:
        """Whether the text itself is asked first."""
        return self._lookup is not None

    def profile(self) -> PaceProfile:
        """What was learnt so far."""
        kinds = [kind for kind in (self.kind, _LOOKUP) if kind is not DrafterKind.NONE]
        return PaceProfile(
            self.pacer.costs.profile(),
            {str(kind): self.pacer.acceptance(kind).profile() for kind in kinds},
        )

    def status(self) -> PaceStatus:
        """What the pacer does now; renewed every few rounds, and whenever the depth changes."""
        if self._rounds - self._told_at >= _TOLD_EVERY or self._told.depth != self._depth:
            self._told_at = self._rounds
            age = None if self._plain_at is None else self._clock() - self._plain_at
            pacer = self.pacer
            self._told = PaceStatus(self._depth, pacer.measured_gain, pacer.predicted_gain, age)
        return self._told

    def configure(self, settings: DraftSettings) -> None:
        """Take other settings; `n_draft_max` is the longest draft ever made."""
        self._settings = settings
        for drafter in (self._main, self._lookup):
            if drafter is not None:
                drafter.configure(settings)

    def begin(self, cached: int, unchanged: int) -> int:
        """Both forget what does not stand; the main drafter may ask to see some again."""
        self._forget_foreseen()
        self.pacer.begin_answer()
        if self._rounds >= _KEPT_AFTER:
            self._keep_profile()
        if self._lookup is not None:
            self._lookup.begin(cached, unchanged)
        return cached if self._main is None else self._main.begin(cached, unchanged)

    @property
    def needs_all_tokens(self) -> bool:
        """As the main drafter needs."""
        return self._main is not None and self._main.needs_all_tokens

    def save(self, most_bytes: int) -> DrafterState | None:
        """The main drafter's state; prompt lookup reads the history anew."""
        return None if self._main is None else self._main.save(most_bytes)

    def restore(self, state: DrafterState) -> None:
        """Bring the main drafter back; prompt lookup forgets what it has read."""
        if self._lookup is not None:
            self._lookup.begin(0, 0)
        if self._main is not None:
            self._main.restore(state)

    def process(self, tokens: Sequence[int], first_position: int) -> None:
        """Let a main drafter follow that cannot catch up later.

        Another one, which may never be asked, evaluates what it lacks when it first drafts.
        """
        if self._main is not None and self._main.needs_all_tokens:
            self._main.process(tokens, first_position)

    def draft(self, history: Sequence[int], limit: int, guide: DraftGuide) -> Draft:
        """The better of what the text and the main drafter offer, or nothing where neither pays."""
        begun = self._clock()
        self._draft = self._chosen(history, limit, guide)
        self._draft_seconds = self._clock() - begun
        self._depth = len(self._draft.tokens)
        return self._draft

    def _chosen(self, history: Sequence[int], room: int, guide: DraftGuide) -> Draft:
        pacer, limit = self.pacer, min(room, self._settings.n_draft_max)
        found = Draft()
        if self._lookup is not None:
            found = self._lookup.draft(history, limit, guide)
        if found.tokens and pacer.costs.is_known:
            count = pacer.worth_unasked(_LOOKUP, found.confidences)
            if count:
                self._forget_foreseen()
                return Draft(found.tokens[:count], _LOOKUP, found.confidences[:count])
        if found.tokens and not self._foreseen:
            self._foreseen, self._foreseen_at = found.tokens, 0
            self._foreseen_confidences = found.confidences
        return self._drafted(history, limit, room, guide)

    def _drafted(self, history: Sequence[int], limit: int, room: int, guide: DraftGuide) -> Draft:
        """A draft of the main drafter, cut where the rest does not pay.

        At most `room` tokens are still wanted or fit.
        """
        main, pacer = self._main, self.pacer
        if main is None:
            return Draft()
        behind = main.behind(len(history))
        depth = pacer.depth(main.kind, limit, behind, room)
        if depth < max(1, self._settings.n_draft_min):
            return Draft()
        begun = self._clock()
        draft = main.draft(history, depth, _PacedGuide(guide, pacer, main.kind, depth))
        draft = replace(draft, kind=main.kind)  # also of an empty one: what it cost is its own
        self._note_cost(main.kind, len(draft.tokens), behind, self._clock() - begun)
        if depth == 1:
            return draft  # one token is drafted to learn, whether it pays or not
        if guide.keeps(len(draft.tokens), len(draft.tokens) + 1):
            return draft  # tokens were drawn, and cutting them by what followed would be unfair
        count, _ = pacer.worth(main.kind, draft.confidences)
        cut = len(draft.tokens) - count
        return Draft(draft.tokens[:count], main.kind, draft.confidences[:count], cut)

    def _note_cost(self, kind: DrafterKind, drafted: int, behind: int, seconds: float) -> None:
        steps = max(1, drafted)
        if behind < _MANY_BEHIND:
            self.pacer.costs.observe_step(kind, seconds / steps)
        else:
            rest = seconds - steps * self.pacer.costs.step_seconds(kind)
            self.pacer.costs.observe_catch_up(kind, rest / behind)

    def accept(self, count: int) -> None:
        """Tell the main drafter what stands of its draft."""
        if self._main is not None:
            own = self._draft.tokens and self._draft.kind is self._main.kind
            self._main.accept(count if own else 0)

    def observe(self, target_pass: TargetPass) -> None:
        """Learn from the round."""
        draft, self._draft = self._draft, Draft()
        self._rounds += 1
        if draft.tokens and draft.kind is not None:
            self.pacer.acceptance(draft.kind).observe(draft.confidences, target_pass.accepted)
        if target_pass.rows == 1:
            self._plain_at = self._clock()
        kind = draft.kind or DrafterKind.NONE
        self.pacer.observe(target_pass, kind, self._draft_seconds)
        self._draft_seconds = 0.0
        self._compare_foreseen(target_pass.tokens)

    def _compare_foreseen(self, tokens: Sequence[int]) -> None:
        """Learn from what prompt lookup expected, now that the target has written on."""
        if not self._foreseen:
            return
        acceptance = self.pacer.acceptance(_LOOKUP)
        for token in tokens:
            at = self._foreseen_at
            came_true = self._foreseen[at] == token
            acceptance.observe_token(at, self._foreseen_confidences[at], came_true)
            self._foreseen_at += 1
            if not came_true or self._foreseen_at == len(self._foreseen):
                self._forget_foreseen()
                return

    def _forget_foreseen(self) -> None:
        self._foreseen, self._foreseen_at, self._foreseen_confidences = (), 0, ()

    def _keep_profile(self) -> None:
        self._rounds, self._told_at = 0, -_TOLD_EVERY
        self._keep(self.profile())

    def close(self) -> None:
        """Keep what was learnt; free the main drafter."""
        if self._rounds:
            self._keep_profile()
        if self._main is not None:
            self._main.close()


class _PacedGuide(DraftGuide):
    """Chooses as another guide does, and stops where the next token would not pay."""

    def __init__(self, guide: DraftGuide, pacer: Pacer, kind: DrafterKind, limit: int) -> None:
        self._guide = guide
        self._pacer = pacer
        self._kind = kind
        self._limit = limit
        self._confidences: list[float] = []

    def choose(self, logits: Logits) -> tuple[int, float]:
        return self._guide.choose(logits)

    def keeps(self, count: int, least: int) -> bool:
        return self._guide.keeps(count, least)

    def goes_on(self, confidence: float) -> bool:
        self._confidences.append(confidence)
        return self._guide.goes_on(confidence) and self._pacer.goes_on(
            self._kind, self._confidences, self._limit
        )
