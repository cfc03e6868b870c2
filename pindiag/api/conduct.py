"""What a run does next, and what its user is told meanwhile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    DatasetChanged,
    FirstStep,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    NextBlocks,
    RunSpec,
    TreatmentApplied,
    TreatmentRefused,
)

PROVISIONAL_AFTER_S = 30.0
"""Of measuring, before a first verdict is worth telling."""


@dataclasses.dataclass(frozen=True)
class Step:
    """What is measured next: a launch begins, or a block of a live one."""

    now: str
    done: int
    total: int
    seconds_left: float | None
    best: str | None
    """The leading treatment and its ratio, once there is one."""


class Observer(Protocol):
    """Is told what happens while a run goes on."""

    def step(self, step: Step) -> None:
        """A launch or a block begins."""

    def note(self, text: str) -> None:
        """A detail."""

    def say(self, text: str) -> None:
        """Something that matters."""


class Silence:
    """An observer that says nothing."""

    def step(self, step: Step) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def say(self, text: str) -> None:
        """Say nothing."""


class Conductor:
    """Answers what `launch` asks: what plan orders, told to the observer as it happens.

    At the end of each live round it judges what is known by then, and tells the verdict where it has changed.

    Args:
        spec: what the user asked.
        progress: is told what begins.
    """

    def __init__(self, spec: RunSpec, progress: Observer) -> None:
        self._spec = spec
        self._progress = progress
        self._told = ""

    def next_launch(self, records: Sequence[AnyRecord]) -> LaunchOrder | None:
        """The next launch, None where the run is complete."""
        from pindiag.plan.schedule import next_order

        order = next_order(self._spec, records)
        if order is not None:
            self._tell(_what(order), records)
        return order

    def next_blocks(self, records: Sequence[AnyRecord]) -> NextBlocks:
        """What the live launch that runs is to do next."""
        from pindiag.plan.schedule import next_blocks

        told = next_blocks(self._spec, records)
        if told.planned and _measured_s(records) >= PROVISIONAL_AFTER_S:
            self._judge(records)
        for block in told.blocks[:1]:
            self._tell(_what_block(block), records)
        if told.windows:
            self._tell(f"profiling {len(told.windows)} configuration{'s' * (len(told.windows) > 1)}", records)
        return told

    def _tell(self, now: str, records: Sequence[AnyRecord]) -> None:
        from pindiag.plan.schedule import leading, remaining

        left = remaining(self._spec, records)
        best = leading(self._spec, records)
        self._progress.step(
            Step(
                now=now,
                done=left.done,
                total=max(left.total, left.done + 1),
                seconds_left=left.seconds_left,
                best=None if best is None else f"{best[0]} {best[1]:.2f} ×",
            )
        )

    def _judge(self, records: Sequence[AnyRecord]) -> None:
        headline = provisional(self._spec, records)
        if headline != self._told:
            self._told = headline
            self._progress.say(f"so far: {headline}")


def provisional(spec: RunSpec, records: Sequence[AnyRecord]) -> str:
    """The headline of what is known while a run goes on, from its records alone."""
    from pindiag import rules
    from pindiag.analysis import analyse
    from pindiag.analysis.pairs import between

    analysis = analyse(spec, records, [], {}, {})
    going_on = msgspec.structs.replace(analysis.target, status="ok")
    inputs = rules.Inputs.of(msgspec.structs.replace(analysis, target=going_on), between(analysis))
    return rules.verdict(rules.judge(inputs), inputs).headline


def _measured_s(records: Sequence[AnyRecord]) -> float:
    begun = next((record.t_ns for record in records if isinstance(record, FirstStep)), None)
    return 0.0 if begun is None else (records[-1].t_ns - begun) / 1e9


def _what(order: LaunchOrder) -> str:
    if order.purpose == "discover":
        return "the script as written"
    if order.purpose == "scout":
        return "reading the threads of a fresh process"
    if order.treatment is None:
        return f"round {order.blocks[0].round}: a new launch"
    if order.purpose == "verify":
        return f"verifying {order.treatment.id}"
    return f"round {order.blocks[0].round}: {order.treatment.id}"


def _what_block(block: BlockOrder) -> str:
    return f"round {block.round}: {block.trial}"


def teller(progress: Observer) -> Callable[[AnyRecord], None]:
    """A listener that turns records into notes, and warns of what the script as written may die of."""

    def tell(record: AnyRecord) -> None:
        if isinstance(record, LoaderChosen):
            progress.note(f"training loader: {record.key.location} ({record.why})")
            why = too_little_memory(record) if record.launch == 1 else None
            if why is not None:
                progress.say(f"the script as written may die of it: {why}")
        elif isinstance(record, Block):
            rate = record.samples / record.seconds if record.seconds else 0.0
            progress.note(f"{record.trial}: {rate:.0f} samples/s over {record.steps} steps ({record.status})")
        elif isinstance(record, TreatmentApplied):
            for change, reason in record.refused.items():
                progress.say(f"{record.trial}: {change} could not be changed: {reason}")
        elif isinstance(record, TreatmentRefused):
            progress.say(f"{record.trial} is not run: {record.reason}")
        elif isinstance(record, DatasetChanged):
            progress.note(f"{record.trial} changed the dataset ({record.what}): it gets launches of its own")
        elif isinstance(record, LaunchEnded) and record.status == "failed":
            progress.say(f"launch {record.launch} failed: {record.reason or record.exit}")

    return tell


def too_little_memory(found: LoaderChosen) -> str | None:
    """Why the batches that a loader may have in flight do not fit into what is free, those that are there left out."""
    from pindiag.launch import machine
    from pindiag.launch.reckon import need, reason_to_skip

    needed = need(found.configuration, found.batch_bytes, pins=found.accelerator is not None)
    return reason_to_skip(found.configuration, needed, machine.free_memory().without(needed.queue_bytes))
