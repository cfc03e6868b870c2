"""One launch, from its order to the record that says how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pindiag.launch import cgroups, machine
from pindiag.launch.child import Child
from pindiag.launch.ending import Death, judge
from pindiag.launch.guardianship import Guardian
from pindiag.launch.interrupts import Interrupts
from pindiag.launch.kept import OFFLINE_ENVIRONMENT
from pindiag.launch.nvml import Nvml
from pindiag.launch.patience import Answer, Limits, Patience, slowest_block_s
from pindiag.launch.processes import Tree
from pindiag.launch.reckon import reason_to_skip
from pindiag.launch.sampler import MachineReader, Sampler
from pindiag.model import (
    AnyRecord,
    Block,
    BlockPhase,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    ProbeSpec,
    RunSpec,
    TargetEnded,
    TargetFailed,
    Unmeasured,
)
from pindiag.store import RunDirectory, read_journal

PROFILE_STEPS = 10
SCARCE_SHARE = 0.03
"""With less of the memory left than this, the kernel kills."""

QUIET = {"KINETO_LOG_LEVEL": "99"}
"""Kineto prints to the console otherwise."""

Emit = Callable[[AnyRecord], None]


class Surroundings(NamedTuple):
    """What all launches of a run share."""

    spec: RunSpec
    run: RunDirectory
    guardian: Guardian
    interrupts: Interrupts
    nvml: Nvml
    limits: Limits
    write: Emit
    """Takes the parent's own records: journal, then listeners."""
    hear: Emit
    """Takes the child's records, which stand in its own journal."""
    clock_ns: Callable[[], int]


def bootstrap(run: RunDirectory) -> Path:
    """The file that a launch executes."""
    return run.path / "probe" / "pindiag_probe" / "bootstrap.py"


def mark(run: RunDirectory) -> str:
    """How the argument of every launch of a run begins."""
    return str(run.path / "probe" / "launch-")


def carry_out(order: LaunchOrder, number: int, records: Sequence[AnyRecord], around: Surroundings) -> None:
    """Start the target, let it do its blocks, and leave nothing of it running.

    Everything that the launch tells goes to `around.write` and `around.hear`; LaunchEnded is the last of it.
    """
    began_ns = around.clock_ns()
    reason = _reason_to_skip(order, records)
    if reason is not None:
        _not_started(order, number, began_ns, reason, around)
        return
    with Child() as child:
        _header(order, number, around.run.target_log)
        try:
            pid = child.start(*_command(order, number, records, child, around), around.run.target_log)
        except OSError as error:
            _not_started(order, number, began_ns, f"the target could not be started: {error}", around)
            return
        with around.guardian.over(pid):
            Launch(order, number, records, child, around, pid=pid, began_ns=began_ns).run()


def _not_started(order: LaunchOrder, number: int, began_ns: int, reason: str, around: Surroundings) -> None:
    around.write(LaunchBegan(launch=number, t_ns=began_ns, pid=0, order=order))
    around.write(
        LaunchEnded(
            launch=number,
            t_ns=around.clock_ns(),
            status="failed",
            exit="not started",
            returncode=None,
            seconds=0.0,
            reason=reason,
        )
    )


def _reason_to_skip(order: LaunchOrder, records: Sequence[AnyRecord]) -> str | None:
    chosen = _chosen(records)
    if chosen is None or order.treatment is None or not order.treatment.changes:
        return None
    configuration = order.treatment.configuration
    growth = (configuration.batch_size or 1) / (chosen.configuration.batch_size or configuration.batch_size or 1)
    return reason_to_skip(configuration, int(chosen.batch_bytes * growth), machine.free_memory())


def _chosen(records: Sequence[AnyRecord]) -> LoaderChosen | None:
    return next((record for record in records if isinstance(record, LoaderChosen)), None)


def _header(order: LaunchOrder, number: int, log: Path) -> None:
    what = "the script as written" if order.treatment is None else order.treatment.id
    with log.open("a") as output:
        output.write(f"==== launch {number}: {what} ({order.purpose})\n")


def _command(
    order: LaunchOrder, number: int, records: Sequence[AnyRecord], child: Child, around: Surroundings
) -> tuple[list[str], str, dict[str, str]]:
    spec, run = around.spec, around.run
    chosen = _chosen(records)
    path = Path(f"{mark(run)}{number:03d}.json")
    probe = ProbeSpec(
        launch=number,
        target=spec.target,
        module=spec.module,
        args=spec.args,
        run_directory=str(run.path),
        pipe_read_fd=child.pipe_read_fd,
        pipe_write_fd=child.pipe_write_fd,
        treatment=order.treatment,
        blocks=order.blocks,
        profile=order.profile,
        profile_steps=PROFILE_STEPS,
        natural_epochs=order.natural_epochs,
        loader=None if chosen is None else chosen.key,
        loader_place=spec.loader,
        device=spec.device,
        keep_cap_bytes=spec.keep_cap_bytes,
    )
    run.write(path, msgspec.json.encode(probe))
    return [spec.python, str(bootstrap(run)), str(path)], spec.cwd, {**OFFLINE_ENVIRONMENT, **QUIET, **os.environ}


