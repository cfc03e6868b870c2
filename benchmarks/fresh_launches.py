"""Launches of a benchmark's own choice, made by the product: one treatment and one block each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pindiag import __version__
from pindiag.journal import Journal, Launch
from pindiag.launch.cpus import usable_cpus
from pindiag.launch.resume import prepare
from pindiag.launch.session import Session
from pindiag.launch.surroundings import Decide
from pindiag.model import AnyRecord, BlockOrder, LaunchOrder, NextBlocks, RunSpec, Treatment
from pindiag.store import RunDirectory


class FreshOnly:
    """What plans without live launches have in common."""

    def next_blocks(self, _: Sequence[AnyRecord], /) -> NextBlocks:
        """Nothing: fresh launches are told all beforehand."""
        return NextBlocks()


class InOrder(FreshOnly):
    """Asks for one launch after another, whatever becomes of them."""

    def __init__(self, orders: Iterable[LaunchOrder]) -> None:
        self._orders = iter(orders)

    def next_launch(self, _: Sequence[AnyRecord], /) -> LaunchOrder | None:
        """The next one, or None after the last."""
        return next(self._orders, None)


def spec_of(script: Path, arguments: Sequence[str]) -> RunSpec:
    """What is asked of a script that is only launched."""
    return RunSpec(
        target=str(script.resolve()),
        module=False,
        args=list(arguments),
        cwd=os.getcwd(),
        python=sys.executable,
        started_utc="",
        command=sys.argv,
        sweep=False,
        grid=None,
        budget_s=60.0,
        rounds=1,
        steps=None,
        seed=0,
        device=None,
        loader=None,
        wait_s=600.0,
        fresh=True,
        usable_cpus=usable_cpus()[0],
        pindiag_version=__version__,
    )


def as_written(seconds: float) -> LaunchOrder:
    """One block of the script as written."""
    block = BlockOrder(block=1, round=1, trial="baseline", seconds=seconds)
    return LaunchOrder(purpose="discover", treatment=None, blocks=[block])


def of_treatment(treatment: Treatment, turn: int, number: int, seconds: float) -> LaunchOrder:
    """One block of a treatment, `number` among all blocks, in the round `turn`."""
    block = BlockOrder(block=number, round=turn, trial=treatment.id, seconds=seconds)
    return LaunchOrder(purpose="round", treatment=treatment, blocks=[block])


def launch_all(spec: RunSpec, orders: Iterable[LaunchOrder], folder: Path) -> Journal:
    """Launch them one after another in a run directory of their own.

    Raises:
        KeyboardInterrupt: the user interrupted.
    """
    journal = conduct(spec, InOrder(orders), folder)
    end_if_interrupted(journal)
    return journal


def launch_missing(spec: RunSpec, orders: Iterable[LaunchOrder], folder: Path) -> Journal:
    """Launch those that a run directory has not, all where there is none; interrupted, what was launched."""
    if not RunDirectory(folder).spec_path.is_file():
        return conduct(spec, InOrder(orders), folder)
    directory = RunDirectory.open(folder)
    prepare(directory)
    there = {_turn(launch.order) for launch in ran(Journal(directory.records())) if launch.order is not None}
    return _conduct(spec, InOrder(order for order in orders if _turn(order) not in there), directory)


def conduct(spec: RunSpec, plan: Decide, folder: Path) -> Journal:
    """Launch what a plan asks for, until it asks for nothing, in a run directory of their own.

    Interrupted, it is what was launched.
    """
    directory = RunDirectory.create(folder)
    directory.write_spec(spec)
    return _conduct(spec, plan, directory)


def _conduct(spec: RunSpec, plan: Decide, directory: RunDirectory) -> Journal:
    session = Session(spec, directory, on_record=lambda _: None)
    session.run(plan)
    return Journal(session.records)


def _turn(order: LaunchOrder) -> tuple[int, str]:
    block = order.blocks[0]
    return block.round, block.trial


def ran(journal: Journal) -> list[Launch]:
    """The launches that were not cut before they gave what they were for."""
    return [launch for launch in journal.launches if launch.ended is not None and not launch.lost]


def is_interrupted(journal: Journal) -> bool:
    """Whether the user ended it."""
    return journal.ended is not None and journal.ended.status == "interrupted"


def end_if_interrupted(journal: Journal) -> None:
    """Let an interruption that ended these launches end the benchmark too.

    Raises:
        KeyboardInterrupt: there was one.
    """
    if is_interrupted(journal):
        raise KeyboardInterrupt
