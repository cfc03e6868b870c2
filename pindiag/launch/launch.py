"""One launch, from its order to the record that says how it ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pindiag.launch import machine, stacks
from pindiag.launch.admission import Admission, chosen, opening
from pindiag.launch.agenda import Agenda
from pindiag.launch.child import Child
from pindiag.launch.ending import Death, judge
from pindiag.launch.kept import OFFLINE_ENVIRONMENT
from pindiag.launch.patience import Pace, Patience
from pindiag.launch.processes import Tree
from pindiag.launch.sampler import MachineReader, Sampler
from pindiag.launch.scarcity import Scarcity
from pindiag.launch.stream import Journals
from pindiag.launch.surroundings import Surroundings
from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    BlockPhase,
    Configuration,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    LoaderKey,
    PatchedSources,
    ProbeSpec,
    TargetEnded,
    TargetFailed,
    Unmeasured,
)
from pindiag.store import RunDirectory

PROFILE_STEPS = 10
MOST_STACKS = 60_000
"""Characters that the report shows of them; the file has all."""

QUIET = {"KINETO_LOG_LEVEL": "99"}
"""Kineto prints to the console otherwise."""


def bootstrap(run: RunDirectory) -> Path:
    """The file that a launch executes."""
    return run.path / "probe" / "pindiag_probe" / "bootstrap.py"


def mark(run: RunDirectory) -> str:
    """How the argument of every launch of a run begins."""
    return str(run.path / "probe" / "launch-")


def carry_out(order: LaunchOrder, number: int, around: Surroundings) -> None:
    """Start the target, let it do its blocks, and leave nothing of it running.

    Everything that the launch tells goes to `around.write` and `around.hear`; LaunchEnded is the last of it.
    """
    began = LaunchBegan(launch=number, t_ns=around.clock_ns(), pid=0, order=order)
    first = opening(began, around)
    if first.refused is not None:
        _not_started(began, first.notes, first.refused, around)
        return
    with Child() as child:
        _header(order, number, around.run.target_log)
        try:
            pid = child.start(*_command(order, number, first.blocks, child, around), around.run.target_log)
        except OSError as error:
            _not_started(began, first.notes, f"the target could not be started: {error}", around)
            return
        with around.guardian.over(pid):
            for record in [msgspec.structs.replace(began, pid=pid), *first.notes]:
                around.write(record)
            Launch(began, first.blocks, child, around, pid=pid).run()


def _not_started(began: LaunchBegan, notes: Sequence[AnyRecord], reason: str, around: Surroundings) -> None:
    ended = LaunchEnded(
        launch=began.launch,
        t_ns=around.clock_ns(),
        status="failed",
        exit="not started",
        returncode=None,
        seconds=0.0,
        reason=reason,
    )
    for record in [began, *notes, ended]:
        around.write(record)


def _header(order: LaunchOrder, number: int, log: Path) -> None:
    as_written = "with the patch" if order.patched else "the script as written"
    what = as_written if order.treatment is None else order.treatment.id
    what = "one treatment after another" if order.isolation == "live" else what
    with log.open("a") as output:
        output.write(f"==== launch {number}: {what} ({order.purpose})\n")


def _command(
    order: LaunchOrder, number: int, blocks: list[BlockOrder], child: Child, around: Surroundings
) -> tuple[list[str], str, dict[str, str]]:
    spec, run = around.spec, around.run
    path = Path(f"{mark(run)}{number:03d}.json")
    probe = ProbeSpec(
        launch=number,
        target=spec.target,
        module=spec.module,
        args=spec.args,
        run_directory=str(run.path),
        pipe_read_fd=child.pipe_read_fd,
        pipe_write_fd=child.pipe_write_fd,
        isolation=order.isolation,
        treatment=order.treatment,
        blocks=blocks,
        profile=order.profile,
        profile_steps=PROFILE_STEPS,
        natural_epochs=order.natural_epochs,
        loader=_loader(order, around),
        loader_place=spec.loader,
        device=spec.device,
        keep_cap_bytes=spec.keep_cap_bytes,
        sources=_sources(order, spec.patch),
    )
    run.write(path, msgspec.json.encode(probe))
    return [spec.python, str(bootstrap(run)), str(path)], spec.cwd, {**OFFLINE_ENVIRONMENT, **QUIET, **os.environ}


def _loader(order: LaunchOrder, around: Surroundings) -> LoaderKey | None:
    """The training loader, where an earlier launch found it or a patch moved it."""
    found = chosen(around.records)
    moved = around.spec.patch.loader if around.spec.patch is not None and order.patched else None
    return moved or (None if found is None else found.key)


def _sources(order: LaunchOrder, patch: PatchedSources | None) -> dict[str, str]:
    """Both sides of a patch stand in for the files, so that neither is compiled before and the files may be either."""
    if patch is None:
        return {}
    return patch.after if order.patched else patch.before


class Launch:
    """A target that has been started."""

    def __init__(
        self, began: LaunchBegan, blocks: Sequence[BlockOrder], child: Child, around: Surroundings, *, pid: int
    ) -> None:
        order, number = began.order, began.launch
        self._began = began
        self._child = child
        self._around = around
        self._heard: list[AnyRecord] = []
        self._known: set[tuple[type, int, int]] = set()
        self._journals = Journals(around.run.journal, number)
        admission = Admission(number, around, write=around.write, records=lambda: around.records)
        self._agenda = Agenda(order, blocks, admission.ask)
        self._scarcity = Scarcity()
        self._tree = Tree(pid)
        found = chosen(around.records)
        gpu = around.nvml.watch(around.spec.device or (None if found is None else found.device))
        unknown = around.nvml.reason if gpu is None and around.nvml.gpus() else None
        if unknown is not None:
            around.write(Unmeasured(launch=number, t_ns=around.clock_ns(), key="nvml", reason=unknown))
        self._sampler = Sampler(
            number,
            self._tree,
            around.run.journal / f"sampler-{number:03d}.jsonl",
            machine=MachineReader(),
            gpu=gpu,
            clock_ns=around.clock_ns,
        )
        self._stacks: str | None = None
        self._pace = Pace(around.records)
        self._patience = Patience(
            around.limits,
            around.spec.wait_s,
            self._pace,
            natural_epochs=order.natural_epochs or any(block.epochs for block in blocks),
            now_s=self._now_s(),
        )

    def run(self) -> None:
        """Follow the launch to its end."""
        overdue = kept = returncode = None
        try:
            self._sampler.start()
            overdue = self._follow()
            kept = None if overdue is None else self._keep_stacks(overdue)
        finally:
            returncode = self._child.kill(self._tree.started)
            self._sampler.close()
        self._end(returncode, overdue, kept)

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

    def _keep_stacks(self, overdue: str) -> str:
        """Write down what the processes are at, and give the file's name inside the run directory."""
        run, number = self._around.run, self._began.launch
        path = run.stacks / f"launch-{number:03d}.txt"
        self._tree.refresh()
        head = f"Launch {number}: {overdue}. What its processes were at, innermost call first:\n\n"
        path.parent.mkdir(exist_ok=True)
        self._stacks = stacks.read(self._tree.read())
        run.write(path, (head + self._stacks).encode())
        return str(path.relative_to(run.path))

    def _take(self, record: AnyRecord) -> None:
        if isinstance(record, BlockPhase):
            self._sampler.phase(record.phase)
        self._hear(record)
        self._patience.progressed(record, self._now_s())
        if isinstance(record, BlockPhase) and record.phase == "settling":
            self._around.write(self._sampler.memory(record.block, record.trial, record.phase))
        if isinstance(record, Block) and record.status == "counted" and record.reason is None:
            self._answer(record)  # a block has a reason where the script ended first: then nobody waits
        elif isinstance(record, (LoaderChosen, FirstStep)) and self._agenda.done:
            self._patience.answered("stop", self._now_s())  # a scout stops by itself

    def _hear(self, record: AnyRecord) -> None:
        """Take note of a record, whether it comes over the pipe or from a journal first."""
        key = type(record), record.t_ns, record.rank
        if key not in self._known:
            self._known.add(key)
            self._heard.append(record)
            self._pace.hear(record)
            self._agenda.heard(record)
            self._around.hear(record)

    def _answer(self, block: Block) -> None:
        """The child waits for this at the end of a step: its memory is read while it does."""
        self._hear_journals()
        load = self._sampler.load(block.block, block.trial)
        for record in (load, self._sampler.memory(block.block, block.trial)):
            if record is not None:
                self._around.write(record)
        answer = self._agenda.answer()
        self._child.answer(answer)
        self._patience.answered(answer.then, self._now_s())

    def _hear_journals(self) -> None:
        """Records that do not come over the pipe, or did not come because it broke."""
        for record in self._journals.news():
            self._hear(record)

    def _end(self, returncode: int | None, overdue: str | None, kept: str | None) -> None:
        for record in self._child.receive(0):
            self._hear(record)
        self._hear_journals()
        ended_ns = self._around.clock_ns()
        death = self._death(returncode, overdue, kept)
        ending = judge(death)
        self._around.write(
            LaunchEnded(
                launch=self._began.launch,
                t_ns=ended_ns,
                status=ending.status,
                exit=ending.exit,
                returncode=returncode,
                seconds=(ended_ns - self._began.t_ns) / 1e9,
                reason=ending.reason,
                stacks=self._stacks and self._stacks[:MOST_STACKS],
                under=self._configuration if ending.status == "failed" else None,
                failure=ending.failure,
                worker_death=ending.worker_death,
                out_of_memory=death.out_of_memory,
            )
        )

    @property
    def _configuration(self) -> Configuration | None:
        """What the loader runs under, where that is a configuration."""
        running, found = self._agenda.running, chosen(self._around.records)
        treatment = self._began.order.treatment if running is None else running.treatment or self._began.order.treatment
        if treatment is None:
            return None if found is None else found.configuration
        return treatment.configuration if treatment.kind == "configuration" else None

    def _death(self, returncode: int | None, overdue: str | None, kept: str | None) -> Death:
        running = self._agenda.running
        return Death(
            returncode=returncode,
            interrupted=self._around.interrupts.reason,
            overdue=overdue,
            stacks=kept,
            done=self._agenda.done,
            trial=None if running is None or self._began.order.isolation == "fresh" else running.trial,
            failed=next((record for record in self._heard if isinstance(record, TargetFailed)), None),
            ended=next((record for record in self._heard if isinstance(record, TargetEnded)), None),
            no_torch=next((r.reason for r in self._heard if isinstance(r, Unmeasured) and r.key == "torch"), None),
            out_of_memory=self._scarcity.evidence(self._sampler.low_available_bytes, machine.memory_bytes()),
            shm=machine.shm_in_words(self._sampler.high_shm_used_bytes),
        )

    def _now_s(self) -> float:
        return self._around.clock_ns() / 1e9
