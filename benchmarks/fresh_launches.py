"""Launches of a benchmark's own choice, made by the product: one treatment and one block each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pindiag import __version__
from pindiag.journal import Journal
from pindiag.launch.cpus import usable_cpus
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
    """Launch them one after another in a run directory of their own."""
    return conduct(spec, InOrder(orders), folder)


def conduct(spec: RunSpec, plan: Decide, folder: Path) -> Journal:
    """Launch what a plan asks for, until it asks for nothing, in a run directory of their own.

    Raises:
        KeyboardInterrupt: the user interrupted.
    """
    directory = RunDirectory.create(folder)
    directory.write_spec(spec)
    session = Session(spec, directory, on_record=lambda _: None)
    if session.run(plan).status == "interrupted":
        raise KeyboardInterrupt
    return Journal(session.records)
