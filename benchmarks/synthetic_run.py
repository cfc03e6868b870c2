"""A complete run directory without a target: discover, rounds and verification of a sweep on a GPU, as records.

The figures follow a small model of a pipeline (workers, hand-off, pin thread, copies, step) whose costs are those of
the article's scenario on an H200, with some noise. Tests read what `write_run` makes; cli_cost.py times its report.
"""

from __future__ import annotations

import gzip
import itertools
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pindiag import __version__
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
    Machine,
    MemoryRead,
    PinThread,
    Process,
    RunEnded,
    RunSpec,
    Sample,
    TargetEnded,
    TransferSite,
    Treatment,
    TreatmentApplied,
    Window,
)
from pindiag.store import RING_ENTRY, RING_HEADER, RING_MAGIC, RunDirectory

BATCH_SAMPLES = 64
SAMPLE_BYTES = 602_112
BATCH_BYTES = BATCH_SAMPLES * SAMPLE_BYTES
BATCHES_PER_EPOCH = 313
CPUS = 16
SAMPLE_PERIOD_MS = 200
RING_CAPACITY = 4096
MAIN_PID = 4000
SCRIPT = Path(__file__).resolve().parent.parent / "samples" / "article_floats.py"

BASELINE = Configuration(
    num_workers=4, pin_memory=False, non_blocking=False, prefetch_factor=2, persistent_workers=False, batch_size=64
)
FETCH_MS, COLLATE_MS, HAND_OFF_MS = 2.2, 11.0, 4.5
RECEIVE_MS, PIN_MS, PIN_ALONE_MS = 2.0, 13.0, 2.5
PAGEABLE_COPY_MS, PINNED_COPY_MS, ASYNC_COPY_MS = 8.5, 0.8, 0.05
OPTIMIZER_MS, SCRIPT_MS = 0.4, 1.8


def grid(count: int) -> list[Configuration]:
    """The baseline and configurations around it, `count` in all."""
    fields = itertools.product((0, 1, 2, 8), ((False, False), (True, False), (True, True)))
    at_baseline = [(4, (True, False)), (4, (True, True))]
    others = [
        msgspec.structs.replace(
            BASELINE, num_workers=workers, pin_memory=pin, non_blocking=nb, prefetch_factor=2 if workers else None
        )
        for workers, (pin, nb) in [*at_baseline, *fields]
    ]
    return [BASELINE, *others][:count]


def changes(configuration: Configuration) -> dict[str, bool | int | None]:
    """What differs from the baseline."""
    given, baseline = (msgspec.structs.asdict(each) for each in (configuration, BASELINE))
    return {name: value for name, value in given.items() if value != baseline[name]}


@dataclass(frozen=True)
class Costs:
    """Milliseconds of one step under a configuration."""

    wait: float
    transfer: float
    script: float
    period: float

    @classmethod
    def of(cls, configuration: Configuration) -> Costs:
        """Reckon the step: the slowest of the lanes that run beside each other sets the pace."""
        workers, pin = configuration.num_workers, configuration.pin_memory
        transfer = PAGEABLE_COPY_MS if not pin else ASYNC_COPY_MS if configuration.non_blocking else PINNED_COPY_MS
        own = transfer + OPTIMIZER_MS + SCRIPT_MS
        if workers == 0:
            wait = COLLATE_MS * 0.7 + (PIN_ALONE_MS if pin else 0.0)
            return cls(wait, transfer, SCRIPT_MS, own + wait)
        lanes = [(FETCH_MS + COLLATE_MS) * (1 + workers / CPUS) / workers]
        lanes.append(RECEIVE_MS + PIN_MS if pin else own + HAND_OFF_MS)
        period = max(own, *lanes)
        return cls(period - own, transfer, SCRIPT_MS, period)


@dataclass
class _Clock:
    now_ns: int = 1_000_000_000_000

    def after(self, ms: float) -> int:
        self.now_ns += int(ms * 1e6)
        return self.now_ns


