"""Lets a launch run only what the machine can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from pindiag.launch import machine
from pindiag.launch.footprint import met
from pindiag.launch.reckon import reason_to_refuse
from pindiag.launch.surroundings import Emit, Surroundings
from pindiag.model import (
    AnyRecord,
    Base,
    BlockOrder,
    BlocksOrdered,
    LaunchBegan,
    LoaderChosen,
    NextBlocks,
    TreatmentRefused,
)


class Opening(Base, frozen=True, kw_only=True):
    """What a launch begins with."""

    blocks: list[BlockOrder]
    notes: Sequence[AnyRecord] = ()
    """What was refused and ordered before it was started."""
    refused: str | None = None
    """Why it must not be started."""


def chosen(records: Sequence[AnyRecord]) -> LoaderChosen | None:
    """The training loader, of the script as written."""
    return next((record for record in records if isinstance(record, LoaderChosen)), None)


def opening(began: LaunchBegan, around: Surroundings) -> Opening:
    """Reckon the memory of a launch that is to be started.

    Args:
        began: how its record will begin; for plan it has begun when blocks are asked instead of refused ones.
        around: what all launches of the run share.
    """
    order = began.order
    if order.isolation == "fresh":
        found, shown = chosen(around.records), met(around.records)
        reason = reason_to_refuse(order.treatment, found, machine.free_memory(), met=shown)
        return Opening(blocks=order.blocks, refused=reason)
    notes: list[AnyRecord] = []
    admission = Admission(began.launch, around, write=notes.append, records=lambda: [*around.records, began, *notes])
    blocks = admission.admit(NextBlocks(blocks=order.blocks), None).blocks
    return Opening(blocks=blocks, notes=notes, refused=None if blocks else _last_reason(notes))


def _last_reason(notes: Sequence[AnyRecord]) -> str | None:
    return next((note.reason for note in reversed(notes) if isinstance(note, TreatmentRefused)), None)


class Admission:
    """Stands between plan and a live launch: a block that would not fit is written down, and plan is asked again.

    Args:
        launch: number of the launch.
        around: what all launches of the run share.
        write: takes the records of what was ordered and refused.
        records: gives everything known, those records included.
    """

    def __init__(
        self, launch: int, around: Surroundings, *, write: Emit, records: Callable[[], Sequence[AnyRecord]]
    ) -> None:
        self._launch = launch
        self._around = around
        self._write = write
        self._records = records

    def ask(self, last: BlockOrder | None) -> NextBlocks:
        """What the launch is to do after its last block."""
        return self.admit(self._order(), last)

    def admit(self, told: NextBlocks, last: BlockOrder | None) -> NextBlocks:
        """What of an order fits, or of the next one where nothing does; nothing where the user interrupts."""
        while told.blocks and self._around.interrupts.reason is None:
            blocks = [block for block in told.blocks if not self._refuses(block, last)]
            if blocks:
                return msgspec.structs.replace(told, blocks=blocks)
            told = self._order()
        return msgspec.structs.replace(told, blocks=[])

    def _order(self) -> NextBlocks:
        told = self._around.decide.next_blocks(self._records())
        self._write(BlocksOrdered(launch=self._launch, t_ns=self._around.clock_ns(), next=told))
        return told

    def _refuses(self, block: BlockOrder, last: BlockOrder | None) -> bool:
        found = chosen(self._around.records)
        running = None if last is None or found is None else (last.treatment or found).configuration
        shown = met(self._around.records)
        reason = reason_to_refuse(block.treatment, found, machine.free_memory(), running=running, met=shown)
        if reason is not None:
            now_ns = self._around.clock_ns()
            self._write(
                TreatmentRefused(launch=self._launch, t_ns=now_ns, block=block.block, trial=block.trial, reason=reason)
            )
        return reason is not None
