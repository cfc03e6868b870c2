"""What run.json and the journal say, as every phase of the plan needs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pindiag.journal import DISCOVER_TRIAL, PATCHED_TRIAL, Journal, Launch
from pindiag.model import (
    Block,
    BlockOrder,
    DatasetChanged,
    LaunchBegan,
    RunSpec,
    Treatment,
    TreatmentApplied,
    TreatmentRefused,
    Window,
)
from pindiag.plan.batch_size import batch_sizes
from pindiag.plan.grid import asked_treatments, default_treatments, parse_grid, whole_grid
from pindiag.plan.living_on import living_on
from pindiag.race import leader
from pindiag.stats import FEWEST_FOR_INTERVAL

HANGS_S = 30.0
"""A failure that took this long is too dear to be tried again."""
UNDECIDED = 10
"""Times the rounds asked for that a search may take, budget permitting: half-widths shrink to a third."""
BLOCK_S = 1.5
SHORT_BLOCK_S = 1.0
SHORT_BUDGET_S = 120.0

_LOADER_ARGUMENTS = {"num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size"}


class Failure(NamedTuple):
    """A launch that ended while, or before, it served a treatment."""

    launch: Launch
    seconds: float
    """Since it last was well."""

    @property
    def final(self) -> bool:
        """Whether trying again would only cost as much again: out of memory, or hung."""
        reason = "" if self.launch.ended is None else (self.launch.ended.reason or "").lower()
        return "memory" in reason or "/dev/shm" in reason or self.seconds >= HANGS_S


class Known:
    """The state of a run: nothing but what its records say."""

    def __init__(self, spec: RunSpec, journal: Journal) -> None:
        self.spec = spec
        self.journal = journal

    @cached_property
    def baseline(self) -> str:
        """The baseline's name."""
        return self.journal.baseline_id or DISCOVER_TRIAL

    @property
    def accelerator(self) -> str | None:
        """The device type that torch offers."""
        found = self.journal.chosen
        return None if found is None else found.accelerator

    def trial(self, launch: Launch) -> str:
        """What a fresh launch runs under."""
        if launch.order is not None and launch.order.patched:
            return PATCHED_TRIAL
        return self.journal.trial(DISCOVER_TRIAL if launch.treatment is None else launch.treatment.id)

    @cached_property
    def live_launches(self) -> list[Launch]:
        """Launches that run blocks of many treatments, the first one among them."""
        return [launch for launch in self.journal.launches if launch.isolation == "live"]

    @cached_property
    def discoveries(self) -> list[Launch]:
        """The first launch."""
        return [launch for launch in self.journal.launches if launch.purpose == "discover"]

    def profiled(self, trial: str) -> bool:
        """Whether a treatment has had its profiler window."""
        windows = (window for launch in self.journal.launches for window in launch.all(Window))
        return any(self.journal.trial(window.trial) == trial for window in windows)

    # ------------------------------------------------------------------------------------------------- what ends

    @cached_property
    def stopped(self) -> bool:
        """Whether nothing more is to be done."""
        since = [launch for launch in self.journal.launches if launch.id > self.journal.resumed_after]
        return any(launch.interrupted for launch in since) or self.journal.ended is not None

    @cached_property
    def baseline_fails(self) -> bool:
        """Once when it never ran, twice when it did: a script that fails by itself cannot be compared with."""
        if self.journal.baseline is None:
            return True
        runs = [launch for launch in self.journal.launches if self._is_plain(launch)]
        failures = sum(failure.launch.isolation == "fresh" for failure in self.failures.get(self.baseline, []))
        return failures > (1 if any(launch.measured for launch in runs) else 0) or self._never_ran

    def _is_plain(self, launch: Launch) -> bool:
        return launch.purpose != "scout" and self.trial(launch) == self.baseline

    @property
    def _never_ran(self) -> bool:
        tried = [launch for launch in self.discoveries if launch.ended and not launch.interrupted]
        return any(not launch.measured and not launch.past_natural_end for launch in tried)

    # ------------------------------------------------------------------------------------------- what goes wrong

    @cached_property
    def failures(self) -> dict[str, list[Failure]]:
        """Failed launches by the treatment that they failed under."""
        failed: dict[str, list[Failure]] = {}
        for launch in self.journal.launches:
            culprit = self._culprit(launch)
            if culprit is not None:
                failed.setdefault(culprit, []).append(Failure(launch, _last_part_s(launch)))
        return failed

    def _culprit(self, launch: Launch) -> str | None:
        if launch.purpose == "scout" or launch.past_natural_end or launch.interrupted:
            return None
        if launch.isolation == "fresh":
            return None if launch.measured else self.trial(launch)
        return next((self.journal.trial(order.trial) for order in launch.block_orders if gave_up(launch, order)), None)

    def out(self, trial: str) -> bool:
        """Whether a treatment is given up: no room for it, killed for memory, hung, not possible, or failed twice."""
        failures = self.failures.get(trial, [])
        if trial == self.baseline:
            failures = [failure for failure in failures if failure.launch.isolation == "fresh"]
        elif trial in self._refused:
            return True
        return len(failures) > 1 or any(failure.final for failure in failures)

    @cached_property
    def _refused(self) -> set[str]:
        """Treatments that the machine could not hold, ablations and tweaks that the loader does not allow."""
        no_room = {record.trial for launch in self.live_launches for record in launch.all(TreatmentRefused)}
        made = self.journal.treatments
        impossible = {
            applied.trial
            for applied in self._applied
            if applied.refused and applied.trial in made and made[applied.trial].kind != "configuration"
        }
        return no_room | impossible

    @cached_property
    def _applied(self) -> list[TreatmentApplied]:
        return [applied for launch in self.live_launches for applied in launch.all(TreatmentApplied)]

    # ----------------------------------------------------------------------------------------------- live or fresh

    @cached_property
    def everything_fresh(self) -> bool:
        """Whether no treatment can be told about by a live launch."""
        live = self.failures.get(self.baseline, [])
        baseline_fails = len(live) > 1 or any(failure.final for failure in live)
        return self.spec.fresh or baseline_fails or self._barren or (self._dataset_changes and not self._has_workers)

    @property
    def _barren(self) -> bool:
        """Two live launches in a row without a block that counts, and without a treatment that explains it."""
        over = [launch for launch in self.live_launches if launch.ended and not launch.lost]
        nothing = [not launch.measured and not self._explained(launch) for launch in over]
        return any(first and second for first, second in pairwise(nothing))

    def _explained(self, launch: Launch) -> bool:
        culprit = self._culprit(launch)
        return culprit not in (None, self.baseline) and self.out(culprit or "")

    @cached_property
    def _dataset_changes(self) -> bool:
        return any(launch.all(DatasetChanged) for launch in self.live_launches)

    @property
    def _has_workers(self) -> bool:
        return self.journal.baseline is not None and self.journal.baseline.num_workers > 0

    def runs_fresh(self, made: Treatment) -> bool:
        """Whether a configuration needs launches of its own.

        It changes the batches themselves, the loader did not let it be swapped in, or the dataset did not stay as
        it was while it served in the main process.
        """
        if self.everything_fresh or "batch_size" in made.changes or self._unswappable & made.changes.keys():
            return True
        return self._dataset_changes and made.configuration.num_workers == 0

    @cached_property
    def _unswappable(self) -> set[str]:
        return {name for applied in self._applied for name in applied.refused if name in _LOADER_ARGUMENTS}

    # ------------------------------------------------------------------------------------------------ what is asked

    @property
    def searches(self) -> bool:
        """Whether candidates are chosen by what is known, instead of by a grid."""
        return self.spec.sweep and not (self.spec.grid or self.spec.exhaustive or self.everything_fresh)

    @property
    def most_rounds(self) -> int:
        """Rounds of a race at most: a search whose leader is not decided has more than were asked for."""
        return self.spec.rounds * (UNDECIDED if self.searches and self.spec.rounds >= FEWEST_FOR_INTERVAL else 1)

    @cached_property
    def wanted(self) -> list[Treatment]:
        """Configurations to compare with the baseline, best guesses first."""
        baseline, found = self.journal.baseline, self.journal.chosen
        if not self.spec.sweep or baseline is None or found is None:
            return []
        sizes = batch_sizes(self.spec.batch_sizes, baseline)
        if self.spec.grid:
            return [*asked_treatments(parse_grid(self.spec.grid), baseline), *sizes]
        if self.spec.exhaustive:
            return [*whole_grid(baseline, self.spec.usable_cpus, found.accelerator), *sizes]
        live = not self.spec.fresh
        return [*default_treatments(baseline, self.spec.usable_cpus, found.accelerator, live=live), *sizes]

    @cached_property
    def candidate(self) -> str | None:
        """What is to be verified: what leads, else workers that live on; None when there is neither, or not asked."""
        if not (self.spec.sweep and self.spec.verify):
            return None
        if not self._leads_as_written:
            return leader(self.journal)
        return None if self.living_on is None else self.living_on.id

    @cached_property
    def living_on(self) -> Treatment | None:
        """Workers that live on, where nothing else leads. A grid names what to try, and they need whole epochs."""
        asked = self.spec.sweep and self.spec.verify and self.spec.steps is None and not self.spec.grid
        return living_on(self.journal) if asked and self._leads_as_written else None

    @cached_property
    def _leads_as_written(self) -> bool:
        return leader(self.journal) == self.journal.baseline_id

    # ------------------------------------------------------------------------------------------------------ orders

    def block(self, round_number: int, trial: str) -> BlockOrder:
        """A block with the next free number."""
        return BlockOrder(
            block=1 + max((block.block for block in self._ordered), default=0),
            round=round_number,
            trial=trial,
            seconds=SHORT_BLOCK_S if self._short else BLOCK_S,
            steps=self.spec.steps,
        )

    @property
    def _short(self) -> bool:
        return self.spec.budget_s < SHORT_BUDGET_S or not (self.spec.sweep or self.spec.fresh)

    @property
    def next_round(self) -> int:
        """The number of the next round."""
        return 1 + max((block.round for block in self._ordered), default=0)

    @cached_property
    def _ordered(self) -> list[BlockOrder]:
        orders = [order for launch in self.journal.launches for order in launch.orders]
        return [block for order in orders for block in (*order.blocks, *order.windows)]

    @property
    def natural_epochs(self) -> bool:
        """Whether the script does not bear epochs longer than its own."""
        return any(launch.past_natural_end or launch.natural_epochs for launch in self.journal.launches)


def gave_up(launch: Launch, order: BlockOrder) -> bool:
    """Whether a block of a live launch that is over failed, or would not have fitted into any launch.

    A block that a script's own end cut short has another try, unless it was the first of its launch.
    """
    if launch.ended is None or launch.past_natural_end or launch.interrupted:
        return False
    done = next((block for block in launch.all(Block) if block.block == order.block), None)
    if done is not None and done.status == "counted":
        return False
    refused = any(record.block == order.block for record in launch.all(TreatmentRefused))
    first = order.block == launch.block_orders[0].block
    return not refused and (launch.ended.status == "failed" or first)


def _last_part_s(launch: Launch) -> float:
    """From the last block that was done, or else its start, to a launch's end."""
    if launch.ended is None:
        return 0.0
    well: Sequence[Block | LaunchBegan] = [*launch.all(LaunchBegan), *launch.all(Block)]
    began_ns = launch.ended.t_ns - round(launch.ended.seconds * 1e9)
    return (launch.ended.t_ns - max((record.t_ns for record in well), default=began_ns)) / 1e9
