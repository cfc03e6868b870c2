"""Rounds of fresh launches, each with one treatment: the whole race, or beside a live one what cannot be swapped."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from pindiag.journal import Launch
from pindiag.model import LaunchOrder, Treatment
from pindiag.plan.budget import Budget
from pindiag.plan.contenders import FEWEST_CONTENDERS, FEWEST_TRIED, contenders
from pindiag.plan.decision import decided
from pindiag.plan.gates import to_gate
from pindiag.plan.known import Known
from pindiag.plan.treatments import baseline_treatment
from pindiag.race import standings
from pindiag.stats import FEWEST_FOR_INTERVAL

BASELINE_ROUNDS = 3
"""Rounds of two blocks without --sweep: enough for intervals and a noise floor."""


class FreshRace:
    """Every member once a round, the baseline twice, each in a launch of its own.

    Args:
        known: the state of the run.
        budget: what is left of it.
        wanted: members of the first round beside the baseline, best guesses first.
    """

    def __init__(self, known: Known, budget: Budget, wanted: Sequence[Treatment]) -> None:
        self._known = known
        self._budget = budget
        self._wanted = wanted
        self.rounds = known.spec.rounds if known.spec.sweep else min(known.spec.rounds, BASELINE_ROUNDS)

    def next(self) -> LaunchOrder | None:
        """The next launch of the race; None when it is over."""
        turns = self._turns_left(self._numbers[-1]) if self._numbers else []
        if turns and self._cuts_first_round(turns):
            turns = [trial for trial in turns if trial == self._known.baseline]
        if not turns:
            return self._open_round()
        return self._order(turns[0], self._numbers[-1]) if self._affords_one else None

    @property
    def begun(self) -> bool:
        """Whether one of its launches has run."""
        return bool(self._numbers)

    @property
    def launches_left(self) -> int:
        """How many launches are to come, as it looks now."""
        done = len(self._numbers)
        if not done:
            return 2 + len(self._wanted) + (self.rounds - 1) * 2
        number = self._numbers[-1]
        active = min(len(self._members(number)), self._room(min(done + 1, self.rounds)))
        return len(self._turns_left(number)) + (self.rounds - done) * (2 + active)

    # ---------------------------------------------------------------------------------------------- the rounds

    @cached_property
    def _launches(self) -> list[Launch]:
        launches = self._known.journal.launches
        return [launch for launch in launches if launch.purpose == "round" and launch.isolation == "fresh"]

    @cached_property
    def _numbers(self) -> list[int]:
        """Numbers of its rounds so far. A live round may have gone before, so the first need not be 1."""
        return sorted({launch.round for launch in self._launches})

    def _in_round(self, number: int) -> list[Launch]:
        return [launch for launch in self._launches if launch.round == number]

    @property
    def _affords_one(self) -> bool:
        return self._budget.left_s() >= self._budget.launch_s

    def _cuts_first_round(self, turns: Sequence[str]) -> bool:
        """Whether the rest of the first round gives way, launches being dearer than the first one promised."""
        if len(self._numbers) > 1 or self.rounds <= 1:
            return False
        ran = {self._known.trial(launch) for launch in self._launches if launch.measured} - {self._known.baseline}
        needed = (len(turns) + self._later_rounds) * self._budget.launch_s
        return len(ran) >= FEWEST_TRIED and self._budget.left_s() < needed

    @property
    def _later_rounds(self) -> int:
        """Launches that two more rounds take at least: the baseline twice, and the leader."""
        return 3 * min(self.rounds - 1, FEWEST_FOR_INTERVAL - 1)

    def _members(self, number: int) -> list[str]:
        """Configurations of a round beside the baseline."""
        order = self._in_round(number)[0].order
        left_out = set() if order is None else {self._known.baseline, *order.skipped}
        return [] if order is None else [member.id for member in order.planned if member.id not in left_out]

    def _turns(self, members: Sequence[str], number: int) -> list[str]:
        """A round in its order: every member once, the baseline twice."""
        discovered = any(
            launch.measured and launch.round == number and launch.isolation == "fresh"
            for launch in self._known.discoveries
        )
        turns = [self._known.baseline] * (1 if discovered else 2) + list(members)
        random.Random(f"{self._known.spec.seed} {number}").shuffle(turns)
        return turns

    def _turns_left(self, number: int) -> list[str]:
        done = [launch for launch in self._in_round(number) if not launch.past_natural_end and not launch.lost]
        ran = Counter(self._known.trial(launch) for launch in done)
        left = []
        for trial in self._turns(self._members(number), number):
            if ran[trial]:
                ran[trial] -= 1
            elif not self._known.out(trial):
                left.append(trial)
        return left

    def _open_round(self) -> LaunchOrder | None:
        place = len(self._numbers) + 1
        if place > self.rounds:
            return None
        members, skipped = (self._contenders(place), {}) if self._numbers else self._first_members()
        kept = [member for member in members if member.id not in skipped]
        if self._numbers and (not self._fits(len(kept) + 2) or (self._known.spec.sweep and not kept)):
            return None
        if not self._affords_one or self._settled(kept):
            return None
        number = place if self._known.spec.fresh else self._known.next_round
        trial = self._turns([member.id for member in kept], number)[0]
        order = self._order(trial, number, members)
        planned = [] if self._known.journal.baseline is None else [baseline_treatment(self._known.journal.baseline)]
        return msgspec.structs.replace(order, planned=[*planned, *members], skipped=skipped)

    def _settled(self, kept: Sequence[Treatment]) -> bool:
        """Whether rounds beside a live race may end: all members have an interval, and who leads is decided."""
        beside_live = self._known.spec.sweep and not self._known.spec.fresh
        if not beside_live or len(self._numbers) < FEWEST_FOR_INTERVAL:
            return False
        competing = [made for made in kept if made.competes]
        ratios = standings(self._known.journal)
        told = all(made.id in ratios and ratios[made.id].ci95 is not None for made in competing)
        return len(competing) == len(kept) and told and decided(self._known, competing)

    def _fits(self, launches: int) -> bool:
        """Rounds may take all of the budget until one leads, in live rounds or in three of these: nothing to verify."""
        share = 1.0 if self._known.candidate is None else self._budget.race_share
        return launches * self._budget.launch_s <= self._budget.left_s(share)

    def _first_members(self) -> tuple[list[Treatment], dict[str, str]]:
        launches = int(self._budget.left_s(self._budget.race_share) / self._budget.launch_s)
        fitting = max(launches - 1 - self._later_rounds, FEWEST_TRIED)
        late = f"the budget of {self._known.spec.budget_s:.0f} s left no time for it"
        return list(self._wanted), {made.id: late for made in self._wanted[fitting:]}

    def _contenders(self, place: int) -> list[Treatment]:
        return contenders(self._known, self._members(self._numbers[-1]))[: self._room(place)]

    def _room(self, place: int) -> int:
        """How many configurations fit beside the two baseline blocks.

        Configurations give way until three are left, then rounds until three are left, then configurations again.
        """
        launches = self._budget.left_s(self._budget.race_share) / self._budget.launch_s
        for_all_rounds = int(launches / (self.rounds - place + 1)) - 2
        for_three_rounds = int(launches / max(FEWEST_FOR_INTERVAL - place + 1, 1)) - 2
        return max(for_all_rounds, min(FEWEST_CONTENDERS, for_three_rounds), 1)

    def _order(self, trial: str, number: int, members: Sequence[Treatment] = ()) -> LaunchOrder:
        known = {made.id: made for made in members} | self._known.journal.treatments
        return LaunchOrder(
            purpose="round",
            treatment=known[trial],
            blocks=[self._known.block(number, trial)],
            profile=self._profiles(trial, number),
            natural_epochs=self._known.natural_epochs,
            gates=to_gate(self._known.journal, trial),
        )

    def _profiles(self, trial: str, number: int) -> bool:
        """Each once, in the first round; the baseline only where the first launch of the run was a live one."""
        first = not self._numbers or number == self._numbers[0]
        again = self._known.spec.fresh or any(self._known.trial(launch) == trial for launch in self._launches)
        return first and (trial != self._known.baseline or not (again or self._known.profiled(trial)))
