"""Rounds inside live launches: one block at a time, each under a treatment of its own."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import msgspec

from pindiag.journal import Launch
from pindiag.model import Block, BlockOrder, NextBlocks, Treatment
from pindiag.plan.budget import Budget
from pindiag.plan.contenders import FEWEST_TRIED
from pindiag.plan.gates import leaders_to_gate
from pindiag.plan.known import SHORT_BLOCK_S, Known, gave_up
from pindiag.plan.lineup import ENOUGH_ROUNDS, Lineup
from pindiag.plan.start_up import lengthened
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import COMPUTE_ONLY, baseline_treatment, compute_only, queue
from pindiag.race import drifts, standings
from pindiag.stats import FEWEST_FOR_INTERVAL

LEAST_STEPS = 3
LEAST_COUNTED_S = 1.1
"""What a block of so many steps is to last at its usual pace, so that it lasts about a second at a faster one."""
MANY_STEPS = 250
"""A block of so many steps tells as much in a second as in longer: beyond, what differs is the block, not its steps."""


class LiveRace:
    """The race, then the rounds of `compute_only`, then the profiler windows.

    Args:
        known: the state of the run.
        budget: what is left of it.
        threads: what the main thread has in a fresh process.
    """

    def __init__(self, known: Known, budget: Budget, threads: Threads) -> None:
        self._known = known
        self._journal = known.journal
        self._budget = budget
        self._threads = threads
        self._lineup = Lineup(known, budget, threads)

    def next(self) -> NextBlocks | None:
        """The next block, or at last the windows; None when no live launch has anything more to do."""
        if self._over:
            return None
        number = max(self._opened, default=0)
        turns = self._cut(self._turns_left(number)) if number else []
        if turns and self._budget.left_s() >= self._budget.block_s(turns[0]):
            return NextBlocks(blocks=[self._block(turns[0], number, self._journal.treatments)])
        early = self._open_ceiling_round() if self._needs_ceiling else None
        return early or self._open_race_round() or self._open_ceiling_round() or self._windows()

    def before_windows(self) -> BlockOrder | None:
        """What a new launch may begin with where only windows are left; None where that was tried in vain."""
        rounds = {0, *self._opened}
        tried = any(order.round not in rounds for launch in self._launches for order in launch.block_orders)
        return None if tried else self._block(self._known.baseline, self._known.next_round, self._journal.treatments)

    @property
    def compared(self) -> list[Treatment]:
        """All that is to run live, `compute_only` apart."""
        return [*self._lineup.configurations, *self._lineup.extras]

    @property
    def blocks_left(self) -> int:
        """How many blocks are to come, as it looks now."""
        if self._over:
            return 0
        number = max(self._opened, default=0)
        members = self._members(number) if number else self.compared
        turns = len(self._turns_left(number)) if number else 0
        rounds = 0 if self._ceiling_rounds else max(self._known.spec.rounds - len(self._race_rounds), 0)
        return turns + rounds * (2 + len(members)) + 2 * max(FEWEST_FOR_INTERVAL - len(self._ceiling_rounds), 0)

    # ---------------------------------------------------------------------------------------------- what has been

    @property
    def _launches(self) -> list[Launch]:
        return self._known.live_launches

    @cached_property
    def _over(self) -> bool:
        ending = [order for launch in self._launches if not launch.interrupted for order in launch.orders]
        windowed = any(order.windows or order.gates for order in ending)
        later = any(launch.isolation == "fresh" and launch.purpose != "scout" for launch in self._journal.launches)
        return self._known.everything_fresh or windowed or later

    @cached_property
    def _opened(self) -> dict[int, NextBlocks]:
        """The orders with which rounds began, by their numbers."""
        orders = [order for launch in self._launches for order in launch.orders]
        return {order.blocks[0].round: order for order in orders if order.planned and order.blocks}

    @cached_property
    def _ceiling_rounds(self) -> list[int]:
        return [number for number, order in self._opened.items() if _has(order, COMPUTE_ONLY)]

    @property
    def _race_rounds(self) -> list[int]:
        return [number for number in self._opened if number not in self._ceiling_rounds]

    def _members(self, number: int) -> list[Treatment]:
        """Members of a round beside the baseline."""
        order = self._opened[number]
        return [made for made in order.planned if made.id != self._known.baseline and made.id not in order.skipped]

    # ------------------------------------------------------------------------------------------------------- turns

    def _turns(self, number: int, order: NextBlocks) -> list[str]:
        """A round in its order: every member once, the baseline twice, but once beside `compute_only`."""
        baseline = self._known.baseline
        members = [made.id for made in order.planned if made.id != baseline and made.id not in order.skipped]
        turns = [baseline] * (1 if _has(order, COMPUTE_ONLY) else 2) + members
        random.Random(f"{self._known.spec.seed} {number}").shuffle(turns)
        return turns

    def _turns_left(self, number: int) -> list[str]:
        had = Counter(
            self._journal.trial(order.trial)
            for launch in self._launches
            for order in launch.block_orders
            if order.round == number and _had_its_turn(launch, order)
        )
        members = {made.id: made for made in self._members(number)}
        left = []
        for trial in self._turns(number, self._opened[number]):
            if had[trial]:
                had[trial] -= 1
            elif trial not in members or self._lineup.stays(members[trial]):
                left.append(trial)
        return left or self._repeats(number, had, members)

    def _repeats(self, number: int, had: Counter[str], members: Mapping[str, Treatment]) -> list[str]:
        """Treatments whose block was disturbed, once a round and at its end: the disturbance may be over by then.

        Args:
            number: of the round.
            had: turns beyond those that every treatment has.
            members: of the round beside the baseline.
        """
        disturbed = dict.fromkeys(
            self._journal.trial(block.trial)
            for launch in self._launches
            for block in launch.all(Block)
            if block.round == number and block.block in launch.to_repeat and not launch.is_void(block)
        )
        return [
            name for name in disturbed if not had[name] and (name not in members or self._lineup.stays(members[name]))
        ]

    def _cut(self, turns: list[str]) -> list[str]:
        """Without the rest of the first round, where blocks are dearer than the first one promised."""
        if len(self._opened) > 1 or self._known.spec.rounds <= 1 or self._known.spec.exhaustive:
            return turns
        ran = {block.trial for launch in self._launches for block in launch.counted}
        raced = [made for made in self._lineup.configurations if made.id in ran]
        needed_s = self._budget.blocks_s(turns) + self._lineup.two_more_rounds_s(0)
        if len(raced) < FEWEST_TRIED or self._lineup.left_s(self._budget.race_share) >= needed_s:
            return turns
        return [trial for trial in turns if trial == self._known.baseline]

    # ------------------------------------------------------------------------------------------------------ rounds

    def _open_race_round(self) -> NextBlocks | None:
        place = len(self._race_rounds) + 1
        if place > self._known.most_rounds or self._race_is_over:
            return None
        if place == 1:
            return self._open(self._lineup.first()) if self._budget.left_s() >= self._budget.any_block_s else None
        lineup = self._lineup.later(place, self._members(self._race_rounds[-1]))
        if self._lineup.all_told(lineup) and drifts(self._journal):
            return None
        alone = all(made.id == self._known.baseline or made.id in lineup.skipped for made in lineup.planned)
        if alone or self._lineup.settled(lineup) or not self._fits(place, lineup):
            return None
        return self._open(lineup)

    @property
    def _race_is_over(self) -> bool:
        """Whether rounds of `compute_only` have followed it; an early one does not end it."""
        after = [number for number in self._ceiling_rounds if number > max(self._race_rounds, default=0)]
        return len(after) > (len(self._race_rounds) == 1 and self._lineup.asks_compute_only)

    @property
    def _needs_ceiling(self) -> bool:
        """Whether a search has to know after its first round what the step alone would reach."""
        return self._lineup.asks_compute_only and len(self._race_rounds) == 1 and not self._ceiling_rounds

    def _fits(self, place: int, lineup: NextBlocks) -> bool:
        """Three rounds, of the leader too, may take all of the budget: with fewer there is nothing to verify."""
        cost_s = self._budget.blocks_s(self._turns(self._known.next_round, lineup))
        if place <= FEWEST_FOR_INTERVAL or self._lineup.leader_untold:
            return cost_s <= self._budget.left_s()
        return cost_s <= self._lineup.left_s(self._share)

    @property
    def _share(self) -> float:
        verifies = self._known.candidate is not None or self._lineup.for_fresh_s > 0
        return self._budget.race_share if verifies else 1.0

    @property
    def _ending_s(self) -> float:
        """What is left for ceilings and windows."""
        return self._budget.left_s(self._share) - self._lineup.for_fresh_s

    def _open_ceiling_round(self) -> NextBlocks | None:
        """`compute_only` beside the baseline: its replays leave a process warmer than any loader would."""
        baseline, place = self._journal.baseline, len(self._ceiling_rounds) + 1
        if baseline is None or self._known.out(COMPUTE_ONLY) or self._lineup.known_well(COMPUTE_ONLY):
            return None
        affordable = self._budget.blocks_s([self._known.baseline, COMPUTE_ONLY]) <= self._ending_s
        if place > min(ENOUGH_ROUNDS, self._known.spec.rounds) or not affordable:
            return None
        return self._open(NextBlocks(planned=[baseline_treatment(baseline), compute_only(baseline)]))

    def _open(self, lineup: NextBlocks) -> NextBlocks:
        number = self._known.next_round
        known = {made.id: made for made in lineup.planned} | self._journal.treatments
        block = self._block(self._turns(number, lineup)[0], number, known)
        return msgspec.structs.replace(lineup, blocks=[block])

    def _windows(self) -> NextBlocks | None:
        """One window for each configuration that was measured live, the baseline's first, as many as there is time.

        The safety gate comes after them, and has its time first: each of its passes starts a loader for a few batches,
        as a window does.
        """
        treatments, ratios = self._journal.treatments, standings(self._journal)
        ran = {self._journal.trial(block.trial) for launch in self._launches for block in launch.counted}
        order = sorted(ran, key=lambda name: ratios[name].value if name in ratios else math.inf, reverse=True)
        measured = [name for name in order if name in treatments and treatments[name].kind == "configuration"]
        measured = [name for name in measured if not self._known.profiled(name)]
        gates = leaders_to_gate(self._journal)
        left_s = self._ending_s - len(gates) * self._budget.window_s
        fitting = measured[: max(int(left_s / self._budget.window_s), 0)]
        windows = [self._block(name, self._known.next_round - 1, treatments) for name in fitting]
        numbered = [msgspec.structs.replace(window, block=window.block + place) for place, window in enumerate(windows)]
        return NextBlocks(windows=numbered, gates=gates) if numbered or gates else None

    # ------------------------------------------------------------------------------------------------------ blocks

    def _block(self, trial: str, number: int, known: Mapping[str, Treatment]) -> BlockOrder:
        made = known[trial]
        order = self._as_long_as_it_tells(self._known.block(number, trial))
        return msgspec.structs.replace(
            order,
            steps=order.steps or self._steps(made, order.seconds),
            treatment=made,
            intraop_threads=self._threads.under(made),
        )

    def _as_long_as_it_tells(self, order: BlockOrder) -> BlockOrder:
        """Longer where starting workers is dear, shorter where the script as written makes many steps a second."""
        longer, step_s = lengthened(order, self._known), self._step_s(self._known.baseline)
        if longer.seconds > order.seconds or step_s is None or step_s * MANY_STEPS > SHORT_BLOCK_S:
            return longer
        return msgspec.structs.replace(order, seconds=SHORT_BLOCK_S)

    def _steps(self, made: Treatment, seconds: float) -> int | None:
        """So many that the counted part lasts its time at the usual pace of earlier blocks; None before the first."""
        step_s = self._step_s(made.id)
        if step_s is None:
            return None
        return max(LEAST_STEPS, 2 * queue(made.configuration), math.ceil(max(seconds, LEAST_COUNTED_S) / step_s))

    def _step_s(self, trial: str) -> float | None:
        """Seconds of a step, in the median of earlier blocks."""
        found = [
            block.seconds / block.steps
            for launch in self._launches
            for block in launch.counted
            if self._journal.trial(block.trial) == trial and block.steps > 0
        ]
        return statistics.median(found) if found else None


def _has(order: NextBlocks, trial: str) -> bool:
    return any(made.id == trial for made in order.planned)


def _had_its_turn(launch: Launch, order: BlockOrder) -> bool:
    """Whether a block was measured or failed; what a launch's end or a changed dataset took is still to be done."""
    latest_first = reversed(launch.all(Block))
    done = next((block for block in latest_first if block.block == order.block), None)
    counted = done is not None and done.status == "counted" and not launch.is_void(done)
    return counted or gave_up(launch, order)
