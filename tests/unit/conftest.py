"""A script that never ran: answers launch orders with the records that a real launch would leave."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from pindiag.model import (
    AnyRecord,
    Block,
    BlockPhase,
    Configuration,
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
    RunSpec,
    Sample,
    SyncSite,
    TargetEnded,
    TargetFailed,
    TransferSite,
    WholeEpochs,
    Window,
    WorkerBatch,
)

SECOND = 1_000_000_000
PLACE = LoaderKey(location="/home/ann/train.py:14", ordinal=0)


def run_spec(**changes) -> RunSpec:
    asked = {
        "target": "/home/ann/train.py",
        "module": False,
        "args": [],
        "cwd": "/home/ann",
        "python": "/usr/bin/python3",
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
        "fresh": True,
        "pindiag_version": "0",
    }
    return RunSpec(**(asked | changes))


def configuration(**changes) -> Configuration:
    usual = {
        "num_workers": 4,
        "pin_memory": False,
        "non_blocking": None,
        "prefetch_factor": 2,
        "persistent_workers": False,
        "batch_size": 64,
    }
    return Configuration(**(usual | changes))


@dataclass
class FakeScript:
    """A training script and its machine; `rate` gives the true samples/s of a configuration."""

    baseline: Configuration = field(default_factory=configuration)
    rate: object = lambda configuration: 1000.0
    noise: float = 0.02
    accelerator: str | None = None
    overhead_s: float = 0.6
    startup_s: float = 2.0
    first_batch_ms: float = 200.0
    """From asking for an iterator to its first batch."""
    most_epochs: int | None = None
    """Of its own; None: more than it is asked for."""
    between_s: float = 0.0
    """What it does between its epochs, e.g. validation."""
    hang_s: float = 30.0
    fails: dict[str, str] = field(default_factory=dict)
    """Trial to the reason why it fails."""
    hangs: tuple[str, ...] = ()
    fails_past_end: bool = False
    detailed: bool = False
    """With samples, memory and windows."""
    first_rings: bool = False
    """Rings of the first format."""
    born: dict[str, object] = field(default_factory=dict)
    """What its iterators tell of their birth beyond their start-up."""
    seed: int = 1
    now_ns: int = 10 * SECOND
    launch: int = 0
    records: list[AnyRecord] = field(default_factory=list)
    batches: list[WorkerBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def at(self, seconds: float = 0.0) -> dict[str, int]:
        self.now_ns += round(seconds * SECOND)
        return {"launch": self.launch, "t_ns": self.now_ns}

    def machine(self, **changes) -> None:
        self.records.append(
            Machine(
                launch=0,
                t_ns=self.now_ns,
                **{
                    "platform": "Linux",
                    "kernel": "6.1",
                    "logical_cpus": 8,
                    "physical_cpus": 4,
                    "usable_cpus": 8,
                    "usable_cpus_reason": "all",
                    "memory_bytes": 16 << 30,
                    "memory_available_bytes": 12 << 30,
                    "cgroup_memory_limit_bytes": None,
                    "swap_bytes": 0,
                    "shm_bytes": 8 << 30,
                    "shm_free_bytes": 8 << 30,
                    "open_files_limit": 1024,
                    "locked_memory_limit_bytes": None,
                    "gpus": [],
                    "fingerprint": "abc",
                }
                | changes,
            )
        )

    def run(self, order: LaunchOrder) -> None:
        """Leave the records of one launch."""
        self.launch += 1
        trial = order.blocks[0].trial
        made = self.baseline if order.treatment is None else order.treatment.configuration
        name = self.baseline.id if order.treatment is None else order.treatment.id
        began = self.now_ns
        self.add(LaunchBegan(**self.at(), pid=4000 + self.launch, order=order))
        self.add(
            LaunchStarted(
                **self.at(0.1), pid=4000 + self.launch, python_version="3.12", torch_version="2.11", cuda_version=None
            )
        )
        self.add(
            LoaderMade(
                **self.at(self.startup_s),
                loader=1,
                key=PLACE,
                class_name="DataLoader",
                dataset_class="Floats",
                configuration=self.baseline,
            )
        )
        self.add(
            LoaderIterated(
                **self.at(),
                loader=1,
                iterator=1,
                configuration=made,
                startup_ms=50.0,
                first_batch_ms=self.first_batch_ms,
                start_method="fork" if made.num_workers else None,
                worker_pids=[9000 + worker for worker in range(made.num_workers)],
                **self.born,
            )
        )
        if name in self.fails:
            self.end(began, "failed", self.fails[name])
            return
        self.add(self.chosen(made))
        self.add(FirstStep(**self.at(0.2)))
        if name in self.hangs:
            self.at(self.hang_s)
            self.end(began, "failed", "no step was made for 30 s")
            return
        if self.fails_past_end and not order.natural_epochs:
            self.add(
                TargetFailed(
                    **self.at(0.1),
                    exception="ValueError",
                    message="Tried to step 61 times",
                    traceback="",
                    step=60,
                    past_natural_end=True,
                )
            )
            self.end(began, "failed", "ValueError: Tried to step 61 times")
            return
        self.block(order, trial, made)
        if order.profile:
            self.add(
                Window(
                    **self.at(0.5),
                    trial=trial,
                    steps=10,
                    trace=f"traces/{trial}-{self.launch}.json.gz",
                    reason=None,
                    seconds=0.5,
                )
            )
        self.add(TargetEnded(**self.at(self.overhead_s), how="stopped", status=0, steps=100, epochs=0.5))
        self.end(began, "ok", None)

    def add(self, record: AnyRecord) -> None:
        self.records.append(record)

    def end(self, began: int, status: str, reason: str | None) -> None:
        moment = self.at(0.1)
        self.add(
            LaunchEnded(
                **moment,
                status=status,
                exit="stopped after the schedule" if reason is None else "exit status 1",
                returncode=0,
                seconds=(self.now_ns - began) / SECOND,
                reason=reason,
            )
        )

    def chosen(self, made: Configuration) -> LoaderChosen:
        return LoaderChosen(
            **self.at(),
            loader=1,
            key=PLACE,
            why="its batch came last before the optimizer stepped",
            others=[],
            configuration=made,
            batches_per_epoch=313,
            dataset_samples=20032,
            batch_samples=64,
            sample_bytes=602112,
            batch_bytes=64 * 602112,
            tensors=2,
            iterable=False,
            dataset_class="Floats",
            start_method="fork",
            accelerator=self.accelerator,
            device="cuda:0" if self.accelerator else None,
            device_name="NVIDIA H200" if self.accelerator else None,
            intraop_threads=8,
        )

    def block(self, order: LaunchOrder, trial: str, made: Configuration) -> None:
        wanted = order.blocks[0]
        rate = self.rate(made) * self.random.lognormvariate(0, self.noise)
        steps = wanted.steps if wanted.epochs and wanted.steps else max(round(wanted.seconds * rate / 64), 4)
        seconds = steps * 64 / rate
        whole = None
        if wanted.epochs:
            whole = WholeEpochs(
                epochs=min(wanted.epochs, self.most_epochs or wanted.epochs),
                startup_s=0.2,
                steady_steps=steps,
                steady_samples=steps * 64,
                steady_seconds=seconds,
            )
            seconds += wanted.epochs * self.between_s
        common = {"block": wanted.block, "trial": trial}
        self.add(BlockPhase(**self.at(), **common, phase="settling"))
        self.add(BlockPhase(**self.at(0.3), **common, phase="counting"))
        started = self.now_ns
        self.samples(made, seconds)
        self.now_ns = started + round(seconds * SECOND)
        self.add(BlockPhase(**self.at(), **common, phase="counted"))
        step = seconds / steps * 1e3
        self.add(
            Block(
                **self.at(0.001),
                **common,
                round=wanted.round,
                settle_steps=11,
                steps=steps,
                samples=steps * 64,
                started_ns=started,
                ended_ns=started + round(seconds * SECOND),
                seconds=seconds,
                gap_s=0.0,
                status="counted",
                reason=None,
                wait_ms=0.6 * seconds * 1e3,
                wait_cpu_ms=0.06 * seconds * 1e3,
                transfer_ms=0.1 * seconds * 1e3,
                synchronise_ms=0.0,
                optimizer_ms=0.05 * seconds * 1e3,
                main_cpu_ms=0.5 * seconds * 1e3,
                step_ms=[step] * steps,
                step_wait_ms=[0.6 * step] * steps,
                transfers=[
                    TransferSite(
                        location="/home/ann/train.py:23",
                        calls=steps * 2,
                        bytes=steps * 64 * 602112,
                        ms=0.1 * seconds * 1e3,
                        pinned_calls=steps if made.pin_memory else 0,
                        non_blocking_calls=0,
                    )
                ]
                if self.accelerator
                else [],
                syncs=[SyncSite(location="/home/ann/train.py:30", kind="item", calls=steps, ms=0.0)],
                pin_thread=PinThread(
                    batches=steps,
                    receive_ms=steps * 1.0,
                    pin_ms=steps * 5.0,
                    idle_ms=steps * 2.0,
                    in_main_thread=made.num_workers == 0,
                )
                if made.pin_memory and self.accelerator
                else None,
                host_allocator=HostAllocator(allocations=4, alloc_ms=8.0, active_bytes=1 << 28, reserved_bytes=1 << 29)
                if self.accelerator
                else None,
                missing={} if self.accelerator else {"host_allocator": "no CUDA", "transfer_ms": "no accelerator"},
                probe_us_per_step=6.0,
                epochs=whole,
            )
        )
        self.add(MemoryRead(**self.at(0.05), **common, pss_bytes=1 << 30, worker_pss_bytes=1 << 29, shm_bytes=1 << 28))
        for worker in range(made.num_workers):
            period = seconds / max(steps // made.num_workers, 1)
            self.batches += [
                WorkerBatch(
                    launch=self.launch,
                    pid=9000 + worker,
                    worker=worker,
                    started_ns=started + round(number * period * SECOND),
                    fetch_ns=round(period * 0.5 * SECOND),
                    collate_ns=round(period * 0.2 * SECOND),
                    cpu_ns=round(period * 0.35 * SECOND),
                    samples=64,
                    **self.told_of_workers(period),
                )
                for number in range(steps // made.num_workers)
            ]

    def told_of_workers(self, period: float) -> dict[str, int]:
        """What rings of the second format add."""
        if self.first_rings:
            return {}
        handed = {"hand_off_ns": round(period * 0.1 * SECOND), "hand_off_cpu_ns": 0, "blocked_ns": 0, "sent_bytes": 900}
        return {"idle_ns": round(period * 0.3 * SECOND), "process_cpu_ns": round(period * 0.4 * SECOND), **handed}

    def samples(self, made: Configuration, seconds: float) -> None:
        """A sample every 0.2 s: the main process at half a core, each worker at 0.8 of one."""
        if not self.detailed:
            return
        started = self.now_ns
        count = max(int(seconds / 0.2) + 1, 2)
        for number in range(count):
            passed = seconds * number / (count - 1)
            roles = [
                ("main", 4000 + self.launch, 0.5),
                *(("worker", 9000 + worker, 0.8) for worker in range(made.num_workers)),
            ]
            self.add(
                Sample(
                    launch=self.launch,
                    t_ns=started + round(passed * SECOND),
                    processes=[
                        Process(
                            pid=pid,
                            role=role,
                            cpu_s=10 + share * passed,
                            rss_bytes=500 << 20 if role == "main" else 300 << 20,
                            threads=9,
                            voluntary_switches=10,
                            involuntary_switches=round(20 * passed),
                            minor_faults=0,
                            major_faults=0,
                            run_delay_s=0.1 * share * passed,
                            read_bytes=round(1e6 * passed),
                            pin_thread_cpu_s=0.3 * passed if made.pin_memory and role == "main" else None,
                        )
                        for role, pid, share in roles
                    ],
                    memory_available_bytes=8 << 30,
                    memory_cached_bytes=1 << 30,
                    swap_used_bytes=0,
                    shm_used_bytes=1 << 20,
                    cgroup_memory_bytes=None,
                    cgroup_throttled_s=None,
                    psi_cpu_s=5 + 0.25 * passed,
                    psi_io_s=1.0,
                    psi_memory_s=None,
                    machine_cpu_s=100 + 4 * passed,
                    gpu_utilization=0.4 if self.accelerator else None,
                    gpu_memory_utilization=None,
                    gpu_memory_bytes=None,
                    gpu_sm_clock_mhz=None,
                    gpu_throttle_reasons=None,
                    pcie_rx_bytes_per_s=None,
                    sampler_cpu_s=0.01 * passed,
                )
            )

    def play(self, decide, most: int = 400) -> list[LaunchOrder]:
        """Launch what `decide` asks for until it asks for nothing."""
        orders = []
        while (order := decide(self.records)) is not None:
            orders.append(order)
            assert len(orders) < most, "the schedule never ends"
            self.run(order)
        return orders

    def spent_s(self) -> float:
        """From first steps to ends, reckoned apart from the product."""
        first = {record.launch: record.t_ns for record in self.records if isinstance(record, FirstStep)}
        ended = {record.launch: record.t_ns for record in self.records if isinstance(record, LaunchEnded)}
        return sum((ended[launch] - first[launch]) / SECOND for launch in first)


@pytest.fixture(scope="session")
def script():
    """The class, to be made with what a test needs."""
    return FakeScript


@pytest.fixture(scope="session")
def spec():
    """Makes a RunSpec."""
    return run_spec


@pytest.fixture(scope="session")
def loader_arguments():
    """Makes a Configuration."""
    return configuration
