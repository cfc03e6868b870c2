"""Rings that benchmarks/truth.py recorded, with what its target planted: they are read as they were meant.

Recorded by `python benchmarks/truth.py --rings tests/data/rings`.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pindiag.analysis.workers import FIRST_FORMAT, worker_figures
from pindiag.store import RunDirectory

DATA = Path(__file__).parents[1] / "data" / "rings"
RECORDED = sorted(place.parent.name for place in DATA.glob("*/planted.json"))


def close(planted: float) -> object:
    return pytest.approx(planted, rel=0.1, abs=0.3)


def figures(name: str):
    told = json.loads((DATA / name / "planted.json").read_text())
    run = RunDirectory(DATA / name)
    run.rings = DATA / name
    started_ns, ended_ns = told["counted_ns"]
    batches = run.worker_batches()
    block = SimpleNamespace(launch=1, started_ns=started_ns, ended_ns=ended_ns)
    return told["planted"], batches, worker_figures([block], {1: sorted(batches, key=lambda each: each.started_ns)})


def test_each_start_method_is_recorded_with_one_worker_and_three() -> None:
    assert {f"{method}-{count}" for method in ("fork", "spawn", "forkserver") for count in (1, 3)} <= set(RECORDED)


@pytest.mark.parametrize("name", [name for name in RECORDED if "busy" not in name])
def test_stages_are_those_that_were_planted(name: str) -> None:
    planted, batches, found = figures(name)
    assert len({batch.pid for batch in batches}) == planted["workers"]
    assert found.mean_ms.fetch == close(planted["fetch_ms"])
    assert found.mean_ms.collate == close(planted["collate_ms"])
    assert found.mean_ms.hand_off == close(planted["hand_off_ms"])
    assert found.mean_ms.idle == close(planted["idle_ms"])
    assert found.sent_bytes == close(planted["parcel_bytes"])
    assert found.blocked_ms < 1
    assert found.cpus < 0.1


def test_a_core_that_is_kept_busy() -> None:
    planted, _, found = figures("fork-1-busy")
    assert found.cpu_share * found.mean_ms.fetch == close(planted["spin_ms"])
    assert found.cpus == close(1.0)
    assert found.other_threads_cpus < 0.1
    assert found.mean_ms.idle < 1


def test_rings_of_the_first_format_are_read_too(first_format_ring: Path) -> None:
    run = RunDirectory(first_format_ring)
    batches = run.worker_batches()
    assert len(batches) == 100
    assert {batch.worker for batch in batches} == {1}
    assert all(batch.fetch_ns > 0 and batch.samples == 4 for batch in batches)
    assert {(batch.idle_ns, batch.hand_off_ns, batch.minor_faults) for batch in batches} == {(None, None, None)}
    block = SimpleNamespace(launch=2, started_ns=0, ended_ns=1 << 62)
    assert worker_figures([block], {2: batches}).untold == FIRST_FORMAT


@pytest.fixture
def first_format_ring(tmp_path: Path) -> Path:
    """As a worker of the first format left it: 100 batches, room for more."""
    import struct

    (tmp_path / "rings").mkdir()
    header = struct.pack("<8sqqqq", b"PDRING01", 2, 4711, 1, 100)
    entries = b"".join(struct.pack("<5q", 1_000 * number, 300 + number, 20, 100, 4) for number in range(100))
    (tmp_path / "rings" / "002-4711.ring").write_bytes((header + entries).ljust(10_000, b"\0"))
    return tmp_path
