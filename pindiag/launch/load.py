"""What ran beside the target while a block counted, from the samples of that time. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from statistics import fmean
from typing import Any, TypeVar

from pindiag.model import BlockLoad, Process, Sample

HELD_BACK = 0x8 | 0x20 | 0x40 | 0x80
"""NVML's clock event reasons (nvml.h) that come from outside the work itself: hardware slowdown, heat, power brake.

The power cap is not among them: what works hardest meets it, in every block alike.
"""

LEAST_S = 0.5
"""The kernel counts CPU time in ticks of 10 ms, so less says nothing of a few per cent."""

UNBELIEVABLE_SHARE = 0.1
"""Of the CPUs: where the target alone used so much more than the kernel says was used at all, the kernel's count is
that of something else, e.g. of a sandbox."""

NOT_TOLD = "this platform does not tell it"

OF_WORKERS = ("worker_threads", "worker_allowed_cpus")
"""Null without workers, which is no gap."""


def block_load(
    samples: Sequence[Sample], block: int, trial: str, *, t_ns: int, cpus: int | None, quota_cpus: float | None
) -> BlockLoad | None:
    """What the samples of a counted part come to; None without two of them far enough apart.

    Args:
        samples: from its begin to its end, in the order of time.
        block: its number.
        trial: what it ran under.
        t_ns: now.
        cpus: CPUs that the target may run on.
        quota_cpus: what the CPU quota allows.
    """
    seconds = (samples[-1].t_ns - samples[0].t_ns) / 1e9 if samples else 0.0
    if seconds < LEAST_S:
        return None
    found: dict[str, Any] = {
        "cpus": cpus,
        **_of_cpus(samples[0], samples[-1], seconds, cpus),
        "queued_share": _queued_share(samples[0], samples[-1]),
        "worker_threads": max(_of_workers(samples[-1], lambda one: one.threads), default=None),
        "worker_allowed_cpus": _allowed_cpus(samples[-1]),
        "throttled_share": _rate(samples[0].cgroup_throttled_s, samples[-1].cgroup_throttled_s, seconds),
        "cpu_slowed_share": _rate(samples[0].cpu_heat_s, samples[-1].cpu_heat_s, seconds),
        "cpu_clock_mhz": _mean(one.cpu_clock_mhz for one in samples),
        **_of_gpu(samples),
    }
    return BlockLoad(
        launch=samples[-1].launch,
        t_ns=t_ns,
        block=block,
        trial=trial,
        seconds=seconds,
        quota_cpus=quota_cpus,
        missing={name: NOT_TOLD for name, value in found.items() if value is None and name not in OF_WORKERS},
        **found,
    )


def _of_cpus(first: Sample, last: Sample, seconds: float, cpus: int | None) -> dict[str, float | None]:
    """What is not the target's and not pindiag's is foreign, the kernel's own work included."""
    busy = _rate(first.usable_cpu_s, last.usable_cpu_s, seconds)
    target = _rate(_tree_cpu_s(first), _tree_cpu_s(last), seconds)
    own = _rate(first.own_cpu_s, last.own_cpu_s, seconds)
    foreign = None if busy is None or target is None or own is None else busy - target - own
    believable = foreign is not None and cpus is not None and foreign >= -UNBELIEVABLE_SHARE * cpus
    return {
        "target_cpus": target,
        "foreign_cpus": max(foreign, 0.0) if believable and foreign is not None else None,
        "stolen_cpus": _rate(first.steal_s, last.steal_s, seconds),
    }


def _tree_cpu_s(sample: Sample) -> float | None:
    """Of all processes that are alive, and of those that they have waited for: it never falls when one ends."""
    known = [process.cpu_s for process in sample.processes if process.cpu_s is not None]
    return sum(known) + sum(process.reaped_cpu_s or 0.0 for process in sample.processes) if known else None


def _queued_share(first: Sample, last: Sample) -> float | None:
    delay_s, cpu_s = (_grown(first, last, read) for read in (lambda one: one.run_delay_s, lambda one: one.cpu_s))
    if delay_s is None or cpu_s is None or delay_s + cpu_s <= 0:
        return None
    return max(delay_s, 0.0) / (delay_s + cpu_s)


Told = TypeVar("Told")


def _of_workers(sample: Sample, reading: Callable[[Process], Told | None]) -> list[Told]:
    told = (reading(process) for process in sample.processes if process.role == "worker")
    return [value for value in told if value is not None]


def _allowed_cpus(sample: Sample) -> int | None:
    """CPUs on which some worker may run."""
    masks = [int(mask, 16) for mask in _of_workers(sample, lambda one: one.allowed_cpus)]
    return reduce(operator.or_, masks).bit_count() if masks else None


def _grown(first: Sample, last: Sample, reading: Callable[[Process], float | None]) -> float | None:
    """Growth of a counter, summed over the processes that lived through."""
    before = {process.pid: reading(process) for process in first.processes}
    after = [(before.get(process.pid), reading(process)) for process in last.processes]
    grown = [last_s - first_s for first_s, last_s in after if first_s is not None and last_s is not None]
    return sum(grown) if grown else None


def _of_gpu(samples: Sequence[Sample]) -> dict[str, float | None]:
    reasons = [one.gpu_throttle_reasons for one in samples if one.gpu_throttle_reasons is not None]
    return {
        "gpu_slowed_share": _mean(bool(bits & HELD_BACK) for bits in reasons),
        "gpu_sm_clock_mhz": _mean(one.gpu_sm_clock_mhz for one in samples),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rate(first: float | None, last: float | None, seconds: float) -> float | None:
    return None if first is None or last is None else (last - first) / seconds
