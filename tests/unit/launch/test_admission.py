from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from pindiag.launch.admission import Admission
from pindiag.launch.surroundings import Surroundings
from pindiag.model import AnyRecord, BlockOrder, BlocksOrdered, NextBlocks, Treatment, TreatmentRefused

from .records import configuration, found


def order(number: int, workers: int) -> BlockOrder:
    """A block; no machine holds the queue of ten thousand workers with batches of a GB."""
    made = Treatment(id=f"nw{workers}", kind="configuration", configuration=configuration(workers))
    return BlockOrder(block=number, round=1, trial=made.id, treatment=made)


def blocks(*orders: BlockOrder) -> NextBlocks:
    return NextBlocks(blocks=list(orders))


HUGE, SMALL = order(1, 10_000), order(2, 1)


class Plan:
    """Orders what it was given, the last of it again and again."""

    def __init__(self, *told: NextBlocks) -> None:
        self._told = list(told)
        self.interrupts = SimpleNamespace(reason=None)
        self.asked = 0

    def next_blocks(self, records: Sequence[AnyRecord]) -> NextBlocks:
        assert not self.asked or isinstance(records[-1], TreatmentRefused)
        self.asked += 1
        if self.asked == 5:
            self.interrupts.reason = "interrupted by Ctrl-C"
        return self._told.pop(0) if len(self._told) > 1 else self._told[0]


def admission(plan: Plan) -> tuple[Admission, list[AnyRecord]]:
    records: list[AnyRecord] = [found(2)]
    around = SimpleNamespace(records=records, decide=plan, interrupts=plan.interrupts, clock_ns=lambda: 7)
    surroundings = cast(Surroundings, cast(Any, around))
    return Admission(1, surroundings, write=records.append, records=lambda: records), records


def test_what_fits_is_told_as_it_was_ordered() -> None:
    made, records = admission(Plan(blocks(SMALL)))
    assert made.ask(None) == blocks(SMALL)
    assert records[1:] == [BlocksOrdered(launch=1, t_ns=7, next=blocks(SMALL))]


def test_what_does_not_fit_is_left_out() -> None:
    made, records = admission(Plan(blocks(HUGE, SMALL)))
    assert made.ask(None) == blocks(SMALL)
    assert [type(record) for record in records[1:]] == [BlocksOrdered, TreatmentRefused]


def test_plan_is_asked_until_something_fits() -> None:
    plan = Plan(blocks(HUGE), blocks(HUGE), blocks(SMALL))
    made, records = admission(plan)
    assert made.ask(None) == blocks(SMALL)
    assert plan.asked == 3
    assert [type(record) for record in records[1:]] == [BlocksOrdered, TreatmentRefused] * 2 + [BlocksOrdered]


def test_windows_are_not_reckoned() -> None:
    windows = NextBlocks(windows=[HUGE])
    made, _ = admission(Plan(blocks(HUGE), windows))
    assert made.ask(None) == windows


def test_an_interrupt_ends_the_asking() -> None:
    plan = Plan(blocks(HUGE))
    made, _ = admission(plan)
    assert made.ask(None) == NextBlocks()
    assert plan.asked == 5
