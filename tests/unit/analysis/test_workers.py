from types import SimpleNamespace

import pytest

from pindiag.analysis.workers import FIRST_FORMAT, worker_figures
from pindiag.model import WorkerBatch

MS = 1_000_000


def batch(started_ms, fetch_ms, collate_ms, *, pid=1, cpu_ms=0, **told):
    return WorkerBatch(
        launch=1,
        pid=pid,
        worker=pid - 1,
        started_ns=started_ms * MS,
        fetch_ns=fetch_ms * MS,
        collate_ns=collate_ms * MS,
        cpu_ns=cpu_ms * MS,
        samples=8,
        **{name: value * MS if name.endswith("_ns") else value for name, value in told.items()},
    )


BLOCK = SimpleNamespace(launch=1, started_ns=0, ended_ns=100 * MS)


def test_means_by_hand():
    batches = [
        batch(-50, 900, 900),
        batch(0, 20, 10, cpu_ms=15),
        batch(40, 20, 10, cpu_ms=15),
        batch(5, 30, 10, pid=2, cpu_ms=40),
        batch(100, 900, 900),
    ]
    found = worker_figures([BLOCK], {1: batches, 2: [batch(0, 900, 900)]})
    assert found.batches == 3
    assert found.mean_ms.fetch == pytest.approx(70 / 3)
    assert found.fetch_sample_ms == pytest.approx(70 / 24)
    assert found.mean_ms.collate == pytest.approx(10)
    assert found.cpu_share == pytest.approx(70 / 100)
    assert found.busy_share == pytest.approx(100 / 200)


def test_rings_of_the_first_format_tell_no_more():
    found = worker_figures([BLOCK], {1: [batch(0, 20, 10), batch(40, 20, 10)]})
    assert found.untold == FIRST_FORMAT
    assert (found.mean_ms.hand_off, found.mean_ms.idle) == (None, None)
    assert (found.cpus, found.run_delay_share, found.minor_faults, found.sent_bytes) == (None,) * 4


def test_hand_off_idle_and_what_the_kernel_counts():
    handed = {"hand_off_ns": 4, "hand_off_cpu_ns": 3, "blocked_ns": 7, "sent_bytes": 500}
    used = {"process_cpu_ns": 40, "minor_faults": 6, "major_faults": 2, "run_delay_ns": 5}
    batches = [
        batch(10, 20, 10, cpu_ms=15, idle_ns=30, **used, **handed),
        batch(50, 20, 10, cpu_ms=15, idle_ns=8, **used),
        batch(90, 20, 10, cpu_ms=15, idle_ns=9, **used, **handed | {"hand_off_ns": 6}),
    ]
    found = worker_figures([BLOCK], {1: batches})
    assert found.untold is None
    assert found.mean_ms.hand_off == pytest.approx(5)  # of the two that left their worker
    assert found.mean_ms.idle == pytest.approx((30 + 8 + 9) / 3)
    assert (found.hand_off_cpu_ms, found.blocked_ms, found.sent_bytes) == (3, 7, 500)
    assert found.cpus == pytest.approx(120 / 100)
    assert found.other_threads_cpus == pytest.approx((120 - 45 - 6) / 100)
    assert found.run_delay_share == pytest.approx(15 / (15 + 45))
    assert (found.minor_faults, found.major_faults) == (6, 2)


def test_what_this_platform_does_not_tell_is_none():
    found = worker_figures([BLOCK], {1: [batch(0, 20, 10, cpu_ms=15, idle_ns=0, process_cpu_ns=20)]})
    assert (found.untold, found.run_delay_share, found.minor_faults) == (None, None, None)
    assert found.cpus == pytest.approx(0.2)


def test_no_batch_no_figures():
    assert worker_figures([BLOCK], {}) is None
