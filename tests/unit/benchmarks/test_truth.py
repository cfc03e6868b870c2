"""The arithmetic of truth.py, over reports that no launch made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import truth

FACTS = {
    "batch_bytes": 100_000,
    "wait_ms": 31.0,
    "script_ms": 50.5,
    "step_ms": 60.0,
    "worker_fetch_ms": 20.2,
    "worker_fetch_sample_ms": 5.05,
    "worker_collate_ms": 10.1,
    "worker_hand_off_ms": 16.4,
    "worker_idle_ms": 29.7,
    "worker_sent_bytes": 8_390.0,
    "worker_fetch_cpu_share": 0.99,
    "worker_cpu_share": 0.75,
    "worker_cpus": 0.76,
    "worker_run_delay_share": 0.25,
    "worker_rss_bytes": 250_000_000,
}


def reading(planted: truth.Planted, **changes: float | None) -> truth.Reading:
    facts = [
        SimpleNamespace(name=name, value=value, reason="not told" if value is None else None)
        for name, value in {**FACTS, **changes}.items()
    ]
    return truth.Reading(planted, SimpleNamespace(facts=facts, target=SimpleNamespace(error=None, exit="stopped")))


@pytest.fixture
def rows() -> dict[str, dict[str, object]]:
    read = [reading(planted) for planted in truth.FULL]
    held = next(each for each in read if each.planted.hold_bytes)
    read[read.index(held)] = reading(held.planted, worker_rss_bytes=551_000_000)
    return {str(made["name"]): made for made in map(truth.row, truth.cases(read))}


def test_what_was_planted_beside_what_was_read(rows) -> None:
    assert rows["hand-off, fork 1"] == {
        "name": "hand-off, fork 1", "planted": 16.0, "read": 16.4, "error": 0.4, "unit": "ms",
    }  # fmt: skip
    assert (rows["wait, no workers"]["planted"], rows["wait, no workers"]["error"]) == (30.0, 1.0)
    assert (rows["fetch of a sample, spawn 3"]["planted"], rows["through the pipe, fork 3"]["error"]) == (5.0, 0.39)


def test_a_worker_of_three_waits_for_every_third_step(rows) -> None:
    assert rows["idle, fork 1"]["planted"] == 90 - 30
    assert rows["idle, forkserver 3"]["planted"] == 3 * 40 - 30


def test_a_core_that_others_took_in_part(rows) -> None:
    busy = rows["core kept busy, psutil, fork 1 busy"]
    assert (busy["planted"], busy["read"], busy["error"]) == (75.0, 75.0, 0.0)


def test_memory_is_what_another_worker_does_not_have(rows) -> None:
    assert rows["memory held, psutil, fork 1 busy"]["error"] == 1.0


def test_quick_has_each_start_method_and_each_number_of_workers() -> None:
    assert {made.start_method for made in truth.QUICK} == {None, "fork", "spawn", "forkserver"}
    assert {made.workers for made in truth.QUICK} == {0, 1, 3}
    assert len(list(truth.cases([reading(planted) for planted in truth.QUICK]))) >= 8
    assert len({made.name for made in truth.FULL}) == len(truth.FULL) == 8


def test_what_is_not_measured_is_said() -> None:
    with pytest.raises(SystemExit, match=r"fork 1: worker_idle_ms was not measured: not told\nstopped"):
        reading(truth.FORKED, worker_idle_ms=None)("worker_idle_ms")


def test_the_target_is_told_all_that_was_planted() -> None:
    words = truth.Planted(workers=3, start_method="spawn", tick_ms=40).arguments
    assert dict(zip(words[::2], words[1::2]))["--hand-off-ms"] == "16.0"
    assert "--start-method" not in truth.Planted().arguments
