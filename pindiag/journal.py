"""The records of a run by launch, and the few things that both plan and analysis read from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeVar

from pindiag.model import (
    AnyRecord,
    Block,
    Configuration,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    Machine,
    RunEnded,
    TargetFailed,
    Treatment,
)
from pindiag.stats import Rate

DISCOVER_TRIAL = "baseline"
"""What the first launch calls its block: the configuration, and with it the id, is not known yet."""

Purpose = Literal["discover", "round", "verify"]
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

    @property
    def order(self) -> LaunchOrder | None:
        """What plan had asked for."""
        began = self.first(LaunchBegan)
        return None if began is None else began.order

    @property
    def purpose(self) -> Purpose:
        """Why it was started."""
        return "round" if self.order is None else self.order.purpose

    @property
    def treatment(self) -> Treatment | None:
        """What it ran under; None: the script as written."""
        return None if self.order is None else self.order.treatment

    @property
    def round(self) -> int:
        """The round of its first block."""
        return self.order.blocks[0].round if self.order is not None and self.order.blocks else 1

    @property
    def ended(self) -> LaunchEnded | None:
        """How it ended; None while it runs, or when the parent died."""
        return self.first(LaunchEnded)

    @property
    def measured(self) -> bool:
        """Whether it gave a block that counts."""
        return any(usable(block) for block in self.all(Block))

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
        """What it took of the budget: from its first training step to its end."""
        first, ended = self.first(FirstStep), self.ended
        return (ended.t_ns - first.t_ns) / 1e9 if first is not None and ended is not None else 0.0


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
        """How the run ended; None while it runs, or when the parent died."""
        return self.run.first(RunEnded)

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
        for order in (launch.order for launch in self.launches):
            for treatment in [] if order is None else [*order.planned, order.treatment]:
                if treatment is not None:
                    found.setdefault(treatment.id, treatment)
        return found

    def trial(self, name: str) -> str:
        """The id of a trial by the name that a record gives it."""
        return self.baseline_id or name if name == DISCOVER_TRIAL else name

    def blocks(self, *purposes: Purpose) -> list[Block]:
        """Blocks that count, of launches with one of these purposes."""
        return [
            block
            for launch in self.launches
            if launch.purpose in purposes
            for block in launch.all(Block)
            if usable(block)
        ]

    def rates(self, *purposes: Purpose) -> list[Rate]:
        """Throughput of the blocks that count."""
        return [
            Rate(round=block.round, trial=self.trial(block.trial), value=block.samples / block.seconds)
            for block in self.blocks(*purposes)
        ]