@dataclass
class _Writer:
    run: RunDirectory
    script: Path
    chance: random.Random
    trace_kernels: int
    clock: _Clock = field(default_factory=_Clock)
    launch: int = 0
    block: int = 0

    def lines(self, name: str, records: Sequence[AnyRecord]) -> None:
        with (self.run.journal / name).open("ab") as journal:
            journal.writelines(msgspec.json.encode(record) + b"\n" for record in records)

    # ---------------------------------------------------------------------------------------------- one launch

    def write_launch(self, order: LaunchOrder, configuration: Configuration) -> None:
        pid = MAIN_PID + 100 * self.launch
        costs = Costs.of(configuration)
        began = self.clock.now_ns
        self.lines("parent.jsonl", [LaunchBegan(launch=self.launch, t_ns=began, pid=pid, order=order)])
        block = self.write_child(pid, order, configuration, costs)
        self.lines(f"sampler-{self.launch:03}.jsonl", list(self.samples(pid, configuration, began)))
        self.write_rings(pid, configuration, block)
        self.lines("parent.jsonl", [self.memory(configuration, block), *self.endings(began)])

    def write_child(self, pid: int, order: LaunchOrder, configuration: Configuration, costs: Costs) -> Block:
        launch, at = self.launch, self.clock.after
        trial = order.blocks[0].trial
        key = LoaderKey(location=f"{self.script}:31", ordinal=0)
        workers = [pid + 1 + number for number in range(configuration.num_workers)]
        start_method = "fork" if workers else None
        records: list[AnyRecord] = [
            LaunchStarted(
                launch=launch,
                t_ns=at(900),
                pid=pid,
                python_version="3.12.3",
                torch_version="2.11.0",
                cuda_version="13.0",
            ),
            LoaderMade(
                launch=launch,
                t_ns=at(700),
                loader=1,
                key=key,
                class_name="torch.utils.data.DataLoader",
                dataset_class="__main__.FloatImages",
                configuration=msgspec.structs.replace(BASELINE, non_blocking=None),
            ),
            TreatmentApplied(
                launch=launch,
                t_ns=at(1),
                trial=trial,
                applied={} if order.treatment is None else order.treatment.changes,
                refused={},
                how="cloned at iteration" if order.treatment and order.treatment.changes else "nothing to change",
            ),
            LoaderIterated(
                launch=launch,
                t_ns=at(20),
                loader=1,
                iterator=1,
                configuration=configuration,
                startup_ms=3.0 + 6.0 * len(workers),
                first_batch_ms=40.0 + 5.0 * len(workers),
                start_method=start_method,
                worker_pids=workers,
            ),
            LoaderChosen(
                launch=launch,
                t_ns=at(60),
                loader=1,
                key=key,
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
                start_method=start_method,
                accelerator="cuda",
                device="cuda:0",
                device_name="NVIDIA H200",
                intraop_threads=1 if configuration.pin_memory and workers else CPUS,
            ),
            FirstStep(launch=launch, t_ns=at(1)),
        ]
        block = self.count(order.blocks[0], configuration, costs, records)
        if order.profile:
            records.append(self.profile(trial, pid, configuration, costs))
        epochs = (block.settle_steps + block.steps) / BATCHES_PER_EPOCH
        records.append(
            TargetEnded(
                launch=launch,
                t_ns=at(40),
                how="stopped",
                status=0,
                steps=block.settle_steps + block.steps,
                epochs=epochs,
            )
        )
        self.lines(f"launch-{launch:03}-{pid}.jsonl", records)
        return block

    def count(self, order: BlockOrder, configuration: Configuration, costs: Costs, records: list[AnyRecord]) -> Block:
        launch, number, trial = self.launch, order.block, order.trial
        pace = self.chance.lognormvariate(0, 0.02)
        step_ms = [costs.period * pace * self.chance.lognormvariate(0, 0.05) for _ in range(self.steps(order, costs))]
        wait_ms = [max(0.0, step - (costs.period - costs.wait)) for step in step_ms]
        settle = 2 * configuration.num_workers + 6
        for phase, ms in (("settling", 0.1), ("counting", settle * costs.period), ("counted", sum(step_ms))):
            records.append(BlockPhase(launch=launch, t_ns=self.clock.after(ms), block=number, trial=trial, phase=phase))
        steps, wait, seconds = len(step_ms), sum(wait_ms), sum(step_ms) / 1000
        main_process = configuration.num_workers == 0
        block = Block(
            launch=launch,
            t_ns=self.clock.after(0.1),
            block=number,
            trial=trial,
            round=order.round,
            settle_steps=settle,
            steps=steps,
            samples=steps * BATCH_SAMPLES,
            started_ns=records[-2].t_ns,
            ended_ns=records[-1].t_ns,
            seconds=seconds,
            gap_s=0.0,
            status="counted",
            reason=None,
            wait_ms=wait,
            wait_cpu_ms=wait * (0.97 if main_process else 0.4),
            transfer_ms=steps * costs.transfer,
            synchronise_ms=0.0,
            optimizer_ms=steps * OPTIMIZER_MS,
            main_cpu_ms=seconds * 1000 * 0.9,
            step_ms=step_ms[:2000],
            step_wait_ms=wait_ms[:2000],
            transfers=[
                TransferSite(
                    location=f"{self.script}:{line}",
                    calls=steps,
                    bytes=steps * size,
                    ms=steps * costs.transfer * share,
                    pinned_calls=steps if configuration.pin_memory else 0,
                    non_blocking_calls=steps if configuration.non_blocking else 0,
                )
                for line, size, share in ((52, BATCH_BYTES, 0.98), (53, 8 * BATCH_SAMPLES, 0.02))
            ],
            syncs=[],
            pin_thread=self.pin_thread(configuration, steps, seconds),
            host_allocator=HostAllocator(
                allocations=0,
                alloc_ms=0.0,
                active_bytes=2 * BATCH_BYTES if configuration.pin_memory else 0,
                reserved_bytes=10 * 2**26 if configuration.pin_memory else 0,
            ),
            missing={},
            probe_us_per_step=9.0 * self.chance.lognormvariate(0, 0.1),
        )
        records.append(block)
        return block

    @staticmethod
    def steps(order: BlockOrder, costs: Costs) -> int:
        return max(20, int(order.seconds * 1000 / costs.period))

    @staticmethod
    def pin_thread(configuration: Configuration, steps: int, seconds: float) -> PinThread | None:
        if not configuration.pin_memory:
            return None
        if configuration.num_workers == 0:
            pin = steps * PIN_ALONE_MS
            return PinThread(batches=steps, receive_ms=0.0, pin_ms=pin, idle_ms=0.0, in_main_thread=True)
        receive, pin = steps * RECEIVE_MS, steps * PIN_MS
        idle = max(0.0, seconds * 1000 - receive - pin)
        return PinThread(batches=steps, receive_ms=receive, pin_ms=pin, idle_ms=idle, in_main_thread=False)

    def memory(self, configuration: Configuration, block: Block) -> MemoryRead:
        in_flight = configuration.num_workers * (configuration.prefetch_factor or 0) * BATCH_BYTES
        return MemoryRead(
            launch=self.launch,
            t_ns=block.t_ns + 1000,
            block=block.block,
            trial=block.trial,
            pss_bytes=14 * 2**30 + in_flight,
            worker_pss_bytes=configuration.num_workers * 180 * 2**20,
            shm_bytes=in_flight,
        )

    def endings(self, began_ns: int) -> list[AnyRecord]:
        ended = self.clock.after(300)
        seconds = (ended - began_ns) / 1e9
        return [
            LaunchEnded(
                launch=self.launch,
                t_ns=ended,
                status="ok",
                exit="stopped after the schedule",
                returncode=0,
                seconds=seconds,
            ),
            FilesSettled(launch=self.launch, t_ns=self.clock.after(5), restored=[], moved=[], listed=[]),
        ]

    # ---------------------------------------------------------------------------------------------- beside it

    def samples(self, pid: int, configuration: Configuration, began_ns: int) -> Iterator[Sample]:
        for number, t_ns in enumerate(range(began_ns, self.clock.now_ns, SAMPLE_PERIOD_MS * 1_000_000), start=1):
            s = number * SAMPLE_PERIOD_MS / 1000
            workers = [self.process(pid + 1 + worker, "worker", s, 0.8) for worker in range(configuration.num_workers)]
            machine_s = t_ns / 1e9
            yield Sample(
                launch=self.launch,
                t_ns=t_ns,
                processes=[self.process(pid, "main", s, 0.9), *workers],
                memory_available_bytes=int((100 - self.chance.random()) * 2**30),
                memory_cached_bytes=8 * 2**30,
                swap_used_bytes=0,
                shm_used_bytes=configuration.num_workers * 2 * BATCH_BYTES,
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

    def write_rings(self, pid: int, configuration: Configuration, block: Block) -> None:
        fetch_ns, collate_ns = int(FETCH_MS * 1e6), int(COLLATE_MS * 1e6)
        for worker in range(configuration.num_workers):
            entries = [
                RING_ENTRY.pack(
                    block.started_ns + int(step * block.seconds * 1e9 / block.steps),
                    fetch_ns,
                    collate_ns,
                    int(0.97 * (fetch_ns + collate_ns)),
                    BATCH_SAMPLES,
                )
                for step in range(worker, min(block.steps, RING_CAPACITY), configuration.num_workers)
            ]
            header = RING_HEADER.pack(RING_MAGIC, self.launch, pid + 1 + worker, worker, len(entries))
            content = (header + b"".join(entries)).ljust(RING_HEADER.size + RING_CAPACITY * RING_ENTRY.size, b"\0")
            (self.run.rings / f"launch-{self.launch:03}-{pid + 1 + worker}.ring").write_bytes(content)

    def profile(self, trial: str, pid: int, configuration: Configuration, costs: Costs) -> Window:
        steps = 10
        trace = self.run.traces / f"launch-{self.launch:03}.json.gz"
        events = list(
            itertools.chain.from_iterable(
                _step_events(step, pid, configuration=configuration, costs=costs, kernels=self.trace_kernels)
                for step in range(steps)
            )
        )
        trace.write_bytes(gzip.compress(msgspec.json.encode({"traceEvents": events}), compresslevel=1))
        name = str(trace.relative_to(self.run.path))
        ms = steps * costs.period * 1.3
        t_ns = self.clock.after(ms)
        return Window(
            launch=self.launch, t_ns=t_ns, trial=trial, steps=steps, trace=name, reason=None, seconds=ms / 1000
        )


def _step_events(
    step: int, pid: int, *, configuration: Configuration, costs: Costs, kernels: int
) -> Iterator[dict[str, object]]:
    """Kineto's events of one step, in microseconds."""

    def event(cat: str, name: str, ts: float, dur: float, **args: object) -> dict[str, object]:
        on_gpu = cat in ("kernel", "gpu_memcpy")
        place = {"pid": 0, "tid": 7} if on_gpu else {"pid": pid, "tid": pid}
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **place, "args": args}

    start_us = step * costs.period * 1000
    kind = "_MultiProcessingDataLoaderIter" if configuration.num_workers else "_SingleProcessDataLoaderIter"
    yield event("user_annotation", f"ProfilerStep#{step}", start_us, costs.period * 1000)
    yield event("user_annotation", f"enumerate(DataLoader)#{kind}.__next__", start_us, costs.wait * 1000)
    now = start_us + costs.wait * 1000
    memory = "Pinned" if configuration.pin_memory else "Pageable"
    correlation = 100_000 * step
    copy_us = (PINNED_COPY_MS if configuration.pin_memory else PAGEABLE_COPY_MS) * 1000
    yield event("cuda_runtime", "cudaMemcpyAsync", now, costs.transfer * 1000, correlation=correlation)
    yield event(
        "gpu_memcpy",
        f"Memcpy HtoD ({memory} -> Device)",
        now + 5,
        copy_us,
        correlation=correlation,
        bytes=BATCH_BYTES,
        **{"memory bandwidth (GB/s)": BATCH_BYTES / copy_us / 1000},
    )
    if not configuration.non_blocking:
        yield event("cuda_runtime", "cudaStreamSynchronize", now + 5, costs.transfer * 1000)
    now += costs.transfer * 1000
    gap = costs.script * 1000 / kernels
    for number in range(kernels):
        at = now + number * gap
        yield event("cpu_op", "aten::addmm", at, gap * 0.9)
        yield event("cuda_runtime", "cudaLaunchKernel", at + 2, 5.0, correlation=correlation + number + 1)
        yield event("kernel", "sm80_xmma_gemm_f32f32", at + 8, gap * 0.6, correlation=correlation + number + 1)
    yield event("user_annotation", "Optimizer.step#SGD.step", now + costs.script * 1000, OPTIMIZER_MS * 1000)


