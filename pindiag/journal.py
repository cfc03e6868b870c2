"""The records of a run by launch, and the few things that both plan and analysis read from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from pindiag.disturbance import Disturbance, disturbances, is_usual
from pindiag.model import (
    AnyRecord,
    Block,
    BlockLoad,
    BlockOrder,
    BlockPhase,
    BlocksOrdered,
    Configuration,
    DatasetChanged,
    FirstStep,
    Isolation,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    LoaderIterated,
    Machine,
    MemoryRead,
    NextBlocks,
    Purpose,
    RunEnded,
    RunResumed,
    TargetFailed,
    Treatment,
    TreatmentApplied,
    TreatmentRefused,
    Window,
)
from pindiag.stats import Rate, median

DISCOVER_TRIAL = "baseline"
"""What the first launch calls its block: the configuration, and with it the id, is not known yet."""
PATCHED_TRIAL = "patched"
"""What launches with the run's patch in the files call theirs."""

T = TypeVar("T")


def usable(block: Block) -> bool:
    """Whether a block's throughput counts."""
    return block.status == "counted" and block.samples > 0 and block.seconds > 0


class Launch:
    """The records of one launch; any of them may be missing where a process died."""

    def __init__(self, number: int, records: Iterable[AnyRecord]) -> None:
        self.id = number
        self._by_kind: dict[type, list[Any]] = defaultdict(list)
        for record in records:
            self._by_kind[type(record)].append(record)

    def all(self, kind: type[T]) -> list[T]:
        """Its records of a kind, in the order of time."""
        return self._by_kind.get(kind, [])

    def first(self, kind: type[T]) -> T | None:
        """The first record of a kind."""
        return next(iter(self.all(kind)), None)

    @cached_property
    def order(self) -> LaunchOrder | None:
        """What plan had asked for."""
        began = self.first(LaunchBegan)
        return None if began is None else began.order

    @cached_property
    def purpose(self) -> Purpose:
        """Why it was started."""
        return "round" if self.order is None else self.order.purpose

    @cached_property
    def isolation(self) -> Isolation:
        """Whether it ran blocks of many treatments (live) or of one."""
        return "fresh" if self.order is None else self.order.isolation

    @property
    def treatment(self) -> Treatment | None:
        """What it ran under; None: the script as written."""
        return None if self.order is None else self.order.treatment

    @property
    def round(self) -> int:
        """The round of its first block."""
        return self.order.blocks[0].round if self.order is not None and self.order.blocks else 1

    @cached_property
    def orders(self) -> list[NextBlocks]:
        """What it was told to do, the order that it was started with first."""
        order = self.order
        first = [] if order is None else [_as_next(order)]
        return first + [told.next for told in self.all(BlocksOrdered)]

    @cached_property
    def block_orders(self) -> list[BlockOrder]:
        """All blocks that it was told to run."""
        return [block for order in self.orders for block in order.blocks]

    @property
    def unfinished(self) -> BlockOrder | None:
        """The block that it was told to run and has not reported: the running one, or the one in which it ended."""
        done = {block.block for block in self.all(Block) if block.status != "failed"}
        done |= {refused.block for refused in self.all(TreatmentRefused)}
        return next((order for order in self.block_orders if order.block not in done), None)

    def trial_of(self, order: BlockOrder) -> Treatment | None:
        """What a block of it runs under; None: the script as written."""
        return order.treatment or self.treatment

    @cached_property
    def ended(self) -> LaunchEnded | None:
        """How it ended; None while it runs, or when the parent died."""
        return self.first(LaunchEnded)

    @property
    def measured(self) -> bool:
        """Whether it gave a block that counts."""
        return bool(self.counted)

    @property
    def interrupted(self) -> bool:
        """Whether it was cut with its run, which says nothing about what it ran under."""
        return self.ended is not None and self.ended.status == "interrupted"

    @property
    def lost(self) -> bool:
        """Whether it was cut before it gave a block that counts: what it was to do has another turn."""
        return self.interrupted and not self.measured

    @cached_property
    def counted(self) -> list[Block]:
        """Its blocks whose throughput counts.

        In a live launch these end with the block in which the dataset changed, and neither what ran under a treatment
        that could not be applied nor what was repeated because something disturbed it is one of them.
        """
        return [block for block in self._valid if block.block not in self.replaced]

    @cached_property
    def _valid(self) -> list[Block]:
        own = [block for block in self.all(Block) if usable(block)]
        if self.isolation == "fresh":
            return own
        refused = {applied.trial for applied in self.all(TreatmentApplied) if applied.refused}
        return [block for block in own if not self.is_void(block) and block.trial not in refused]

    @cached_property
    def disturbed(self) -> dict[int, Disturbance]:
        """Its blocks that something from outside disturbed, with what that was."""
        return disturbances(self.all(BlockLoad))

    @property
    def load_is_usual(self) -> bool:
        """Whether so many of its blocks are disturbed that the machine is like this."""
        return is_usual(len(self.disturbed), len(self.all(BlockLoad)))

    @cached_property
    def to_repeat(self) -> frozenset[int]:
        """Disturbed blocks that are worth another turn: none in a fresh launch, or where the machine is like this."""
        return frozenset(() if self.load_is_usual or self.isolation == "fresh" else self.disturbed)

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Disturbed blocks that count for nothing, since another of the same treatment and round went undisturbed."""
        calm = {(block.round, block.trial) for block in self._valid if block.block not in self.to_repeat}
        return frozenset(
            block.block for block in self._valid if block.block in self.to_repeat and (block.round, block.trial) in calm
        )

    def is_void(self, block: Block) -> bool:
        """Whether a block of a live launch ran on a dataset that an earlier one had changed."""
        return self._changed_at is not None and block.block > self._changed_at

    @cached_property
    def _changed_at(self) -> int | None:
        changes = self.all(DatasetChanged) if self.isolation == "live" else []
        return min((changed.block for changed in changes), default=None)

    @cached_property
    def births(self) -> list[LoaderIterated]:
        """Iterators of the training loader."""
        chosen = self.first(LoaderChosen)
        return [birth for birth in self.all(LoaderIterated) if chosen is None or birth.loader == chosen.loader]

    @property
    def worker_starts(self) -> list[LoaderIterated]:
        """Those that started workers."""
        return [birth for birth in self.births if birth.configuration.num_workers > 0]

    @property
    def past_natural_end(self) -> bool:
        """Whether the script failed because it was given more steps than its own epochs have."""
        return any(failure.past_natural_end for failure in self.all(TargetFailed)) and not self.natural_epochs

    @property
    def natural_epochs(self) -> bool:
        """Whether its epochs ended where the script's own do."""
        return self.order is not None and self.order.natural_epochs

    @property
    def spent_s(self) -> float:
        """What it took of the budget: from its first training step to its end, or to what was last heard of it."""
        first = self.first(FirstStep)
        return 0.0 if first is None else max(0, self._latest_ns - first.t_ns) / 1e9

    @property
    def _latest_ns(self) -> int:
        heard = [*self.all(LaunchEnded), *self.all(Block), *self.all(BlockPhase), *self.all(Window)]
        return max((record.t_ns for record in heard), default=0)


