from types import SimpleNamespace

import pytest

from pindiag.analysis.workers import worker_figures
from pindiag.model import WorkerBatch

MS = 1_000_000


def batch(started_ms, fetch_ms, collate_ms, *, pid=1, cpu_ms=0):
    return WorkerBatch(
        launch=1,
        pid=pid,
        worker=pid - 1,
        started_ns=started_ms * MS,
        fetch_ns=fetch_ms * MS,
        collate_ns=collate_ms * MS,
        cpu_ns=cpu_ms * MS,
        samples=8,
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
    assert found.mean_ms.collate == pytest.approx(10)
    assert found.mean_ms.idle == pytest.approx(10)
    assert found.mean_ms.hand_off is None
    assert found.cpu_share == pytest.approx(70 / 100)
    assert found.busy_share == pytest.approx(100 / 200)


def test_one_batch_a_worker_has_no_gap():
    assert worker_figures([BLOCK], {1: [batch(0, 20, 10)]}).mean_ms.idle is None


def test_no_batch_no_figures():
    assert worker_figures([BLOCK], {}) is None
