"""What all launches of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from pindiag.launch.guardianship import Guardian
from pindiag.launch.interrupts import Interrupts
from pindiag.launch.nvml import Nvml
from pindiag.launch.patience import Limits
from pindiag.model import AnyRecord, LaunchOrder, NextBlocks, RunSpec
from pindiag.store import RunDirectory

Emit = Callable[[AnyRecord], None]


class Decide(Protocol):
    """Says what is to be measured next; both are given everything that is known so far."""

    def next_launch(self, records: Sequence[AnyRecord], /) -> LaunchOrder | None:
        """What to launch; None when nothing more is to be measured."""

    def next_blocks(self, records: Sequence[AnyRecord], /) -> NextBlocks:
        """What the running live launch is to do, now that it has done everything that it was told."""


class Surroundings(NamedTuple):
    """What all launches of a run share."""

    spec: RunSpec
    run: RunDirectory
    decide: Decide
    records: Sequence[AnyRecord]
    """Everything known so far; it grows."""
    guardian: Guardian
    interrupts: Interrupts
    nvml: Nvml
    limits: Limits
    write: Emit
    """Takes the parent's own records: journal, then listeners."""
    hear: Emit
    """Takes the child's records, which stand in its own journal."""
    clock_ns: Callable[[], int]