class Journal:
    """All records of a run."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        groups: dict[int, list[AnyRecord]] = defaultdict(list)
        for record in records:
            groups[record.launch].append(record)
        self.run = Launch(0, groups.pop(0, []))
        self.launches = [Launch(number, groups[number]) for number in sorted(groups)]

    @property
    def machine(self) -> Machine | None:
        """The machine, as it was when the run began."""
        return self.run.first(Machine)

    @property
    def ended(self) -> RunEnded | None:
        """How the run ended; None while it runs, also again, or when the parent died."""
        ended, resumed = self.run.all(RunEnded)[-1:], self.run.all(RunResumed)[-1:]
        return None if not ended or (resumed and resumed[0].t_ns > ended[0].t_ns) else ended[0]

    @cached_property
    def resumed_after(self) -> int:
        """The number of the last launch before the run was resumed; 0: it never was."""
        return max((resumed.launches for resumed in self.run.all(RunResumed)), default=0)

    @cached_property
    def chosen(self) -> LoaderChosen | None:
        """The training loader of the script as written."""
        as_written = (launch for launch in self.launches if launch.treatment is None or not launch.treatment.changes)
        return next((found for launch in as_written if (found := launch.first(LoaderChosen)) is not None), None)

    @cached_property
    def baseline(self) -> Configuration | None:
        """What the script itself says."""
        return None if self.chosen is None else self.chosen.configuration

    @cached_property
    def baseline_id(self) -> str | None:
        """The baseline's name."""
        return None if self.baseline is None else self.baseline.id

    @cached_property
    def treatments(self) -> dict[str, Treatment]:
        """All treatments that were run or planned, the baseline first."""
        found: dict[str, Treatment] = {}
        if self.baseline is not None:
            found[self.baseline.id] = Treatment(id=self.baseline.id, kind="configuration", configuration=self.baseline)
        for launch in self.launches:
            if launch.purpose == "scout":
                continue
            told = [treatment for order in launch.orders for treatment in order.planned]
            for treatment in [*told, launch.treatment, *(block.treatment for block in launch.block_orders)]:
                if treatment is not None:
                    found.setdefault(treatment.id, treatment)
        return found

    @cached_property
    def skipped(self) -> dict[str, str]:
        """Treatments that plan left out and did not take in later, with its reason."""
        found: dict[str, str] = {}
        for order in (order for launch in self.launches for order in launch.orders):
            run = {made.id for made in order.planned} - order.skipped.keys()
            found = {name: reason for name, reason in found.items() if name not in run} | order.skipped
        return found

    @cached_property
    def predicted(self) -> dict[str, float]:
        """What configurations were predicted to reach at most before they ran, or were left out for it, samples/s."""
        orders = (order for launch in self.launches for order in launch.orders)
        return {name: most for order in orders for name, most in order.predicted.items()}

    @property
    def running(self) -> Launch | None:
        """The launch that has begun and not ended."""
        return next((launch for launch in self.launches if launch.ended is None), None)

    def trial(self, name: str) -> str:
        """The id of a trial by the name that a record gives it."""
        return self.baseline_id or name if name == DISCOVER_TRIAL else name

    def blocks(self, *purposes: Purpose, isolation: Isolation | None = None) -> list[Block]:
        """Blocks that count, of launches with one of these purposes and, where it is given, of one isolation."""
        return [
            block
            for launch in self.launches
            if launch.purpose in purposes and isolation in (None, launch.isolation)
            for block in launch.counted
        ]

    def rates(self, *purposes: Purpose, isolation: Isolation | None = None) -> list[Rate]:
        """Throughput of the blocks that count."""
        return [
            Rate(round=block.round, trial=self.trial(block.trial), value=block.samples / block.seconds)
            for block in self.blocks(*purposes, isolation=isolation)
        ]

    def verify_rates(self, *, steady: bool = False) -> list[Rate]:
        """Throughput of the verifying launches.

        Over whole epochs, where each of them covered some; over the steps that a block of steps counts, where one did
        not, or to compare with such blocks.

        Args:
            steady: over those steps in any case.
        """
        blocks = self.blocks("verify")
        whole = not steady and all(block.epochs is not None for block in blocks)
        rates = [(block, block.samples / block.seconds if whole else steady_rate(block)) for block in blocks]
        return [
            Rate(round=block.round, trial=self.trial(block.trial), value=rate)
            for block, rate in rates
            if rate is not None
        ]

    @property
    def verified_epochs(self) -> int | None:
        """How many whole epochs each verifying launch covered at least; None where blocks of steps are compared."""
        covered = [None if block.epochs is None else block.epochs.epochs for block in self.blocks("verify")]
        known = [count for count in covered if count is not None]
        return min(known) if known and len(known) == len(covered) else None

    def births(self, launches: Iterable[Launch], trial: str) -> list[LoaderIterated]:
        """Iterators of the training loader that began a trial's turns in some launches."""
        return [birth for launch in launches for birth in self._births(launch, trial)]

    def _births(self, launch: Launch, trial: str) -> list[LoaderIterated]:
        """The first one of a fresh launch, which runs nothing else; those that serve it in a live one."""
        if launch.isolation == "fresh":
            return launch.births[:1]
        return [birth for birth in launch.births if self.trial(birth.trial or DISCOVER_TRIAL) == trial]

    def startup_s(self, launches: Iterable[Launch], trial: str) -> float | None:
        """Median time from `__iter__` to the first batch of a trial's turns."""
        times = [born.first_batch_ms / 1e3 for born in self.births(launches, trial) if born.first_batch_ms is not None]
        return median(times) if times else None

    def memory(self, launches: Iterable[Launch], trial: str) -> list[MemoryRead]:
        """Memory that was read at the end of a trial's blocks."""
        return [
            read
            for launch in launches
            for read in launch.all(MemoryRead)
            if read.phase == "counted" and self.trial(read.trial) == trial
        ]

    def read_bytes(self, launches: Iterable[Launch], trial: str, field: str) -> int | None:
        """Median of a field of these readings."""
        values = [value for read in self.memory(launches, trial) if (value := getattr(read, field)) is not None]
        return int(median(values)) if values else None

    def pinned_bytes(self, launches: Iterable[Launch], trial: str) -> int | None:
        """Most that the pinned allocator held at the end of a trial's blocks that count."""
        blocks = [block for launch in launches for block in launch.counted if self.trial(block.trial) == trial]
        levels = [block.host_allocator.reserved_bytes for block in blocks if block.host_allocator is not None]
        return max((level for level in levels if level is not None), default=None)


def steady_rate(block: Block) -> float | None:
    """Of the steps after the queue had turned over; None where these are less than half of the epochs.

    The last steps of an epoch are flattered: nothing is left for the workers to do beside them.
    """
    whole = block.epochs
    if whole is None:
        return block.samples / block.seconds
    enough = 2 * whole.steady_steps >= block.steps and whole.steady_seconds > 0
    return whole.steady_samples / whole.steady_seconds if enough else None


def _as_next(order: LaunchOrder) -> NextBlocks:
    return NextBlocks(blocks=order.blocks, planned=order.planned, skipped=order.skipped, predicted=order.predicted)
