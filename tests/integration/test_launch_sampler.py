"""What the sampler reads of real processes is what was planted in them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from pindiag.disturbance import FOREIGN_SHARE, QUEUED_SHARE, disturbance
from pindiag.model import BlockLoad, BlockPhase, MemoryRead, Process, Sample
from pindiag.store import RunDirectory

from .launches import session, times

pytestmark = pytest.mark.integration

HELD_BYTES = 300 << 20


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("planted")
    with spinning(2 * (os.cpu_count() or 1)):
        session(folder, "planted").run(times(1))
    return list(RunDirectory.open(folder / "out").records())


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """So many processes that are not the target's want a CPU each; a session of its own gives each a share like its."""
    words = [sys.executable, "-c", "while True: pass"]
    found = [subprocess.Popen(words, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in found:
            process.kill()
            process.wait()


def counted(records: list[object]) -> list[Sample]:
    edges = [r.t_ns for r in records if isinstance(r, BlockPhase) and r.phase != "settling"]
    samples = [r for r in records if isinstance(r, Sample)]
    last = min(r.t_ns for r in samples if r.t_ns >= edges[1])
    return [r for r in samples if edges[0] <= r.t_ns <= last]


def workers(sample: Sample) -> list[Process]:
    return sorted((p for p in sample.processes if p.role == "worker"), key=lambda p: p.rss_bytes)


def test_held_memory(records: list[object]) -> None:
    spinning, holding = workers(counted(records)[-1])
    assert holding.rss_bytes - spinning.rss_bytes == pytest.approx(HELD_BYTES, rel=0.1)
    begun, memory = (record for record in records if isinstance(record, MemoryRead))
    assert (begun.phase, memory.phase) == ("settling", "counted")
    assert memory.reason is None
    assert memory.worker_pss_bytes == pytest.approx(HELD_BYTES, rel=0.1)
    assert memory.pss_bytes is not None and memory.worker_pss_bytes is not None
    assert memory.pss_bytes >= memory.worker_pss_bytes


def test_spinning_core(records: list[object]) -> None:
    """CPU time and run-queue delay together are the wall time, however busy the machine is."""
    first, *_, last = counted(records)
    seconds = (last.t_ns - first.t_ns) / 1e9
    (before, _), (after, holding) = workers(first), workers(last)
    assert before.run_delay_s is not None and after.run_delay_s is not None
    wanted_s = after.cpu_s - before.cpu_s + after.run_delay_s - before.run_delay_s
    assert wanted_s == pytest.approx(seconds, rel=0.1)
    assert holding.cpu_s < 0.1 * after.cpu_s + 1


def test_every_field_of_the_main_process(records: list[object]) -> None:
    main = next(p for p in counted(records)[-1].processes if p.role == "main")
    assert main.pin_thread_cpu_s is None
    for field in Process.__struct_fields__:
        if field not in ("pin_thread_cpu_s", "block_io_delay_s"):
            assert getattr(main, field) is not None, field


def test_machine(records: list[object]) -> None:
    samples = counted(records)
    assert statistics.median(s.memory_available_bytes or 0 for s in samples) == pytest.approx(
        psutil.virtual_memory().available, rel=0.5
    )
    first, *_, last = samples
    assert first.machine_cpu_s is not None and last.machine_cpu_s is not None
    assert last.machine_cpu_s > first.machine_cpu_s
    assert 0 < last.sampler_cpu_s < 5
    assert last.gpu_utilization is None or 0 <= last.gpu_utilization <= 1


def test_processes_that_are_not_the_targets_disturb_its_block(records: list[object]) -> None:
    (load,) = (record for record in records if isinstance(record, BlockLoad))
    if load.foreign_cpus is None or load.cpus is None:
        pytest.skip(load.missing.get("foreign_cpus", "the CPUs are not told"))
    assert load.foreign_cpus >= FOREIGN_SHARE * load.cpus
    assert load.queued_share is None or load.queued_share >= QUEUED_SHARE
    assert load.target_cpus is not None and 0 < load.target_cpus + load.foreign_cpus < 1.2 * load.cpus
    assert disturbance(load) is not None
