"""Decides how far to draft, so that drafting never costs more than it saves.

With k drafted tokens a round emits E(k) = 1 + a_1 + … + a_k tokens, a_i being the chance that the
first i are all accepted, and takes R(k) = T(k + 1) + k·D seconds: a target pass over k + 1 rows
and k draft steps. The depth is the k ≥ 0 with the best E(k) / R(k); 0 is plain decoding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from slipstream.engine.speculation.acceptance_model import AcceptanceModel, AcceptanceProfile
from slipstream.engine.speculation.cost_model import CostModel
from slipstream.engine.speculation.drafter import DrafterKind, TargetPass

STARTS_AT = 1.04  # predicted gain from which drafting begins, and goes on down to `ENDS_AT`
ENDS_AT = 1.01
LOSS_SHARE = 0.006  # of recent time, the most that trying may cost
RECENT = 1 - 1 / 256  # weight of earlier rounds: what was not lost long ago is not saved up
CREDIT_PASSES = 0.5  # plain passes' worth of time that may be lost besides
PLAIN_EVERY = 64  # rounds after which a plain one shows again what drafting is compared with
_WINDOW = 0.97  # weight of earlier rounds in the measured gain
_UNTRIED = 0.25  # share of a predicted saving to count on before anything was verified
_TRIED = 8.0  # observations after which half of the rest is counted on too
_FADED_EVERY = 16  # plain rounds
_STAKE = 0.5  # of what may be lost, the most that one draft may lose which nobody was asked for,
_SURE_STAKE = 3.0  # and the same for one that pays even at the worst
_HORIZON = 192  # tokens an answer is thought to have still, however many it may have


def acceptance_model(kind: str, profile: AcceptanceProfile | None = None) -> AcceptanceModel:
    """A model for a way to draft, which goes on from a profile."""
    return AcceptanceModel(profile, by_answer=kind == DrafterKind.PROMPT_LOOKUP)


class Ledger:
    """What each way to draft has saved lately against plain decoding, in seconds.

    Each has its own account, negative when it lost: one that pays off is not stopped for what
    another has lost, nor does it pay for that. What an answer has won may be lost again in it.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._saved: dict[str, float] = {}

    def saved(self, kind: str) -> float:
        """What this way has saved lately."""
        return self._saved.get(kind, 0.0)

    def add(self, kind: str, spent: float, plain: float) -> None:
        """A round took `spent` seconds, where plain decoding would have needed `plain`."""
        self.elapsed = RECENT * self.elapsed + spent
        for each in self._saved:
            self._saved[each] *= RECENT
        self._saved[kind] = self.saved(kind) + plain - spent

    def begin_answer(self) -> None:
        """What was saved in earlier answers does not pay for a loss in this one."""
        for kind, saved in self._saved.items():
            self._saved[kind] = min(saved, 0.0)

    def left(self, kind: str, credit: float, share: float) -> float:
        """How much this way may lose now: a `share` of the time, the credit, what it has saved."""
        return share * self.elapsed + credit + self.saved(kind)


