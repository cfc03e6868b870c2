"""Whole sweeps in no time: a fake clock, and the records that probe and parent would write.

It drives the real plan over pipelines that the plan does not model: workers that share CPUs, a pin thread that fights
the main thread for the interpreter, caches that warm up, heavy tails, drift, and treatments that hang, die, throttle,
change their dataset or do not fit into memory. Nothing is concluded from its figures about any machine.
"""

from __future__ import annotations

import math
import random
from typing import Any, Literal

from simulated_script import BATCH, Noise, Pipeline, Troubles, queue

from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    BlocksOrdered,
    Configuration,
    DatasetChanged,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderChosen,
    LoaderKey,
    NextBlocks,
    PinThread,
    RunSpec,
    SyncSite,
    TargetFailed,
    Treatment,
    TreatmentApplied,
    TreatmentRefused,
    Window,
)
from pindiag.plan.schedule import next_blocks, next_order

SECOND = 1_000_000_000
PLACE = LoaderKey(location="train.py:14", ordinal=0)
HANG_S = 30.0
"""When the parent gives up a launch that makes no progress."""


def sweep_spec(**changes: Any) -> RunSpec:
    """What `pindiag run train.py --sweep` asks for."""
    asked: dict[str, Any] = {
        "target": "train.py",
        "module": False,
        "args": [],
        "cwd": ".",
        "python": "python",
        "started_utc": "2026-01-02T03:04:05Z",
        "command": ["pindiag", "run", "train.py", "--sweep"],
        "sweep": True,
        "grid": None,
        "budget_s": 300.0,
        "rounds": 6,
        "steps": None,
        "seed": 0,
        "device": None,
        "loader": None,
        "wait_s": 600.0,
        "usable_cpus": 8,
        "pindiag_version": "0",
    }
    return RunSpec(**(asked | changes))


def loader(**changes: Any) -> Configuration:
    """The arguments of a usual loader."""
    usual: dict[str, Any] = {
        "num_workers": 4,
        "pin_memory": False,
        "non_blocking": None,
        "prefetch_factor": 2,
        "persistent_workers": False,
        "batch_size": BATCH,
    }
    return Configuration(**(usual | changes))


