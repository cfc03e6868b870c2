"""A run's launches, one after another, until nothing more is to be measured."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from pindiag.errors import DiskFull
from pindiag.launch import kept
from pindiag.launch.guardianship import Guardian
from pindiag.launch.interrupts import Interrupts
from pindiag.launch.launch import bootstrap, carry_out, mark
from pindiag.launch.machine import read_machine
from pindiag.launch.nvml import Nvml
from pindiag.launch.patience import Limits
from pindiag.launch.resume import last_launch
from pindiag.launch.surroundings import Decide, Surroundings
from pindiag.model import AnyRecord, Machine, RunEnded, RunSpec, Sample
from pindiag.store import RunDirectory

PROBE = Path(__file__).parents[1] / "probe"


class Session:
    """Carries out what `decide` orders and writes it down as it happens.

    Args:
        spec: what was asked.
        run: where it is written.
        on_record: is told every record but the samples, in the order in which they become known.
        limits: how long a launch may take for what it does.
        probe: folder of the files that are copied into the run and executed there.
        clock_ns: the clock of all records.
    """

    def __init__(
        self,
        spec: RunSpec,
        run: RunDirectory,
        *,
        on_record: Callable[[AnyRecord], None],
        limits: Limits | None = None,
        probe: Path = PROBE,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.records: list[AnyRecord] = [record for record in run.records() if not isinstance(record, Sample)]
        """Everything known so far, of a run that goes on from before too, but the samples; these stand in the journal
        only."""
        self._spec = spec
        self._run = RunDirectory(run.path.resolve())
        self._on_record = on_record
        self._limits = limits or Limits()
        self._probe = probe
        self._clock_ns = clock_ns
        self._encoder = msgspec.json.Encoder()

    def run(self, decide: Decide) -> RunEnded:
        """Launch what `decide` orders until it orders nothing more, the user interrupts, or the disk is full.

        However it ends: no process of the target is left, the user's files are as before, and what was measured is
        on disk.

        Args:
            decide: says what to launch, and what a live launch is to do, from all that is known so far.

        Raises:
            DiskFull: the run directory's disk is full.
        """
        with Interrupts() as interrupts, Guardian(mark(self._run)) as guardian:
            try:
                with self._run.filling():
                    self._measure(decide, interrupts, guardian)
            except BaseException as error:
                self._finish("failed", str(error) or type(error).__name__)
                raise
            return self._finish("interrupted" if interrupts.reason else "ok", interrupts.reason)

    def _measure(self, decide: Decide, interrupts: Interrupts, guardian: Guardian) -> None:
        nvml = Nvml()
        if not any(isinstance(record, Machine) for record in self.records):
            self._write(read_machine(nvml))
        self._copy_probe()
        around = Surroundings(
            spec=self._spec,
            run=self._run,
            decide=decide,
            records=self.records,
            guardian=guardian,
            interrupts=interrupts,
            nvml=nvml,
            limits=self._limits,
            write=self._write,
            hear=self._hear,
            clock_ns=self._clock_ns,
        )
        number = last_launch(self._run, self.records)
        while interrupts.reason is None and (order := decide.next_launch(self.records)) is not None:
            number += 1
            before = kept.Snapshot.take([Path(self._spec.cwd), self._script_folder()], self._run)
            try:
                carry_out(order, number, around)
            finally:
                self._write(kept.settle_launch(self._run, number, before))

    def _copy_probe(self) -> None:
        folder = bootstrap(self._run).parent
        folder.mkdir(parents=True, exist_ok=True)
        for source in self._probe.glob("*.py"):
            shutil.copyfile(source, folder / source.name)

    def _finish(self, status: Literal["ok", "failed", "interrupted"], reason: str | None) -> RunEnded:
        """The last of the user's files, and the last record; a full disk must not keep the files from going back."""
        ended = RunEnded(launch=0, t_ns=self._clock_ns(), status=status, reason=reason)
        with contextlib.suppress(DiskFull), self._run.filling():
            self._write(kept.settle_run(self._run, Path(self._spec.cwd), self._script_folder()))
            ended = msgspec.structs.replace(ended, t_ns=self._clock_ns())
            self._write(ended)
        return ended

    def _script_folder(self) -> Path:
        return Path(self._spec.cwd) if self._spec.module else Path(self._spec.target).parent

    def _write(self, record: AnyRecord) -> None:
        self._run.append(self._run.journal / "parent.jsonl", self._encoder.encode(record))
        self._hear(record)

    def _hear(self, record: AnyRecord) -> None:
        self.records.append(record)
        self._on_record(record)