def write_run(
    path: Path, *, configurations: int = 12, rounds: int = 6, pairs: int = 4, trace_kernels: int = 150, seed: int = 0
) -> RunDirectory:
    """Write a run directory as a sweep leaves it, the user's script included (beside it), but no report.

    Args:
        path: the run directory; made here.
        configurations: how many, the baseline included.
        rounds: of these, in random order, the baseline twice in each.
        pairs: fresh launches of baseline and leader at the end.
        trace_kernels: kernels a step in each configuration's trace.
        seed: of order and noise.
    """
    script = path.parent / SCRIPT.name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SCRIPT, script)
    run = RunDirectory.create(path)
    chance = random.Random(seed)
    writer = _Writer(run, script, chance, trace_kernels)
    run.write_spec(_spec(script, rounds, seed))
    run.target_log.write_text("")
    writer.lines("parent.jsonl", [_machine(writer.clock.after(0))])
    for order, configuration in _orders(grid(configurations), rounds, pairs, chance):
        writer.launch += 1
        writer.write_launch(order, configuration)
    writer.lines("parent.jsonl", [RunEnded(launch=0, t_ns=writer.clock.after(10), status="ok")])
    return run


def _orders(
    configurations: list[Configuration], rounds: int, pairs: int, chance: random.Random
) -> Iterator[tuple[LaunchOrder, Configuration]]:
    """Discover (the baseline's first block of round 1), the rest of the rounds, then the pairs."""
    treatments = {
        configuration.id: Treatment(
            id=configuration.id, kind="configuration", configuration=configuration, changes=changes(configuration)
        )
        for configuration in configurations
    }
    numbers = itertools.count(1)

    def ordered(purpose: str, turn: int, configuration: Configuration, **given: object) -> LaunchOrder:
        treatment = treatments[configuration.id]
        block = BlockOrder(block=next(numbers), round=turn, trial=treatment.id)
        fields = {"purpose": purpose, "treatment": treatment, "blocks": [block], **given}
        return msgspec.convert(fields, LaunchOrder, from_attributes=True)

    discover = BlockOrder(block=next(numbers), round=1, trial="baseline")
    yield LaunchOrder(purpose="discover", treatment=None, blocks=[discover], profile=True), BASELINE
    for turn in range(1, rounds + 1):
        once_more = [] if turn == 1 else [BASELINE]
        shuffled = chance.sample([*configurations, *once_more], len(configurations) + len(once_more))
        for place, configuration in enumerate(shuffled):
            planned = list(treatments.values()) if place == 0 else []
            profile = turn == 1 and configuration != BASELINE
            yield ordered("round", turn, configuration, planned=planned, profile=profile), configuration
    leader = min(configurations, key=lambda configuration: Costs.of(configuration).period)
    for pair in range(1, pairs + 1 if leader != BASELINE else 1):
        for configuration in (BASELINE, leader) if pair % 2 else (leader, BASELINE):
            yield ordered("verify", pair, configuration), configuration