class Simulation:
    """One run, from its first launch to the plan's last word.

    Args:
        spec: what is asked.
        baseline: what the script itself says.
        pipeline: what its steps cost; anything with `step_s` and `accelerator`.
        noise: what disturbs its blocks.
        troubles: what goes wrong.
        seed: of everything random.
        start_s: from a launch's start to its first step.
        switch_s: between two blocks of a live launch.
    """

    def __init__(
        self,
        spec: RunSpec,
        baseline: Configuration,
        pipeline: Pipeline,
        noise: Noise | None = None,
        troubles: Troubles | None = None,
        *,
        seed: int = 0,
        start_s: float = 5.0,
        switch_s: float = 0.3,
    ) -> None:
        self.spec = spec
        self.baseline = baseline
        self.pipeline = pipeline
        self.noise = noise or Noise()
        self.troubles = troubles or Troubles()
        self.records: list[AnyRecord] = []
        self.blocks: list[tuple[BlockOrder, Treatment, int]] = []
        """All that were started, with what they ran under and their launch."""
        self.dearest_s = 0.0
        """The longest stretch between two decisions."""
        self._random = random.Random(seed)
        self._start_s = start_s
        self._switch_s = switch_s
        self._now_ns = SECOND
        self._decided_ns = 0
        self._launch = 0
        self._walk = 0.0
        self._walked_ns = 0
        self._ran: dict[str, int] = {}

    # ---------------------------------------------------------------------------------------------------- a run

    def run(self, most: int = 400) -> Simulation:
        """Do what the plan orders until it orders nothing more.

        Raises:
            RuntimeError: it ordered more launches than any plan should.
        """
        while (order := next_order(self.spec, self.records)) is not None:
            self._launch += 1
            if self._launch > most:
                raise RuntimeError("the plan never ends")
            began_ns = self._now_ns
            self._write(LaunchBegan(**self._at(), pid=4000 + self._launch, order=order))
            status, reason = self._child(order)
            self._pass(0.1)
            self._write(
                LaunchEnded(
                    **self._at(),
                    status=status,
                    exit="stopped after the schedule" if status == "ok" else "exit status 1",
                    returncode=0 if status == "ok" else 1,
                    seconds=(self._now_ns - began_ns) / SECOND,
                    reason=reason,
                )
            )
            self._decision()
        return self

    def _child(self, order: LaunchOrder) -> tuple[Literal["ok", "failed"], str | None]:
        """One launch: how it ended, and why."""
        own = order.treatment or self.treatment(self.baseline.id)
        if order.isolation == "fresh" and own.id in self.troubles.no_room:
            return "failed", "it would be out of memory: 16 workers hold up to 9.0 GB"
        self._pace = math.exp(self._random.gauss(0, self.noise.launch))
        self._steps = 0
        self._stepped = False
        self._pass(self._start_s)
        if order.purpose == "scout":
            self._first_step(own)
            self._pass(0.5)
            return "ok", None
        try:
            if order.isolation == "fresh":
                self._fresh(order, own)
            else:
                self._live(order)
        except _Over as over:
            return over.status, over.reason
        self._pass(0.5)
        return "ok", None

    def _fresh(self, order: LaunchOrder, own: Treatment) -> None:
        for block in order.blocks:
            self._block(block, own, order)
        if order.profile:
            self._window(own)

    def _live(self, order: LaunchOrder) -> None:
        blocks = list(order.blocks)
        while blocks:
            block = blocks.pop(0)
            made = block.treatment or self.treatment(self.baseline.id)
            if made.id in self.troubles.no_room:
                self._write(TreatmentRefused(**self._at(), block=block.block, trial=made.id, reason="no memory"))
            else:
                self._swap(made)
                self._block(block, made, order)
            told = self._ask()
            blocks = list(told.blocks)
            for window in told.windows:
                assert window.treatment is not None
                self._window(window.treatment)

    def _ask(self) -> NextBlocks:
        self._decision()
        told = next_blocks(self.spec, self.records)
        self._write(BlocksOrdered(**self._at(), next=told))
        return told

    def _decision(self) -> None:
        first = next(
            (r.t_ns for r in reversed(self.records) if isinstance(r, FirstStep) and r.launch == self._launch), 0
        )
        since_ns = max(self._decided_ns, first)
        self.dearest_s = max(self.dearest_s, (self._now_ns - since_ns) / SECOND)
        self._decided_ns = self._now_ns

    # ------------------------------------------------------------------------------------------------- a treatment

    def treatment(self, trial: str) -> Treatment:
        """The script as written."""
        return Treatment(id=trial, kind="configuration", configuration=self.baseline)

    def _swap(self, made: Treatment) -> None:
        """What the probe says of a change that it cannot make."""
        names = {"num_workers", "pin_memory", "prefetch_factor", "persistent_workers"} & made.changes.keys()
        if self.troubles.own_iteration and names and made.ablation != "host_batch":
            refused = dict.fromkeys(names, "its class has an __iter__ of its own")
            self._write(
                TreatmentApplied(**self._at(), trial=made.id, applied={}, refused=refused, how="nothing to change")
            )

    def _block(self, order: BlockOrder, made: Treatment, launch: LaunchOrder) -> None:
        trial = order.trial
        self.blocks.append((order, made, self._launch))
        if self.troubles.live_fails and launch.isolation == "live" and order.round > 0:
            raise _Over("failed", "RuntimeError: not here")
        if made.id in self.troubles.dies:
            self._pass(0.5)
            raise _Over("failed", self.troubles.dies[made.id])
        if not self._stepped:
            self._first_step(made)
        if made.id in self.troubles.hangs:
            self._pass(HANG_S)
            raise _Over("failed", f"it made no progress for {HANG_S:g} s")
        if self.troubles.fails_past_end and not launch.natural_epochs:
            self._past_end()
        step_s = self._disturbed_s(made)
        in_flight = 0 if made.ablation in ("compute_only", "host_batch") else queue(made.configuration)
        settle = in_flight + 3
        steps = order.steps or max(3, 2 * in_flight, math.ceil(order.seconds / step_s))
        counted = min(steps, max(self.troubles.steps - self._steps - settle, 0))
        self._steps += settle + steps
        self._pass(self._switch_s + settle * step_s)
        started_ns = self._now_ns
        self._pass(max(counted, 1) * step_s)
        whole = counted == steps or counted >= max(3, 2 * in_flight)
        if counted > 0:
            self._record(order, trial, made, counted, started_ns, whole=whole)
        if counted < steps:
            raise _Over("ok", None)
        if self.troubles.dataset_changes and made.configuration.num_workers == 0 and made.ablation is None:
            self._write(DatasetChanged(**self._at(), trial=trial, block=order.block, what="cache: 0 before, 9 after"))

    def _record(
        self, order: BlockOrder, trial: str, made: Treatment, steps: int, started_ns: int, *, whole: bool
    ) -> None:
        seconds = (self._now_ns - started_ns) / SECOND
        calls = round(self.pipeline.syncs_per_step * steps)
        slower = seconds / steps / self.pipeline.step_s(made)
        wait_ms, wait_cpu_ms = (part * slower * steps * 1e3 for part in self.pipeline.wait_s(made))
        pinned_ms = self.pipeline.pin_thread_s(made) * slower * steps * 1e3
        pin_thread = PinThread(
            batches=steps,
            receive_ms=0.0,
            pin_ms=pinned_ms,
            idle_ms=seconds * 1e3 - pinned_ms,
            in_main_thread=made.configuration.num_workers == 0,
        )
        syncs = [SyncSite(location="train.py:30", kind="item", calls=calls, ms=0.0)]
        self._write(
            Block(
                **self._at(),
                block=order.block,
                trial=trial,
                round=order.round,
                settle_steps=3,
                steps=steps,
                samples=steps * (made.configuration.batch_size or BATCH),
                started_ns=started_ns,
                ended_ns=self._now_ns,
                seconds=seconds,
                gap_s=0.0,
                status="counted" if whole else "short",
                reason=None if whole else "the script ended first",
                wait_ms=wait_ms,
                wait_cpu_ms=wait_cpu_ms,
                transfer_ms=self.pipeline.transfer_s(made) * slower * steps * 1e3,
                synchronise_ms=0.0,
                optimizer_ms=0.0,
                main_cpu_ms=0.0,
                step_ms=[],
                step_wait_ms=[],
                transfers=[],
                syncs=syncs if self.pipeline.accelerator else [],
                pin_thread=pin_thread if pinned_ms else None,
                host_allocator=None,
                missing={},
                probe_us_per_step=5.0,
            )
        )

    def _disturbed_s(self, made: Treatment) -> float:
        """The step time of one block."""
        noise, number = self.noise, self._ran.get(made.id, 0)
        self._ran[made.id] = number + 1
        minutes = (self._now_ns - self._walked_ns) / SECOND / 60
        self._walk += self._random.gauss(0, noise.drift * math.sqrt(minutes))
        self._walked_ns = self._now_ns
        hours = self._now_ns / SECOND / 3600
        slower = self._walk + noise.trend * hours + self._random.gauss(0, noise.block)
        slower += noise.warm_up * math.exp(-self._now_ns / SECOND / noise.warm_up_s)
        slower += noise.tail * (self._random.paretovariate(2.5) - 1)
        if self._random.random() < noise.outliers:
            slower += math.log(self._random.uniform(1.0, noise.outlier))
        if made.id in self.troubles.throttles and number > 0:
            slower += math.log(2)
        return self.pipeline.step_s(made) * self._pace * math.exp(slower)

    def _first_step(self, made: Treatment) -> None:
        self._stepped = True
        pinned = made.configuration.pin_memory and made.configuration.num_workers > 0
        self._write(
            LoaderChosen(
                **self._at(),
                loader=1,
                key=PLACE,
                why="its batch came last before the optimizer stepped",
                others=[],
                configuration=made.configuration if made.kind == "configuration" else self.baseline,
                batches_per_epoch=313,
                dataset_samples=20032,
                batch_samples=BATCH,
                sample_bytes=602112,
                batch_bytes=BATCH * 602112,
                tensors=2,
                iterable=False,
                dataset_class="Floats",
                start_method="fork",
                accelerator=self.pipeline.accelerator,
                device=f"{self.pipeline.accelerator}:0" if self.pipeline.accelerator else None,
                device_name=None,
                intraop_threads=1 if pinned and self.pipeline.accelerator else self.pipeline.threads,
            )
        )
        self._write(FirstStep(**self._at()))

    def _past_end(self) -> None:
        self._pass(0.2)
        self._write(
            TargetFailed(
                **self._at(),
                exception="ValueError",
                message="Tried to step 61 times",
                traceback="",
                step=60,
                past_natural_end=True,
            )
        )
        raise _Over("failed", "ValueError: Tried to step 61 times")

    def _window(self, made: Treatment) -> None:
        self._pass(0.8)
        self._write(Window(**self._at(), trial=made.id, steps=10, trace="traces/t.json.gz", reason=None, seconds=0.8))

    # ---------------------------------------------------------------------------------------------------- the clock

    def _pass(self, seconds: float) -> None:
        self._now_ns += round(seconds * SECOND)

    def _at(self) -> dict[str, Any]:
        return {"launch": self._launch, "t_ns": self._now_ns}

    def _write(self, record: AnyRecord) -> None:
        self.records.append(record)

    @property
    def spent_s(self) -> float:
        """From first steps to ends, reckoned apart from the product."""
        first = {record.launch: record.t_ns for record in self.records if isinstance(record, FirstStep)}
        ended = {record.launch: record.t_ns for record in self.records if isinstance(record, LaunchEnded)}
        return sum((ended[launch] - first[launch]) / SECOND for launch in first)


class _Over(Exception):
    """A launch ends before it is told to."""

    def __init__(self, status: Literal["ok", "failed"], reason: str | None) -> None:
        super().__init__(reason)
        self.status: Literal["ok", "failed"] = status
        self.reason = reason
