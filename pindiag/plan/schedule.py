"""What to run next, from run.json and the journal alone: discover, scout, live rounds, fresh rounds, verification.

There is no state beside the journal and no clock beside its `t_ns`, so a run that was cut goes on where it stopped.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pindiag.journal import DISCOVER_TRIAL, Journal, Launch
from pindiag.model import AnyRecord, Block, DatasetChanged, LaunchOrder, NextBlocks, RunSpec, Treatment
from pindiag.plan.budget import Budget
from pindiag.plan.contenders import FEWEST_CONTENDERS, contenders
from pindiag.plan.fresh import FreshRace
from pindiag.plan.known import Known
from pindiag.plan.live import LiveRace
from pindiag.plan.threads import Threads, scout
from pindiag.plan.verification import Verification
from pindiag.race import beside, drifts, leader, standings
from pindiag.stats import FEWEST_FOR_INTERVAL


@dataclass(frozen=True)
class Remaining:
    """How far a run is: in blocks of a live run, in launches of a fresh one."""

    done: int
    total: int
    """In all, as it looks now."""
    seconds_left: float | None


def next_order(spec: RunSpec, records: Sequence[AnyRecord]) -> LaunchOrder | None:
    """What to launch next, or None when the run is complete, out of budget, or cannot go on."""
    return _Schedule(spec, Journal(records)).next_order()


def next_blocks(spec: RunSpec, records: Sequence[AnyRecord]) -> NextBlocks:
    """What the live launch that runs is to do after its last block; nothing: it is to stop."""
    return _Schedule(spec, Journal(records)).next_blocks()


def remaining(spec: RunSpec, records: Sequence[AnyRecord]) -> Remaining:
    """How much is done and to come, and about how many seconds are left."""
    return _Schedule(spec, Journal(records)).remaining()


def leading(spec: RunSpec, records: Sequence[AnyRecord]) -> tuple[str, float] | None:
    """What leads so far and its ratio to the baseline; None while nothing is faster.

    That is the fastest configuration, or a tweak that gains clearly more.
    """
    if not spec.sweep:
        return None
    journal = Journal(records)
    ahead, tried = leader(journal), beside(journal)
    if ahead in tried:
        return ahead, tried[ahead].value
    ratios = {trial: ratio.value for trial, ratio in standings(journal).items()}
    best = max(ratios, key=lambda trial: ratios[trial], default=None)
    return None if best is None or ratios[best] <= 1 else (best, ratios[best])


class _Schedule:
    """The phases of a run in their order."""

    def __init__(self, spec: RunSpec, journal: Journal) -> None:
        self._spec = spec
        self._journal = journal
        self._known = Known(spec, journal)
        self._verification = Verification(self._known, Budget(self._known))
        self._budget = Budget(self._known, lambda: self._verification.needs_s)
        self._live = LiveRace(self._known, self._budget, Threads(journal))

    def next_order(self) -> LaunchOrder | None:
        if self._known.stopped:
            return None
        if not self._done:
            return self._discover()
        if self._known.baseline_fails:
            return None
        return self._scout() or self._live_launch() or self._fresh_launch() or self._verification.next()

    def next_blocks(self) -> NextBlocks:
        changed = bool(self._journal.launches[-1].all(DatasetChanged))
        if changed or self._known.stopped or self._journal.baseline is None or self._scouted is not None:
            return NextBlocks()
        return self._live.next() or NextBlocks()

    def remaining(self) -> Remaining:
        launches = [launch for launch in self._journal.launches if launch.ended is not None]
        blocks = [block for launch in self._journal.launches for block in launch.all(Block)]
        done = len(launches) if self._spec.fresh else len(blocks)
        if self._journal.baseline is None or self._known.stopped:
            return Remaining(done, done + 1 - bool(self._known.stopped), None)
        to_launch = self._verification.launches_left
        if self._runs_fresh and not self._verification.begun:
            to_launch += self._fresh.launches_left
        blocks_s, left_s = self._live.blocks_left * self._budget.any_block_s, max(self._budget.left_s(), 0.0)
        fitting = min(to_launch, int(max(left_s - blocks_s, 0.0) / self._budget.launch_s))
        seconds = [launch.ended.seconds for launch in launches if launch.ended and launch.isolation == "fresh"]
        launch_s = statistics.median(seconds) if seconds else self._budget.launch_s
        affordable = min(self._live.blocks_left, int(left_s / self._budget.any_block_s))
        known_s = min(blocks_s, left_s) + fitting * launch_s if blocks else None
        return Remaining(done, done + affordable + fitting, known_s)

    # ------------------------------------------------------------------------------------------------------ phases

    @cached_property
    def _done(self) -> list[Launch]:
        return [launch for launch in self._journal.launches if not launch.lost]

    def _discover(self) -> LaunchOrder:
        """The script as written, once: round 0 of a live run, the first block of a fresh one."""
        block = self._known.block(1 if self._spec.fresh else 0, DISCOVER_TRIAL)
        return LaunchOrder(
            purpose="discover",
            isolation="fresh" if self._spec.fresh else "live",
            treatment=None,
            blocks=[block],
            profile=self._spec.fresh,
        )

    @cached_property
    def _scouted(self) -> Treatment | None:
        """What a scout is to run under; it comes before the first live round or not at all."""
        rounds = len(self._done) > 1 or len(self._done[0].block_orders) > 1
        return None if self._spec.fresh or rounds else scout(self._known, self._live.compared)

    def _scout(self) -> LaunchOrder | None:
        made = self._scouted
        return None if made is None else LaunchOrder(purpose="scout", treatment=made, blocks=[])

    def _live_launch(self) -> LaunchOrder | None:
        told = self._live.next()
        if told is None:
            return None
        first = self._live.before_windows() if told.windows else None
        blocks = told.blocks or ([] if first is None else [first])
        if not blocks:
            return None
        return LaunchOrder(
            purpose="round",
            isolation="live",
            treatment=None,
            blocks=blocks,
            natural_epochs=self._known.natural_epochs,
            planned=told.planned,
            skipped=told.skipped,
            predicted=told.predicted,
        )

    def _fresh_launch(self) -> LaunchOrder | None:
        """What cannot be swapped live, or everything; without a sweep the baseline alone, where live gave nothing."""
        return self._fresh.next() if self._runs_fresh and not self._verification.begun else None

    @property
    def _runs_fresh(self) -> bool:
        return self._known.everything_fresh or bool(self._beside) or self._fresh.begun

    @cached_property
    def _fresh(self) -> FreshRace:
        return FreshRace(
            self._known, self._budget, self._known.wanted if self._known.everything_fresh else self._beside
        )

    @cached_property
    def _beside(self) -> list[Treatment]:
        """Members of fresh rounds beside a live race."""
        unswappable = [
            made for made in self._known.wanted if self._known.runs_fresh(made) and not self._known.out(made.id)
        ]
        return [*unswappable, *self._doubtful(len(unswappable))]

    def _doubtful(self, others: int) -> list[Treatment]:
        """The leader and its runners-up where the process was not what it had been; as many as get three rounds."""
        if not self._spec.sweep or not drifts(self._journal):
            return []
        swapped = [made.id for made in self._live.compared if made.kind == "configuration"]
        leaders = contenders(self._known, [trial for trial in swapped if trial in self._journal.treatments])
        launches = self._budget.left_s(self._budget.race_share) / self._budget.launch_s / FEWEST_FOR_INTERVAL
        return leaders[: min(FEWEST_CONTENDERS, max(int(launches) - 2 - others, 0))]
