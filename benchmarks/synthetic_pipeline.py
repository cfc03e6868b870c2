"""A small model of a pipeline: workers, hand-off, pin thread, copies, step.

Its costs are those of the article's scenario on an H200.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from pindiag.model import Ablation, Configuration, Treatment

BATCH_SAMPLES = 64
SAMPLE_BYTES = 602_112
BATCH_BYTES = BATCH_SAMPLES * SAMPLE_BYTES
BATCHES_PER_EPOCH = 313
CPUS = 16

BASELINE = Configuration(
    num_workers=4, pin_memory=False, non_blocking=False, prefetch_factor=2, persistent_workers=False, batch_size=64
)
FETCH_MS, COLLATE_MS, SEND_MS, HAND_OFF_MS = 2.2, 11.0, 0.3, 4.5
RECEIVE_MS, PIN_MS, PIN_ALONE_MS = 2.0, 13.0, 2.5
PAGEABLE_COPY_MS, PINNED_COPY_MS, ASYNC_COPY_MS = 8.5, 0.8, 0.05
OPTIMIZER_MS, SCRIPT_MS = 0.4, 1.8


def grid(count: int) -> list[Configuration]:
    """The baseline and configurations around it, `count` in all, of 24 that there are."""
    fields = itertools.product((0, 1, 2, 8, 6, 12, 16), ((False, False), (True, False), (True, True)))
    at_baseline = [(4, (True, False)), (4, (True, True))]
    others = [
        msgspec.structs.replace(
            BASELINE, num_workers=workers, pin_memory=pin, non_blocking=nb, prefetch_factor=2 if workers else None
        )
        for workers, (pin, nb) in [*at_baseline, *fields]
    ]
    return [BASELINE, *others][:count]


def treatments(count: int) -> dict[str, Treatment]:
    """The grid as treatments, by id."""
    return {
        configuration.id: Treatment(
            id=configuration.id, kind="configuration", configuration=configuration, changes=changes(configuration)
        )
        for configuration in grid(count)
    }


def ablations() -> list[Treatment]:
    """Those of this script: the step alone, replayed host batches, the loader alone."""

    def ablation(kind: Ablation, name: str, **given: bool) -> Treatment:
        configuration = msgspec.structs.replace(BASELINE, **given)
        return Treatment(id=name, kind="ablation", configuration=configuration, changes=dict(given), ablation=kind)

    return [
        ablation("compute_only", "compute_only"),
        *(
            ablation("host_batch", f"host_batch-pin{pin:d}-nb{nb:d}", pin_memory=pin, non_blocking=nb)
            for pin, nb in ((False, False), (True, False), (True, True))
        ),
        *(ablation("loader_only", f"loader_only-nw4-pin{pin:d}", pin_memory=pin) for pin in (False, True)),
    ]


def changes(configuration: Configuration) -> dict[str, bool | int | None]:
    """What differs from the baseline."""
    given, baseline = (msgspec.structs.asdict(each) for each in (configuration, BASELINE))
    return {name: value for name, value in given.items() if value != baseline[name]}


def lanes(configuration: Configuration) -> list[float]:
    """Milliseconds a batch takes in each lane of the loader."""
    workers, pin = configuration.num_workers, configuration.pin_memory
    if workers == 0:
        return [COLLATE_MS * 0.7 + (PIN_ALONE_MS if pin else 0.0)]
    fetching = (FETCH_MS + COLLATE_MS) * (1 + workers / CPUS) / workers
    return [fetching, RECEIVE_MS + PIN_MS] if pin else [fetching]


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
            (wait,) = lanes(configuration)
            return cls(wait, transfer, SCRIPT_MS, own + wait)
        hand_off = [] if pin else [own + HAND_OFF_MS]
        period = max(own, *lanes(configuration), *hand_off)
        return cls(period - own, transfer, SCRIPT_MS, period)

    @classmethod
    def under(cls, treatment: Treatment) -> Costs:
        """Reckon the step under any treatment: an ablation leaves lanes out, a tweak of this script changes nothing."""
        whole = cls.of(treatment.configuration)
        if treatment.ablation == "compute_only":
            return cls(0.0, 0.0, SCRIPT_MS, OPTIMIZER_MS + SCRIPT_MS)
        if treatment.ablation == "host_batch":
            return cls(0.0, whole.transfer, SCRIPT_MS, whole.transfer + OPTIMIZER_MS + SCRIPT_MS)
        if treatment.ablation == "loader_only":
            drained = max(lanes(treatment.configuration))
            return cls(drained, 0.0, 0.0, drained)
        return whole


@dataclass(frozen=True)
class Serving:
    """A treatment while it is served: from when on, and by which workers."""

    treatment: Treatment
    since_ns: int
    worker_pids: list[int]

    @property
    def configuration(self) -> Configuration:
        """Of the loader that serves."""
        return self.treatment.configuration

    @property
    def costs(self) -> Costs:
        """Of its steps."""
        return Costs.under(self.treatment)

    @property
    def moves(self) -> bool:
        """Whether batches are moved to the device."""
        return self.treatment.ablation not in ("compute_only", "loader_only")

    @property
    def loads(self) -> bool:
        """Whether batches come from the loader."""
        return self.treatment.ablation not in ("compute_only", "host_batch")


def step_events(
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
