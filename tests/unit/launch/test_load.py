from typing import Any

import pytest

from pindiag.launch.load import block_load
from pindiag.model import Process, Sample

EMPTY = dict.fromkeys(Sample.__struct_fields__)


def process(pid: int, **fields: Any) -> Process:
    return Process(**{**dict.fromkeys(Process.__struct_fields__), "pid": pid, "role": "worker", **fields})


def sample(t_s: float, *processes: Process, **fields: Any) -> Sample:
    return Sample(
        **{**EMPTY, "launch": 2, "rank": 0, "t_ns": int(t_s * 1e9), "processes": list(processes), "sampler_cpu_s": 0.0}
        | fields
    )


def load(*samples: Sample, cpus: int | None = 4, quota_cpus: float | None = None) -> Any:
    return block_load(samples, 7, "nw2", t_ns=99, cpus=cpus, quota_cpus=quota_cpus)


def test_what_is_neither_the_targets_nor_pindiags_is_foreign() -> None:
    first = sample(
        10,
        process(1, cpu_s=5.0),
        usable_cpu_s=100.0,
        own_cpu_s=1.0,
        steal_s=3.0,
        cpu_heat_s=0.5,
        cgroup_throttled_s=2.0,
    )
    last = sample(
        12,
        process(1, cpu_s=6.0),
        usable_cpu_s=105.0,
        own_cpu_s=1.2,
        steal_s=3.5,
        cpu_heat_s=0.9,
        cgroup_throttled_s=2.4,
    )
    found = load(first, sample(11), last, quota_cpus=3.0)
    assert (found.launch, found.t_ns, found.block, found.trial, found.seconds) == (2, 99, 7, "nw2", 2.0)
    assert (found.cpus, found.quota_cpus) == (4, 3.0)
    assert found.target_cpus == pytest.approx(0.5)
    assert found.foreign_cpus == pytest.approx((5.0 - 1.0 - 0.2) / 2)
    assert found.cpu_slowed_share == pytest.approx(0.2)
    assert (found.stolen_cpus, found.throttled_share) == (pytest.approx(0.25), pytest.approx(0.2))


def test_processes_that_were_born_or_ended_meanwhile_are_the_targets() -> None:
    before = [process(1, cpu_s=5.0, reaped_cpu_s=1.0), process(2, cpu_s=3.0)]
    after = [process(1, cpu_s=5.0, reaped_cpu_s=4.5), process(3, cpu_s=0.5)]
    found = load(
        sample(0, *before, usable_cpu_s=0.0, own_cpu_s=0.0), sample(1, *after, usable_cpu_s=1.0, own_cpu_s=0.0)
    )
    assert (found.target_cpus, found.foreign_cpus) == (1.0, 0.0)


def test_queueing_is_that_of_processes_which_lived_through() -> None:
    before = [process(1, cpu_s=5.0, run_delay_s=1.0), process(2, cpu_s=9.0, run_delay_s=9.0)]
    after = [process(1, cpu_s=5.6, run_delay_s=1.4), process(3, cpu_s=9.0, run_delay_s=9.0)]
    assert load(sample(0, *before), sample(1, *after)).queued_share == pytest.approx(0.4)
    assert load(sample(0, process(1, cpu_s=1.0)), sample(1, process(1, cpu_s=2.0))).queued_share is None


def test_a_kernel_that_counts_something_else_is_not_believed() -> None:
    before, after = process(1, cpu_s=0.0), process(1, cpu_s=3.0)
    found = load(sample(0, before, usable_cpu_s=1.0, own_cpu_s=0.0), sample(1, after, usable_cpu_s=1.0, own_cpu_s=0.0))
    assert (found.target_cpus, found.foreign_cpus) == (3.0, None)
    slightly = load(
        sample(0, before, usable_cpu_s=1.0, own_cpu_s=0.0), sample(1, after, usable_cpu_s=3.9, own_cpu_s=0.0)
    )
    assert slightly.foreign_cpus == 0.0


def test_the_gpu_is_held_back_from_outside_but_not_by_its_power_cap() -> None:
    bits = [0x4, 0x20, 0x0, 0x4 | 0x40]
    samples = [sample(n, gpu_throttle_reasons=bit, gpu_sm_clock_mhz=1000 + n) for n, bit in enumerate(bits)]
    found = load(*samples)
    assert (found.gpu_slowed_share, found.gpu_sm_clock_mhz) == (0.5, 1001.5)


def test_the_cpus_clock_is_the_mean_of_what_was_told() -> None:
    samples = [sample(0, cpu_clock_mhz=3000.0), sample(1), sample(2, cpu_clock_mhz=2000.0)]
    assert load(*samples).cpu_clock_mhz == 2500.0


def test_what_the_platform_does_not_tell_is_none_with_a_reason() -> None:
    found = load(sample(0), sample(1), cpus=None)
    assert found.missing.keys() == {
        "cpus", "target_cpus", "foreign_cpus", "stolen_cpus", "queued_share", "throttled_share", "gpu_slowed_share",
        "gpu_sm_clock_mhz", "cpu_slowed_share", "cpu_clock_mhz",
    }  # fmt: skip
    assert all(getattr(found, name) is None for name in found.missing)


def test_too_little_time_says_nothing() -> None:
    assert load() is None
    assert load(sample(0)) is None
    assert load(sample(0), sample(0.4)) is None


def test_of_workers_the_most_threads_and_the_cpus_of_all_together() -> None:
    workers = process(2, threads=9, allowed_cpus="3"), process(3, threads=2, allowed_cpus="6")
    main = process(1, role="main", threads=40, allowed_cpus="ff")
    found = load(sample(0, main), sample(1, main, *workers))
    assert (found.worker_threads, found.worker_allowed_cpus) == (9, 3)
    alone = load(sample(0, main), sample(1, main))
    assert (alone.worker_threads, alone.worker_allowed_cpus) == (None, None)
    assert not alone.missing.keys() & {"worker_threads", "worker_allowed_cpus"}