class Launch:
    """A target that has been started."""

    def __init__(
        self,
        order: LaunchOrder,
        number: int,
        records: Sequence[AnyRecord],
        child: Child,
        around: Surroundings,
        *,
        pid: int,
        began_ns: int,
    ) -> None:
        self._order = order
        self._number = number
        self._child = child
        self._pid = pid
        self._began_ns = began_ns
        self._around = around
        self._heard: list[AnyRecord] = []
        self._blocks = 0
        self._kills = cgroups.out_of_memory_kills()
        self._tree = Tree(pid)
        chosen = _chosen(records)
        self._sampler = Sampler(
            number,
            self._tree,
            around.run.journal / f"sampler-{number:03d}.jsonl",
            machine=MachineReader(),
            gpu=around.nvml.watch(around.spec.device or (None if chosen is None else chosen.device)),
            clock_ns=around.clock_ns,
        )
        self._patience = Patience(
            around.limits,
            around.spec.wait_s,
            slowest_block_s(records),
            natural_epochs=order.natural_epochs,
            now_s=self._now_s(),
        )

    def run(self) -> None:
        """Follow the launch to its end."""
        overdue = returncode = None
        try:
            self._around.write(LaunchBegan(launch=self._number, t_ns=self._began_ns, pid=self._pid, order=self._order))
            self._sampler.start()
            overdue = self._follow()
        finally:
            returncode = self._child.kill(self._tree.started)
            self._sampler.close()
        self._end(returncode, overdue)

    def _follow(self) -> str | None:
        """Hear and answer the child until it ends, is interrupted, or is overdue, which is returned."""
        limits = self._around.limits
        while self._child.running():
            for record in self._child.receive(limits.poll_s):
                self._take(record)
            if self._sampler.error is not None:
                raise self._sampler.error
            overdue = self._patience.overdue(self._now_s())
            if overdue is not None or self._around.interrupts.reason is not None:
                return overdue
        return None

    def _take(self, record: AnyRecord) -> None:
        if isinstance(record, BlockPhase) and record.phase != "settling":
            self._sampler.sample()
        self._heard.append(record)
        self._around.hear(record)
        self._patience.progressed(record, self._now_s())
        if isinstance(record, Block) and record.status == "counted" and record.reason is None:
            self._answer(record)  # a block has a reason where the script ended first: then nobody waits

    def _answer(self, block: Block) -> None:
        """The child waits for this at the end of a step: its memory is read while it does."""
        self._blocks += 1
        self._around.write(self._sampler.memory(block.block, block.trial))
        last = self._blocks == len(self._order.blocks)
        answer: Answer = "profile" if last and self._order.profile else "stop"
        self._child.answer(answer)
        self._patience.answered(answer, self._now_s())

    def _end(self, returncode: int | None, overdue: str | None) -> None:
        for record in self._child.receive(0):
            self._heard.append(record)
            self._around.hear(record)
        self._hear_journals()
        ended_ns = self._around.clock_ns()
        ending = judge(self._death(returncode, overdue))
        self._around.write(
            LaunchEnded(
                launch=self._number,
                t_ns=ended_ns,
                status=ending.status,
                exit=ending.exit,
                returncode=returncode,
                seconds=(ended_ns - self._began_ns) / 1e9,
                reason=ending.reason,
            )
        )

    def _hear_journals(self) -> None:
        """Records that do not come over the pipe, or did not come because it broke."""
        paths = sorted(self._around.run.journal.glob(f"launch-{self._number:03d}-*.jsonl"))
        for record in sorted((record for path in paths for _, record in read_journal(path)), key=lambda r: r.t_ns):
            if record not in self._heard:
                self._heard.append(record)
                self._around.hear(record)

    def _death(self, returncode: int | None, overdue: str | None) -> Death:
        return Death(
            returncode=returncode,
            interrupted=self._around.interrupts.reason,
            overdue=overdue,
            block_done=self._blocks == len(self._order.blocks),
            failed=next((record for record in self._heard if isinstance(record, TargetFailed)), None),
            ended=next((record for record in self._heard if isinstance(record, TargetEnded)), None),
            no_torch=next((r.reason for r in self._heard if isinstance(r, Unmeasured) and r.key == "torch"), None),
            out_of_memory=self._out_of_memory(),
            shm=machine.shm_in_words(self._sampler.high_shm_used_bytes),
        )

    def _out_of_memory(self) -> str | None:
        kills = cgroups.out_of_memory_kills()
        if kills is not None and self._kills is not None and kills > self._kills:
            return "the kernel killed a process for want of memory"
        low, total = self._sampler.low_available_bytes, machine.memory_bytes()
        if low is not None and low < SCARCE_SHARE * total:
            return f"only {low / 1e6:.0f} MB of the machine's memory were left"
        return None

    def _now_s(self) -> float:
        return self._around.clock_ns() / 1e9
