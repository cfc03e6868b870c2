"""Writes what a launch leaves in a run directory: records, rings and traces, from the pipeline's model with noise."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from synthetic_pipeline import (
    BASELINE,
    BATCH_BYTES,
    BATCH_SAMPLES,
    BATCHES_PER_EPOCH,
    COLLATE_MS,
    CPUS,
    FETCH_MS,
    OPTIMIZER_MS,
    PIN_ALONE_MS,
    PIN_MS,
    RECEIVE_MS,
    SAMPLE_BYTES,
    SEND_MS,
    Serving,
    step_events,
)

from pindiag.model import (
    AnyRecord,
    Block,
    BlockOrder,
    BlockPhase,
    Configuration,
    FilesSettled,
    FirstStep,
    HostAllocator,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LaunchStarted,
    LoaderChosen,
    LoaderIterated,
    LoaderKey,
    LoaderMade,
    MemoryRead,
    PinThread,
    Process,
    Sample,
    SyncSite,
    TargetEnded,
    TransferSite,
    Treatment,
    TreatmentApplied,
    Window,
)
from pindiag.store import RING_ENTRY, RING_HEADER, RING_MAGIC, RunDirectory

SAMPLE_PERIOD_MS = 200
RING_CAPACITY = 4096
MAIN_PID = 4000
PIDS_PER_LAUNCH = 2000


@dataclass
class Clock:
    """Monotonic nanoseconds."""

    now_ns: int = 1_000_000_000_000

    def after(self, ms: float) -> int:
        """The moment some milliseconds later."""
        self.now_ns += int(ms * 1e6)
        return self.now_ns


@dataclass
class Writer:
    """One launch after another; `began` opens one, `ended` closes it."""

    run: RunDirectory
    script: Path
    chance: random.Random
    trace_kernels: int
    clock: Clock = field(default_factory=Clock)
    launch: int = 0
    pid: int = 0
    began_ns: int = 0
    records: list[AnyRecord] = field(default_factory=list)
    """Of the child."""
    served: list[Serving] = field(default_factory=list)
    steps: int = 0

    def lines(self, name: str, records: Sequence[AnyRecord]) -> None:
        """Append records to a journal."""
        with (self.run.journal / name).open("ab") as journal:
            journal.writelines(msgspec.json.encode(record) + b"\n" for record in records)

    # ---------------------------------------------------------------------------------------------- a launch

    def began(self, order: LaunchOrder) -> None:
        """Open a launch up to the loader's construction."""
        self.launch += 1
        self.pid = MAIN_PID + PIDS_PER_LAUNCH * self.launch
        self.began_ns, self.steps, self.records, self.served = self.clock.now_ns, 0, [], []
        self.lines("parent.jsonl", [LaunchBegan(launch=self.launch, t_ns=self.began_ns, pid=self.pid, order=order)])
        self.records += [
            LaunchStarted(
                **self.at(900),
                pid=self.pid,
                python_version="3.12.3",
                torch_version="2.11.0",
                cuda_version="13.0",
            ),
            LoaderMade(
                **self.at(700),
                loader=1,
                key=self.key,
                class_name="torch.utils.data.DataLoader",
                dataset_class="__main__.FloatImages",
                configuration=msgspec.structs.replace(BASELINE, non_blocking=None),
            ),
        ]

    def ended(self) -> None:
        """Close a launch."""
        epochs = self.steps / BATCHES_PER_EPOCH
        self.records.append(TargetEnded(**self.at(40), how="stopped", status=0, steps=self.steps, epochs=epochs))
        self.lines(f"launch-{self.launch:03}-{self.pid}.jsonl", self.records)
        self.lines(f"sampler-{self.launch:03}.jsonl", list(self.samples()))
        seconds = (self.clock.after(300) - self.began_ns) / 1e9
        self.lines(
            "parent.jsonl",
            [
                LaunchEnded(
                    **self.at(0), status="ok", exit="stopped after the schedule", returncode=0, seconds=seconds
                ),
                FilesSettled(**self.at(5), restored=[], moved=[], listed=[]),
            ],
        )

    def at(self, ms: float) -> dict[str, int]:
        """Head of a record, some milliseconds later."""
        return {"launch": self.launch, "t_ns": self.clock.after(ms)}

    @property
    def key(self) -> LoaderKey:
        """The training loader's."""
        return LoaderKey(location=f"{self.script}:31", ordinal=0)

    def serve(self, treatment: Treatment, trial: str, *, live: bool) -> Serving:
        """Switch to a treatment."""
        forked = sum(len(serving.worker_pids) for serving in self.served)
        serving = Serving(treatment, self.clock.now_ns, [])
        if serving.loads:
            serving.worker_pids.extend(self.pid + 1 + forked + n for n in range(treatment.configuration.num_workers))
        self.served.append(serving)
        self.records.append(
            TreatmentApplied(
                **self.at(1),
                trial=trial,
                applied=treatment.changes,
                refused={},
                how="cloned at iteration" if treatment.changes else "nothing to change",
            )
        )
        workers = serving.worker_pids
        if serving.loads:
            self.records.append(
                LoaderIterated(
                    **self.at(20),
                    loader=1,
                    iterator=len(self.served),
                    configuration=serving.configuration,
                    startup_ms=3.0 + 6.0 * len(workers),
                    first_batch_ms=40.0 + 5.0 * len(workers),
                    start_method="fork" if workers else None,
                    worker_pids=workers,
                    trial=trial if live else None,
                )
            )
        return serving

    def choose(self, configuration: Configuration) -> None:
        """The training loader is known and the first step done."""
        pin_thread = configuration.pin_memory and configuration.num_workers > 0
        chosen = LoaderChosen(
            **self.at(60),
            loader=1,
            key=self.key,
            why="its batch came last before an optimizer step",
            others=[],
            configuration=configuration,
            batches_per_epoch=BATCHES_PER_EPOCH,
            dataset_samples=BATCHES_PER_EPOCH * BATCH_SAMPLES,
            batch_samples=BATCH_SAMPLES,
            sample_bytes=SAMPLE_BYTES,
            batch_bytes=BATCH_BYTES,
            tensors=2,
            iterable=False,
            dataset_class="__main__.FloatImages",
            start_method="fork" if configuration.num_workers else None,
            accelerator="cuda",
            device="cuda:0",
            device_name="NVIDIA H200",
            intraop_threads=1 if pin_thread else CPUS,
        )
        self.records += [chosen, FirstStep(**self.at(1))]

    # ---------------------------------------------------------------------------------------------- a block

    def count(self, order: BlockOrder, serving: Serving) -> None:
        """Run a block: its records, the memory read at its end, and what its workers wrote into their rings."""
        costs, configuration, trial = serving.costs, serving.configuration, order.trial
        pace = self.chance.lognormvariate(0, 0.02)
        length = max(20, int(order.seconds * 1000 / costs.period))
        step_ms = [costs.period * pace * self.chance.lognormvariate(0, 0.05) for _ in range(length)]
        wait_ms = [max(0.0, step - (costs.period - costs.wait)) for step in step_ms]
        settle = 2 * configuration.num_workers + 6
        for phase, ms in (("settling", 0.1), ("counting", settle * costs.period), ("counted", sum(step_ms))):
            self.records.append(BlockPhase(**self.at(ms), block=order.block, trial=trial, phase=phase))
        steps, wait, seconds = len(step_ms), sum(wait_ms), sum(step_ms) / 1000
        main_process = not serving.worker_pids
        block = Block(
            block=order.block,
            trial=trial,
            round=order.round,
            settle_steps=settle,
            steps=steps,
            samples=steps * BATCH_SAMPLES,
            started_ns=self.records[-2].t_ns,
            ended_ns=self.records[-1].t_ns,
            **self.at(0.1),
            seconds=seconds,
            gap_s=0.0,
            status="counted",
            reason=None,
            wait_ms=wait,
            wait_cpu_ms=wait * (0.97 if main_process else 0.4),
            transfer_ms=steps * costs.transfer,
            synchronise_ms=0.0,
            optimizer_ms=steps * OPTIMIZER_MS if costs.script else 0.0,
            main_cpu_ms=seconds * 1000 * 0.9,
            step_ms=step_ms[:2000],
            step_wait_ms=wait_ms[:2000],
            transfers=self.transfers(serving, steps) if serving.moves else [],
            syncs=[SyncSite(location=f"{self.script}:58", kind="item", calls=steps // 10, ms=steps * 0.01)],
            pin_thread=self.pin_thread(configuration, steps, seconds) if serving.loads else None,
            host_allocator=HostAllocator(
                allocations=0,
                alloc_ms=0.0,
                active_bytes=2 * BATCH_BYTES if configuration.pin_memory else 0,
                reserved_bytes=10 * 2**26 if configuration.pin_memory else 0,
            ),
            missing={},
            probe_us_per_step=9.0 * self.chance.lognormvariate(0, 0.1),
            intraop_threads=order.intraop_threads or CPUS,
        )
        self.records.append(block)
        self.steps += settle + steps
        self.lines("parent.jsonl", [self.memory(serving, block)])
        self.write_rings(serving, block)

    def transfers(self, serving: Serving, steps: int) -> list[TransferSite]:
        """The two calls that move a batch: samples and labels."""
        return [
            TransferSite(
                location=f"{self.script}:{line}",
                calls=steps,
                bytes=steps * size,
                ms=steps * serving.costs.transfer * share,
                pinned_calls=steps if serving.configuration.pin_memory else 0,
                non_blocking_calls=steps if serving.configuration.non_blocking else 0,
            )
            for line, size, share in ((52, BATCH_BYTES, 0.98), (53, 8 * BATCH_SAMPLES, 0.02))
        ]

    @staticmethod
    def pin_thread(configuration: Configuration, steps: int, seconds: float) -> PinThread | None:
        """What whoever pins did."""
        if not configuration.pin_memory:
            return None
        if configuration.num_workers == 0:
            pin = steps * PIN_ALONE_MS
            return PinThread(batches=steps, receive_ms=0.0, pin_ms=pin, idle_ms=0.0, in_main_thread=True)
        receive, pin = steps * RECEIVE_MS, steps * PIN_MS
        idle = max(0.0, seconds * 1000 - receive - pin)
        return PinThread(batches=steps, receive_ms=receive, pin_ms=pin, idle_ms=idle, in_main_thread=False)

    def memory(self, serving: Serving, block: Block) -> MemoryRead:
        """Proportional set sizes at the end of a block."""
        in_flight = len(serving.worker_pids) * (serving.configuration.prefetch_factor or 0) * BATCH_BYTES
        return MemoryRead(
            launch=self.launch,
            t_ns=block.t_ns + 1000,
            block=block.block,
            trial=block.trial,
            pss_bytes=14 * 2**30 + in_flight,
            worker_pss_bytes=len(serving.worker_pids) * 180 * 2**20,
            shm_bytes=in_flight,
        )

    def write_rings(self, serving: Serving, block: Block) -> None:
        """A ring a worker, with the batches that it made in the block."""
        workers = len(serving.worker_pids)
        period_ns = int(block.seconds * 1e9 / block.steps)
        for worker, pid in enumerate(serving.worker_pids):
            entries = [
                _ring_entry(block.started_ns + step * period_ns, workers * period_ns)
                for step in range(worker, min(block.steps, RING_CAPACITY), workers)
            ]
            header = RING_HEADER.pack(RING_MAGIC, self.launch, pid, worker, len(entries))
            content = (header + b"".join(entries)).ljust(RING_HEADER.size + RING_CAPACITY * RING_ENTRY.size, b"\0")
            (self.run.rings / f"launch-{self.launch:03}-{pid}.ring").write_bytes(content)

    def profile(self, trial: str, serving: Serving) -> None:
        """A profiler window and its trace."""
        steps, costs = 10, serving.costs
        trace = self.run.traces / f"launch-{self.launch:03}-{trial}.json.gz"
        events = list(
            itertools.chain.from_iterable(
                step_events(
                    step, self.pid, configuration=serving.configuration, costs=costs, kernels=self.trace_kernels
                )
                for step in range(steps)
            )
        )
        trace.write_bytes(gzip.compress(msgspec.json.encode({"traceEvents": events}), compresslevel=1))
        name = str(trace.relative_to(self.run.path))
        ms = steps * costs.period * 1.3
        self.records.append(Window(**self.at(ms), trial=trial, steps=steps, trace=name, reason=None, seconds=ms / 1000))

    # ---------------------------------------------------------------------------------------------- beside it

    def samples(self) -> Iterator[Sample]:
        """What the sampler saw over the launch, whoever was served then."""
        following = [serving.since_ns for serving in self.served[1:]] + [self.clock.now_ns]
        current = 0
        for t_ns in range(self.began_ns, self.clock.now_ns, SAMPLE_PERIOD_MS * 1_000_000):
            while current < len(following) - 1 and t_ns >= following[current]:
                current += 1
            yield self.sample(t_ns, self.served[current])

    def sample(self, t_ns: int, serving: Serving) -> Sample:
        """The main process since the launch began, workers since their treatment did."""
        s, own_s = (t_ns - self.began_ns) / 1e9, max(0.0, (t_ns - serving.since_ns) / 1e9)
        workers = [self.process(pid, "worker", own_s, 0.8) for pid in serving.worker_pids]
        machine_s = t_ns / 1e9
        return Sample(
            launch=self.launch,
            t_ns=t_ns,
            processes=[self.process(self.pid, "main", s, 0.9), *workers],
            memory_available_bytes=int((100 - self.chance.random()) * 2**30),
            memory_cached_bytes=8 * 2**30,
            swap_used_bytes=0,
            shm_used_bytes=len(workers) * 2 * BATCH_BYTES,
            cgroup_memory_bytes=22 * 2**30,
            cgroup_throttled_s=0.0,
            psi_cpu_s=machine_s * 0.01,
            psi_io_s=machine_s * 0.001,
            psi_memory_s=0.0,
            machine_cpu_s=machine_s * 3.5,
            gpu_utilization=min(1.0, 0.3 + 0.1 * self.chance.random()),
            gpu_memory_utilization=0.1,
            gpu_memory_bytes=2 * 2**30,
            gpu_sm_clock_mhz=1980,
            gpu_throttle_reasons=0,
            pcie_rx_bytes_per_s=2_000_000_000,
            sampler_cpu_s=s * 0.004,
        )

    @staticmethod
    def process(pid: int, role: str, s: float, cpu_share: float) -> Process:
        """A process after some seconds of its life."""
        main = role == "main"
        return Process(
            pid=pid,
            role="main" if main else "worker",
            cpu_s=s * cpu_share,
            rss_bytes=(13 if main else 1) * 2**30,
            threads=40 if main else 2,
            voluntary_switches=int(300 * s),
            involuntary_switches=int(4 * s),
            minor_faults=int(9000 * s),
            major_faults=0,
            run_delay_s=s * 0.01,
            read_bytes=0,
            block_io_delay_s=0.0,
            state="running",
            pin_thread_cpu_s=s * 0.5 if main else None,
        )


def _ring_entry(started_ns: int, period_ns: int) -> bytes:
    """A batch of a worker that makes one a period, and waits for an index in the rest of it."""
    fetch_ns, collate_ns, send_ns = (int(ms * 1e6) for ms in (FETCH_MS, COLLATE_MS, SEND_MS))
    made_ns = fetch_ns + collate_ns
    cpu_ns = int(0.97 * made_ns)
    fetched = (started_ns, max(period_ns - made_ns, 0), fetch_ns, collate_ns, cpu_ns, BATCH_SAMPLES)
    used = (cpu_ns + send_ns, 250, 0, made_ns - cpu_ns)
    return RING_ENTRY.pack(*fetched, *used, started_ns + made_ns + send_ns, send_ns, send_ns, 0, 1_500)