class Pacer:
    """Plans the drafts of one pair of models by what passes and steps cost and what is accepted.

    `kind` everywhere names a way to draft; each has an acceptance model of its own.
    """

    def __init__(self, costs: CostModel, acceptance: dict[str, AcceptanceModel]) -> None:
        self.costs = costs
        self._acceptance = acceptance
        self._ledger = Ledger()
        self._drafting: set[str] = set()  # the ways found worth it when asked last
        self._sample_seconds = 0.0
        self._since_plain = 0
        self._rate = 0.0  # the best known tokens per second, for the draft being made
        self._predicted: dict[str, float] = {}
        self._drafted_before = ""  # the way to draft of the round before
        self._not_faded = 0  # plain rounds
        self._spent = 0.0  # recent rounds' seconds, and what plain ones would have taken
        self._plain = 0.0

    def acceptance(self, kind: str) -> AcceptanceModel:
        """The acceptance model of a way to draft."""
        found = self._acceptance.get(kind)
        if found is None:
            found = self._acceptance[kind] = acceptance_model(kind)
        return found

    def begin_answer(self) -> None:
        """Another text begins."""
        self._ledger.begin_answer()
        for acceptance in self._acceptance.values():
            acceptance.begin_answer()

    @property
    def plain_seconds(self) -> float:
        """A plain round: one pass over one row, and sampling."""
        return self.costs.pass_seconds(1) + self._sample_seconds

    @property
    def measured_gain(self) -> float | None:
        """How many times as fast recent rounds were as plain ones; None before any."""
        return self._plain / self._spent if self._spent > 0 else None

    @property
    def predicted_gain(self) -> float | None:
        """The best that drafting was expected to give when last asked, 1.0 being plain."""
        return max(self._predicted.values(), default=None)

    def depth(self, kind: str, limit: int, behind: int, tokens_left: int) -> int:
        """How many tokens to draft at most this round, 0 for none; `goes_on` may stop earlier.

        `behind` tokens have to be evaluated before the first; at most `tokens_left` are to come.
        """
        if not self.costs.is_known or self._needs_plain_round():
            return 0
        rate = self._best_rate(kind, limit)
        gain = rate * self.plain_seconds
        catch_up = behind * self.costs.catch_up_seconds(kind)
        needed = ENDS_AT if kind in self._drafting else STARTS_AT
        horizon = min(_HORIZON, tokens_left)
        self._predicted[kind] = gain
        saving = (1 - 1 / gain) * horizon * self.plain_seconds
        # reading a conversation is an outlay; the less was seen, the surer its return must be
        seen = self.acceptance(kind).seen
        trusted = _UNTRIED + (1 - _UNTRIED) * seen / (seen + _TRIED)
        if gain >= needed and trusted * saving > catch_up and self._left(kind) >= 0:
            self._drafting.add(kind)
            self._rate = max(rate, 1 / self.plain_seconds)
            return limit
        self._drafting.discard(kind)
        if self._best_rate(kind, limit, at_best=True) * self.plain_seconds < STARTS_AT:
            return 0  # it would not pay even if much went well
        loss = self.costs.pass_seconds(2) + self.costs.step_seconds(kind) - self.plain_seconds
        loss = catch_up + max(loss, 0.1 * self.plain_seconds)
        return 1 if loss <= self._left(kind) else 0

    def goes_on(self, kind: str, confidences: Sequence[float], limit: int) -> bool:
        """Whether to draft another token after tokens of these confidences."""
        drafted = len(confidences)
        chance = self.acceptance(kind).chances(confidences)[-1]
        step = self.costs.step_seconds(kind)
        now = self.costs.pass_seconds(drafted + 1)
        expected, cost = 0.0, -now
        for further in range(drafted, limit):
            chance *= self.acceptance(kind).at_position(further)
            expected += chance
            cost += step
            if expected > self._rate * (cost + self.costs.pass_seconds(further + 2)):
                return True
        return False

    def worth(
        self,
        kind: str,
        confidences: Sequence[float],
        *,
        at_stake: float = math.inf,
        at_worst: bool = False,
    ) -> tuple[int, float]:
        """How many of these drafted tokens to verify, and the tokens per second expected of it.

        (0, plain decoding's rate) where it is better to verify none. No more than `at_stake`
        seconds are lost where all are refused. With `at_worst` the tokens are taken to be no more
        likely than they surely are.
        """
        costs, rate = self.costs, 1 / self.plain_seconds
        plain = costs.next_pass_seconds(1) + self._sample_seconds
        # after a pass of other rows a plain one changes them again
        back = costs.change_seconds if costs.latest_rows == 1 else 0.0
        best, most, best_rate = 0, 1.0 - rate * plain, rate
        expected = 1.0
        chances = (
            self._lower_bounds(kind, confidences)
            if at_worst
            else self.acceptance(kind).chances(confidences)
        )
        for index, chance in enumerate(chances):
            expected += chance
            seconds = costs.next_pass_seconds(index + 2) + back + self._sample_seconds
            if seconds - plain > at_stake:
                break
            if expected - rate * seconds > most:
                best, most, best_rate = index + 1, expected - rate * seconds, expected / seconds
        self._predicted[kind] = best_rate * self.plain_seconds
        return best, best_rate

    def worth_unasked(self, kind: str, confidences: Sequence[float]) -> int:
        """How many tokens to verify of a draft that cost nothing.

        Of the guesses for many depths the best is likely to be too good: it has to be clearly
        better than plain decoding, or to pay even at the worst. What it may cost is then more than
        may be lost soon, which stops drafting for longer where it is lost after all; else a part
        of it, so that drafts grow as they turn out right.
        """
        left = self._left(kind)
        if self._needs_plain_round() or left <= 0:
            return 0
        if not self.worth(kind, confidences)[0]:  # nearly always in free text, so first
            return 0
        surely, _ = self.worth(kind, confidences, at_stake=_SURE_STAKE * left, at_worst=True)
        count, rate = self.worth(kind, confidences, at_stake=_STAKE * left)
        likely = count if rate * self.plain_seconds >= STARTS_AT else 0
        return max(surely, likely)

    def observe(self, seen: TargetPass, kind: str, draft_seconds: float) -> None:
        """A round ended, after a draft of this kind that took so long (0 for none)."""
        expected = self.costs.next_pass_seconds(seen.rows)
        self.costs.observe_pass(seen.rows, seen.seconds)
        count = max(1, len(seen.tokens))
        each = seen.sample_seconds / count
        share = 0.1 if self._sample_seconds else 1.0
        self._sample_seconds += share * (each - self._sample_seconds)
        self._since_plain = 0 if seen.rows == 1 else self._since_plain + 1
        if seen.rows == 1:
            self._fade()
        spent = draft_seconds + seen.seconds + seen.sample_seconds
        plain = count * self.plain_seconds
        if seen.rows == 1:  # a slow moment is nobody's loss, but a change back to one row is
            plain += seen.seconds - expected
        if not self._ledger.elapsed:  # begin as after a long time without a loss
            self._ledger.elapsed = self.plain_seconds / (1 - RECENT)
        drafted = kind in self._acceptance
        # a plain round right after a draft is dearer for it; those that follow are nobody's
        self._ledger.add(kind if drafted else self._drafted_before, spent, plain)
        self._drafted_before = kind if drafted else ""
        self._spent = _WINDOW * self._spent + spent
        self._plain = _WINDOW * self._plain + plain

    def _fade(self) -> None:
        """Trust what was seen of drafts a little less, after a token without one."""
        self._not_faded += 1
        if self._not_faded == _FADED_EVERY:
            self._not_faded = 0
            for acceptance in self._acceptance.values():
                acceptance.fade(_FADED_EVERY)

    def _needs_plain_round(self) -> bool:
        return self._since_plain >= PLAIN_EVERY

    def _left(self, kind: str) -> float:
        """How many seconds drafting this way may lose now; negative where too many were lost."""
        ways = max(1, len(self._acceptance))
        credit = CREDIT_PASSES * self.plain_seconds / ways
        return self._ledger.left(kind, credit, LOSS_SHARE / ways)

    def _best_rate(self, kind: str, limit: int, *, at_best: bool = False) -> float:
        """The tokens per second of the best depth from 1 on, as expected or as it may well be."""
        acceptance, step = self.acceptance(kind), self.costs.step_seconds(kind)
        at_position = acceptance.at_best if at_best else acceptance.at_position
        best_rate = 0.0
        chance = expected = 1.0
        for depth in range(1, limit + 1):
            chance *= at_position(depth - 1)
            expected += chance
            seconds = self.costs.pass_seconds(depth + 1) + depth * step + self._sample_seconds
            best_rate = max(best_rate, expected / seconds)
        return best_rate

    def _lower_bounds(self, kind: str, confidences: Sequence[float]) -> list[float]:
        """The same as `AcceptanceModel.chances`, but no more than is sure."""
        acceptance, chances, chance = self.acceptance(kind), [], 1.0
        for index, confidence in enumerate(confidences):
            chance *= acceptance.at_worst(index, confidence)
            chances.append(chance)
        return chances
