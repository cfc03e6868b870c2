import pytest

from pindiag.analysis.samplers import Window, sampler_cost, sampler_figures
from pindiag.model import Block, Process, Sample

SECOND = 1_000_000_000


def process(pid, role, **counters):
    unknown = dict.fromkeys(
        ("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults", "run_delay_s", "read_bytes")
    )
    return Process(**({"pid": pid, "role": role, "cpu_s": 0.0, "rss_bytes": 100, "threads": 1} | unknown | counters))


def sample(seconds, *processes, **levels):
    names = (name for name in Sample.__struct_fields__ if name not in ("launch", "t_ns", "rank", "processes"))
    known = dict.fromkeys(names) | {"sampler_cpu_s": 0.0} | levels
    return Sample(launch=1, t_ns=round(seconds * SECOND), processes=list(processes), **known)


def block(started, ended):
    return Block(
        launch=1,
        t_ns=0,
        block=1,
        trial="a",
        round=1,
        settle_steps=1,
        steps=10,
        samples=10,
        started_ns=round(started * SECOND),
        ended_ns=round(ended * SECOND),
        seconds=ended - started,
        gap_s=0.0,
        status="counted",
        reason=None,
        wait_ms=0.0,
        wait_cpu_ms=0.0,
        transfer_ms=0.0,
        synchronise_ms=0.0,
        optimizer_ms=0.0,
        main_cpu_ms=0.0,
        step_ms=[],
        step_wait_ms=[],
        transfers=[],
        syncs=[],
        pin_thread=None,
        host_allocator=None,
        missing={},
        probe_us_per_step=1.0,
    )


def test_the_first_sample_after_the_end_is_the_last():
    def with_workers(second, *workers):
        return sample(second, *(process(pid, "worker", cpu_s=second) for pid in workers))

    samples = [with_workers(10.01, 1, 2), with_workers(12.01, 1, 2), with_workers(12.03, 2), with_workers(12.04, 3)]
    assert Window(samples, block(10, 12)).used(lambda found: found.cpu_s, "worker") == pytest.approx([2, 2])


def test_only_the_counted_part_counts():
    samples = [sample(second, process(1, "main", cpu_s=cpu)) for second, cpu in ((0, 0), (10, 9), (12, 10), (20, 99))]
    figures = sampler_figures([Window(samples, block(10, 12))])
    assert figures.samples == 2
    assert figures.main_cpu_percent == pytest.approx(50)


def test_the_samples_at_both_ends_may_come_a_little_late():
    samples = [sample(10.03, process(1, "main", cpu_s=0)), sample(12.04, process(1, "main", cpu_s=2.01))]
    assert sampler_figures([Window(samples, block(10, 12))]).cpu_percent == pytest.approx(100)


def test_processes_that_came_or_went_are_left_out():
    samples = [
        sample(10, process(1, "main", cpu_s=1), process(2, "worker", cpu_s=5), process(3, "worker", cpu_s=7)),
        sample(12, process(1, "main", cpu_s=2), process(3, "worker", cpu_s=9), process(4, "worker", cpu_s=50)),
    ]
    figures = sampler_figures([Window(samples, block(10, 12))])
    assert figures.worker_cpu_percent == pytest.approx(100)
    assert figures.cpu_percent == pytest.approx(150)


def test_what_the_platform_lacks_is_none_not_zero():
    samples = [sample(second, process(1, "main", cpu_s=second)) for second in (10, 12)]
    figures = sampler_figures([Window(samples, block(10, 12))])
    assert figures.run_delay_share is None
    assert figures.major_faults_per_s is None
    assert figures.psi_cpu_share is None
    assert figures.worker_rss_bytes is None
    assert figures.memory_available_bytes is None


def test_levels_and_extremes():
    samples = [
        sample(10, process(1, "main"), process(2, "worker", rss_bytes=70), memory_available_bytes=50, psi_io_s=1.0),
        sample(11, process(1, "main"), process(2, "worker", rss_bytes=90), memory_available_bytes=40, psi_io_s=1.5),
        sample(12, process(1, "main"), process(2, "worker", rss_bytes=80), memory_available_bytes=60, psi_io_s=2.0),
    ]
    figures = sampler_figures([Window(samples, block(10, 12))])
    assert (figures.rss_bytes, figures.worker_rss_bytes, figures.memory_available_bytes) == (190, 90, 40)
    assert figures.psi_io_share == pytest.approx(0.5)


def test_one_sample_is_not_enough():
    assert sampler_figures([Window([sample(11, process(1, "main"))], block(10, 12))]) is None


def test_the_samplers_own_cost():
    samples = [sample(0, sampler_cpu_s=0.0), sample(10, sampler_cpu_s=0.05)]
    assert sampler_cost(samples) == pytest.approx(0.005)
    assert sampler_cost(samples[:1]) is None


def test_cpus_on_which_some_worker_may_run():
    def bound(seconds, *masks):
        workers = [process(pid, "worker", allowed_cpus=mask) for pid, mask in enumerate(masks, start=2)]
        return sample(seconds, process(1, "main", allowed_cpus="f"), *workers)

    found = sampler_figures([Window([bound(1, "1", "1"), bound(2, "1", "3")], block(1, 2))])
    assert (found.worker_allowed_cpus, found.main_allowed_cpus) == (1, 4)
    older = sampler_figures([Window([bound(1, None), bound(2, None)], block(1, 2))])
    assert older.worker_allowed_cpus is None
