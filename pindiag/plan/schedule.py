"""The next launch, from run.json and the journal alone: discover, rounds, verification.

There is no state beside the journal and no clock beside its `t_ns`, so a run that was cut goes on where it stopped.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from pindiag.journal import DISCOVER_TRIAL, Journal, Launch
from pindiag.model import AnyRecord, BlockOrder, LaunchOrder, RunSpec, Treatment
from pindiag.plan.grid import asked_treatments, default_treatments, parse_grid
from pindiag.plan.treatments import baseline_treatment
from pindiag.race import chosen, floor, standings, verification
from pindiag.stats import FEWEST_FOR_INTERVAL, Mean

VERIFICATION_SHARE = 0.35
"""Of the budget, held back for the launches that verify the leader: four pairs in five minutes on usual scripts."""
FEWEST_PAIRS = 4
"""At 5 % noise four pairs give a half-width of about 9 %, two would give 37 %."""
MOST_PAIRS = 12
NARROW_ENOUGH = 0.05
"""Half-width of the verified log ratio at which more pairs add nothing that a reader acts on."""
FEWEST_TRIED = 5
"""Configurations beside the baseline that the first round tries, however short the budget, while it lasts."""
FEWEST_CONTENDERS = 3
"""Rounds give way before fewer configurations than these stay in the race."""
WORTH_KNOWING = 1.05
"""A cause whose removal brings less is ruled out."""
BY_CHANCE = 0.05
BASELINE_ROUNDS = 3
"""Rounds of two blocks without --sweep: enough for intervals and a noise floor."""
HANGS_S = 30.0
"""A failure that took this long is too dear to be tried again."""
BLOCK_S = 1.5
SHORT_BLOCK_S = 1.0
SHORT_BUDGET_S = 120.0


@dataclass(frozen=True)
class Remaining:
    """How far a run is."""

    done: int
    """Launches that have ended."""
    total: int
    """Launches in all, as it looks now."""
    seconds_left: float | None


def next_order(spec: RunSpec, records: Sequence[AnyRecord]) -> LaunchOrder | None:
    """What to launch next, or None when the run is complete, out of budget, or cannot go on."""
    return _Schedule(spec, Journal(records)).next()


def remaining(spec: RunSpec, records: Sequence[AnyRecord]) -> Remaining:
    """How many launches are done and to come, and about how many seconds are left."""
    return _Schedule(spec, Journal(records)).remaining()


def leading(spec: RunSpec, records: Sequence[AnyRecord]) -> tuple[str, float] | None:
    """The fastest configuration so far and its ratio to the baseline; None while nothing is faster."""
    if not spec.sweep:
        return None
    ratios = {trial: ratio.value for trial, ratio in standings(Journal(records)).items()}
    best = max(ratios, key=lambda trial: ratios[trial], default=None)
    return None if best is None or ratios[best] <= 1 else (best, ratios[best])


class _Schedule:
    def __init__(self, spec: RunSpec, journal: Journal) -> None:
        self.spec = spec
        self.journal = journal

    def next(self) -> LaunchOrder | None:
        if not self.journal.launches:
            return self._order("discover", None, 1, profile=True)
        if self._stopped or self._baseline_fails:
            return None
        return self._race() or self._verify()

    def remaining(self) -> Remaining:
        ended = [launch for launch in self.journal.launches if launch.ended is not None]
        if self.journal.baseline is None or self._stopped:
            return Remaining(len(ended), len(ended) + 1 - bool(self._stopped), None)
        affordable = int(max(self._left_s(1.0), 0.0) / self._launch_s)
        left = min(self._race_launches_left() + self._verify_launches_left(), affordable)
        seconds = statistics.median(launch.ended.seconds for launch in ended if launch.ended) if ended else None
        return Remaining(len(ended), len(ended) + left, None if seconds is None else left * seconds)

    # ------------------------------------------------------------------------------------------ what is known

    @cached_property
    def _stopped(self) -> bool:
        interrupted = any(launch.ended and launch.ended.status == "interrupted" for launch in self.journal.launches)
        return interrupted or self.journal.ended is not None

    @cached_property
    def _failures(self) -> dict[str, list[Launch]]:
        failed: dict[str, list[Launch]] = {}
        for launch in self.journal.launches:
            if not launch.measured and not launch.past_natural_end:
                failed.setdefault(self._trial(launch), []).append(launch)
        return failed

    @cached_property
    def _baseline_fails(self) -> bool:
        """Once when it never ran, twice when it did: a script that fails by itself cannot be compared with."""
        if self.journal.baseline is None:
            return True
        runs = [launch for launch in self.journal.launches if self._trial(launch) == self.journal.baseline_id]
        failures = len(self._failures.get(self.journal.baseline_id or "", []))
        return failures > (1 if any(launch.measured for launch in runs) else 0)

    def _out(self, trial: str) -> bool:
        """Whether a treatment is given up: it was killed for memory, hung, or failed twice."""
        failures = self._failures.get(trial, [])
        return len(failures) > 1 or any(_for_memory(launch) or _hung(launch) for launch in failures)

    def _trial(self, launch: Launch) -> str:
        return self.journal.trial(DISCOVER_TRIAL if launch.treatment is None else launch.treatment.id)

    @cached_property
    def _launch_s(self) -> float:
        """What a launch takes of the budget, from those that went well; later ones have no profiler window."""
        went = [launch for launch in self.journal.launches if launch.measured and launch.spent_s > 0]
        plain = [launch.spent_s for launch in went if launch.order is not None and not launch.order.profile]
        return max(statistics.median(plain or [launch.spent_s for launch in went] or [BLOCK_S]), 0.1)

    def _left_s(self, share: float) -> float:
        return self.spec.budget_s * share - sum(launch.spent_s for launch in self.journal.launches)

    @cached_property
    def _candidate(self) -> str | None:
        """What is to be verified; None when that is the baseline, or nothing is asked."""
        wanted = self.spec.sweep and self.spec.verify
        leader = chosen(self.journal) if wanted else None
        return None if leader == self.journal.baseline_id else leader

    @cached_property
    def _race_share(self) -> float:
        """The race leaves a share to the verification where at least two pairs fit into it."""
        wanted = self.spec.sweep and self.spec.verify
        fits = 4 * self._launch_s <= VERIFICATION_SHARE * self.spec.budget_s
        return 1 - VERIFICATION_SHARE if wanted and fits else 1.0

    # ---------------------------------------------------------------------------------------------- the rounds

    @property
    def _rounds(self) -> int:
        return self.spec.rounds if self.spec.sweep else min(self.spec.rounds, BASELINE_ROUNDS)

    def _in_round(self, number: int) -> list[Launch]:
        return [launch for launch in self.journal.launches if launch.purpose == "round" and launch.round == number]

    @property
    def _round(self) -> int:
        """The round that runs; 0 before the first."""
        return max((launch.round for launch in self.journal.launches if launch.purpose == "round"), default=0)

    def _race(self) -> LaunchOrder | None:
        if any(launch.purpose == "verify" for launch in self.journal.launches):
            return None
        turns = self._turns_left(self._round) if self._round else []
        if turns and self._cuts_first_round(turns):
            turns = [trial for trial in turns if trial == self.journal.baseline_id]
        if not turns:
            return self._open_round(self._round + 1)
        return self._round_order(turns[0], self._round) if self._left_s(1.0) >= self._launch_s else None

    def _cuts_first_round(self, turns: Sequence[str]) -> bool:
        """Whether the rest of the first round gives way, launches being dearer than the first one promised."""
        ran = {self._trial(launch) for launch in self._in_round(1) if launch.measured} - {self.journal.baseline_id}
        enough = self._round == 1 < self._rounds and len(ran) >= FEWEST_TRIED
        return enough and self._left_s(1.0) < (len(turns) + self._later_rounds) * self._launch_s

    @property
    def _later_rounds(self) -> int:
        """Launches that two more rounds take at least: the baseline twice, and the leader."""
        return 3 * min(self._rounds - 1, FEWEST_FOR_INTERVAL - 1)

    def _members(self, number: int) -> list[str]:
        """Configurations of a round beside the baseline."""
        order = self._in_round(number)[0].order
        left_out = set() if order is None else {self.journal.baseline_id, *order.skipped}
        return [] if order is None else [member.id for member in order.planned if member.id not in left_out]

    def _turns(self, members: Sequence[str], number: int) -> list[str]:
        """A round in its order: every member once, the baseline twice."""
        baseline = self.journal.baseline_id or DISCOVER_TRIAL
        twice = 1 if number == 1 and any(launch.measured for launch in self._discoveries) else 2
        turns = [baseline] * twice + list(members)
        random.Random(f"{self.spec.seed} {number}").shuffle(turns)
        return turns

    @property
    def _discoveries(self) -> list[Launch]:
        return [launch for launch in self.journal.launches if launch.purpose == "discover"]

    def _turns_left(self, number: int) -> list[str]:
        ran = Counter(self._trial(launch) for launch in self._in_round(number) if not launch.past_natural_end)
        left = []
        for trial in self._turns(self._members(number), number):
            if ran[trial]:
                ran[trial] -= 1
            elif not self._out(trial):
                left.append(trial)
        return left

    def _open_round(self, number: int) -> LaunchOrder | None:
        if number > self._rounds:
            return None
        members, skipped = self._first_members() if number == 1 else (self._contenders(number), {})
        kept = [member for member in members if member.id not in skipped]
        if number > 1 and (not self._fits(number, len(kept) + 2) or (self.spec.sweep and not kept)):
            return None
        if self._left_s(1.0) < self._launch_s:
            return None
        trial = self._turns([member.id for member in kept], number)[0]
        return self._round_order(trial, number, members, skipped)

    def _fits(self, number: int, launches: int) -> bool:
        """Three rounds may take all of the budget: with fewer there is nothing to verify."""
        verifies = number > FEWEST_FOR_INTERVAL and self._candidate is not None
        return launches * self._launch_s <= self._left_s(self._race_share if verifies else 1.0)

    def _first_members(self) -> tuple[list[Treatment], dict[str, str]]:
        wanted = self._wanted()
        launches = int(self._left_s(self._race_share) / self._launch_s)
        fitting = max(launches - 1 - self._later_rounds, FEWEST_TRIED)
        late = f"the budget of {self.spec.budget_s:.0f} s left no time for it"
        return wanted, {made.id: late for made in wanted[fitting:]}

    def _wanted(self) -> list[Treatment]:
        baseline, found = self.journal.baseline, self.journal.chosen
        if not self.spec.sweep or baseline is None or found is None:
            return []
        if self.spec.grid:
            return asked_treatments(parse_grid(self.spec.grid), baseline)
        return default_treatments(baseline, self.spec.usable_cpus, found.accelerator)

    def _contenders(self, number: int) -> list[Treatment]:
        """Members of the last round that stay: not failed, not beaten, and as many as there is time for."""
        ratios = standings(self.journal)
        noise, _ = floor(self.journal)
        best = max((ratio.ci95[0] for ratio in ratios.values() if ratio.ci95 is not None), default=1.0)
        alive = [
            self.journal.treatments[trial]
            for trial in self._members(number - 1)
            if not self._out(trial) and not self._leaves(trial, ratios.get(trial), best, noise)
        ]
        alive.sort(key=lambda made: ratios[made.id].value if made.id in ratios else 0.0, reverse=True)
        essential = [made for made in alive[2:] if _changes_one_thing(made)]
        others = [made for made in alive[2:] if not _changes_one_thing(made)]
        return [*alive[:2], *essential, *others][: self._room(number)]

    def _leaves(self, trial: str, ratio: Mean | None, best_lower_bound: float, noise: float | None) -> bool:
        """Whether nothing more is to be learned of a configuration.

        One that changes a single thing settles a cause, so it stays, though beaten, until it is settled itself.
        """
        if ratio is None or ratio.ci95 is None:
            return False
        beaten = ratio.ci95[1] < best_lower_bound or ratio.ci95[1] < 1 / (noise or 1.0)
        return beaten and (_settled(ratio) or not _changes_one_thing(self.journal.treatments[trial]))

    def _room(self, number: int) -> int:
        """How many configurations fit beside the two baseline blocks.

        Configurations give way until three are left, then rounds until three are left, then configurations again.
        """
        launches = self._left_s(self._race_share) / self._launch_s
        for_all_rounds = int(launches / (self._rounds - number + 1)) - 2
        for_three_rounds = int(launches / max(FEWEST_FOR_INTERVAL - number + 1, 1)) - 2
        return max(for_all_rounds, min(FEWEST_CONTENDERS, for_three_rounds), 1)

    def _race_launches_left(self) -> int:
        if any(launch.purpose == "verify" for launch in self.journal.launches):
            return 0
        if not self._round:
            return 2 + len(self._wanted()) + (self._rounds - 1) * 2
        active = min(len(self._members(self._round)), self._room(min(self._round + 1, self._rounds)))
        return len(self._turns_left(self._round)) + (self._rounds - self._round) * (2 + active)

    # ---------------------------------------------------------------------------------------------- verification

    @cached_property
    def _pairs(self) -> dict[int, list[Launch]]:
        pairs: dict[int, list[Launch]] = {}
        for launch in self.journal.launches:
            if launch.purpose == "verify" and not launch.past_natural_end:
                pairs.setdefault(launch.round, []).append(launch)
        return pairs

    def _verify(self) -> LaunchOrder | None:
        baseline, candidate = self.journal.baseline_id, self._candidate
        if baseline is None or candidate is None or self._out(candidate):
            return None
        number = max(self._pairs, default=1)
        turns = [baseline, candidate] if number % 2 else [candidate, baseline]
        ran = [self._trial(launch) for launch in self._pairs.get(number, [])]
        left = [trial for trial in turns if trial not in ran]
        if not left and self._verified(candidate):
            return None
        if not left:
            number, left = number + 1, turns[::-1]
        if len(left) * self._launch_s > self._left_s(1.0):
            return None
        return self._order("verify", self.journal.treatments[left[0]], number)

    def _verified(self, candidate: str) -> bool:
        ratio = verification(self.journal, candidate)
        narrow = ratio is not None and ratio.half_width is not None and ratio.half_width <= NARROW_ENOUGH
        enough = ratio is not None and ratio.count >= min(FEWEST_PAIRS, self._rounds)
        return (enough and narrow) or len(self._pairs) >= min(MOST_PAIRS, 2 * self._rounds)

    def _verify_launches_left(self) -> int:
        if not self.spec.sweep or not self.spec.verify:
            return 0
        return max(2 * FEWEST_PAIRS - sum(len(pair) for pair in self._pairs.values()), 0)

    # ---------------------------------------------------------------------------------------------------- orders

    def _round_order(
        self,
        trial: str,
        number: int,
        members: Sequence[Treatment] = (),
        skipped: dict[str, str] | None = None,
    ) -> LaunchOrder:
        known = {made.id: made for made in members} | self.journal.treatments
        profile = number == 1 and trial != self.journal.baseline_id
        order = self._order("round", known[trial], number, profile=profile)
        if self._in_round(number) or self.journal.baseline is None:
            return order
        planned = [baseline_treatment(self.journal.baseline), *members]
        return msgspec.structs.replace(order, planned=planned, skipped=skipped or {})

    def _order(
        self,
        purpose: Literal["discover", "round", "verify"],
        treatment: Treatment | None,
        number: int,
        *,
        profile: bool = False,
    ) -> LaunchOrder:
        block = BlockOrder(
            block=1 + max((block.block for order in self._orders for block in order.blocks), default=0),
            round=number,
            trial=DISCOVER_TRIAL if treatment is None else treatment.id,
            seconds=SHORT_BLOCK_S if self.spec.budget_s < SHORT_BUDGET_S else BLOCK_S,
            steps=self.spec.steps,
        )
        natural = any(launch.past_natural_end or launch.natural_epochs for launch in self.journal.launches)
        return LaunchOrder(
            purpose=purpose, treatment=treatment, blocks=[block], profile=profile, natural_epochs=natural
        )

    @property
    def _orders(self) -> list[LaunchOrder]:
        return [launch.order for launch in self.journal.launches if launch.order is not None]


def _for_memory(launch: Launch) -> bool:
    reason = "" if launch.ended is None else (launch.ended.reason or "").lower()
    return "memory" in reason or "/dev/shm" in reason


def _hung(launch: Launch) -> bool:
    return launch.ended is not None and launch.ended.seconds >= HANGS_S


def _changes_one_thing(treatment: Treatment) -> bool:
    """A single argument, or the three-way comparison (no pin; pin; pin and non_blocking) at the script's workers."""
    return len(treatment.changes) == 1 or treatment.changes.keys() <= {"pin_memory", "non_blocking"}


def _settled(ratio: Mean) -> bool:
    """A gain of 5 % is excluded, or the difference is beyond chance."""
    excluded = ratio.ci95 is not None and ratio.ci95[1] < WORTH_KNOWING
    return excluded or (ratio.p is not None and ratio.p < BY_CHANCE)