def _spec(script: Path, rounds: int, seed: int) -> RunSpec:
    return RunSpec(
        target=str(script),
        module=False,
        args=[],
        cwd=str(script.parent),
        python="/usr/bin/python3",
        started_utc="2026-01-01T12:00:00+00:00",
        command=["pindiag", "run", script.name, "--sweep"],
        sweep=True,
        grid=None,
        budget_s=900.0,
        rounds=rounds,
        steps=None,
        seed=seed,
        device=None,
        loader=None,
        wait_s=600.0,
        usable_cpus=CPUS,
        pindiag_version=__version__,
    )


def _machine(t_ns: int) -> Machine:
    return Machine(
        launch=0,
        t_ns=t_ns,
        platform="Linux",
        kernel="6.8.0",
        logical_cpus=CPUS,
        physical_cpus=CPUS,
        usable_cpus=CPUS,
        usable_cpus_reason="all",
        memory_bytes=128 * 2**30,
        memory_available_bytes=100 * 2**30,
        cgroup_memory_limit_bytes=None,
        swap_bytes=0,
        shm_bytes=64 * 2**30,
        shm_free_bytes=64 * 2**30,
        open_files_limit=1_048_576,
        locked_memory_limit_bytes=None,
        gpus=[
            {
                "name": "NVIDIA H200",
                "uuid": "GPU-0",
                "memory_bytes": 141 * 10**9,
                "driver": "580.0",
                "pcie_gen": 5,
                "pcie_width": 16,
                "pcie_gen_max": 5,
                "pcie_width_max": 16,
            }
        ],
        fingerprint="synthetic",
    )
