from __future__ import annotations

import random

import pytest

from pindiag.probe import blocks
from pindiag.probe.blocks import Block, Reading
from pindiag.probe.starvation import Pairs, Starvation
from pindiag.probe.tally import Tally
from pindiag.probe.transfers import Transfers

MS = 1_000_000


class Loop:
    """A training loop on a clock of its own."""

    def __init__(self, monkeypatch, queue=0, **order):
        self.now = 0
        self.cpu = 0
        self.synchronised = []
        self.phases = []
        monkeypatch.setattr(blocks, "_now", lambda: self.now)
        monkeypatch.setattr(blocks.device, "synchronise", self.synchronise)
        monkeypatch.setattr(blocks, "read", lambda: Reading((0, 0, 0, 0, False), self.cpu, None))
        self.transfers = Transfers(None)
        order = {"block": 1, "round": 1, "trial": "t", "seconds": 1.0, **order}
        self.block = Block(
            order,
            queue,
            self.transfers,
            self.phases.append,
            Starvation(Pairs(), self.transfers),
            chance=random.Random(0),
        )

    def synchronise(self):
        self.synchronised.append(self.now)
        self.now += 1 * MS

    def step(self, wait_ms=3, rest_ms=7, samples=8, optimizer_ms=2):
        """Ask for a batch, get it, train on it; True when the block was complete instead."""
        if self.block.enter(self.now):
            return True
        step = self.block.step
        self.now += wait_ms * MS
        step.wait_ns, step.samples = wait_ms * MS, samples
        self.now += rest_ms * MS
        self.cpu += rest_ms * MS
        step.optimizer_ns, step.optimized = optimizer_ms * MS, self.now
        return False

    def until_complete(self, limit=2000, **step):
        return next(count for count in range(limit) if self.step(**step))

    def record(self):
        return self.block.record("counted", None, [])


def test_counted_steps_lie_between_two_synchronisations(monkeypatch):
    loop = Loop(monkeypatch, steps=10)
    loop.until_complete()
    record = loop.record()
    assert (record["steps"], record["samples"]) == (10, 80)
    assert (record["wait_ms"], record["optimizer_ms"], record["main_cpu_ms"]) == (30, 20, 70)
    assert record["step_ms"] == [10] * 10
    assert len(loop.synchronised) == 2
    assert record["seconds"] == pytest.approx(0.101), "the closing synchronisation is counted, the opening one not"
    assert (record["ended_ns"] - record["started_ns"]) / 1e9 == record["seconds"]
    assert loop.phases == ["settling", "counting"]


@pytest.mark.parametrize(("queue", "seconds", "settled"), [(0, 0.01, 3), (8, 0.01, 11), (0, 1.0, 20)])
def test_settling_turns_the_queue_over_and_lasts_a_share_of_the_block(monkeypatch, queue, seconds, settled):
    loop = Loop(monkeypatch, queue=queue, seconds=seconds)
    loop.until_complete()
    assert loop.record()["settle_steps"] == settled


def test_the_length_is_foretold_from_the_later_settle_steps(monkeypatch):
    loop = Loop(monkeypatch, seconds=0.4, settle_steps=8)
    for _ in range(4):
        loop.step(rest_ms=997)
    loop.until_complete()
    assert loop.record()["steps"] == 40


def test_the_length_covers_two_queues(monkeypatch):
    loop = Loop(monkeypatch, queue=16, seconds=0.1)
    loop.until_complete()
    assert loop.record()["steps"] == 32
    assert loop.block.covers_two_queues


def test_time_between_epochs_is_left_out_and_the_loop_settles_anew(monkeypatch):
    loop = Loop(monkeypatch, steps=20, seconds=0.01)
    for _ in range(13):
        loop.step()
    loop.block.gap(loop.now, over=True)
    loop.now += 5000 * MS
    loop.until_complete()
    record = loop.record()
    assert record["steps"] == 20
    assert record["seconds"] == pytest.approx(0.202)
    assert record["gap_s"] == pytest.approx(5.0 + 3 * 0.01 + 0.001)
    assert record["settle_steps"] == 6
    assert record["seconds"] + record["gap_s"] == pytest.approx((record["ended_ns"] - record["started_ns"]) / 1e9)


def test_waiting_for_the_end_of_an_epoch_is_no_part_of_a_step(monkeypatch):
    loop = Loop(monkeypatch, steps=100, seconds=0.01)
    for _ in range(10):
        loop.step()
    loop.block.enter(loop.now)
    loop.now += 80 * MS
    loop.block.gap(loop.now, over=True)
    record = loop.record()
    assert (record["steps"], record["seconds"]) == (7, pytest.approx(0.071))


def test_a_loop_that_left_by_break_ends_with_its_last_optimizer_step(monkeypatch):
    loop = Loop(monkeypatch, steps=100, seconds=0.01)
    for _ in range(10):
        loop.step()
    loop.now += 900 * MS
    loop.block.gap(loop.now, over=False)
    record = loop.record()
    assert record["steps"] == 7
    assert record["seconds"] == pytest.approx(0.07)
    assert len(loop.synchronised) == 1


def test_a_batch_that_was_not_trained_on_is_not_counted(monkeypatch):
    loop = Loop(monkeypatch, steps=100, seconds=0.01)
    for _ in range(10):
        loop.step()
    loop.block.enter(loop.now)
    loop.block.step.wait_ns, loop.block.step.samples = 500 * MS, 8
    loop.now += 500 * MS
    loop.block.gap(loop.now, over=False)
    assert (loop.record()["steps"], loop.record()["wait_ms"]) == (7, 21)


def test_settling_anew_is_no_longer_than_half_an_epoch(monkeypatch):
    loop = Loop(monkeypatch, queue=30, steps=12, seconds=0.01, settle_steps=2)
    for _ in range(20):
        for _ in range(6):
            if loop.step():
                break
        loop.block.gap(loop.now, over=True)
    assert loop.block.complete


def test_hooks_write_into_the_block_only_while_it_counts(monkeypatch):
    loop = Loop(monkeypatch, steps=5, seconds=0.01)
    own = loop.block._tally
    seen = []
    while not loop.step():
        seen.append(loop.transfers.tally is own)
    assert seen == [False] * 3 + [True] * 5
    assert isinstance(loop.transfers.tally, Tally)
    assert loop.transfers.tally is not own


def test_step_arrays_are_capped(monkeypatch):
    loop = Loop(monkeypatch, steps=2500)
    loop.until_complete(limit=3000)
    record = loop.record()
    assert (record["steps"], len(record["step_ms"]), len(record["step_wait_ms"])) == (2500, 2000, 2000)


def test_an_unfinished_block_says_what_it_has(monkeypatch):
    loop = Loop(monkeypatch, steps=50)
    loop.step()
    loop.block.gap(loop.now, over=False)
    record = loop.block.record("short", "why", ["a note"])
    assert (record["steps"], record["seconds"], record["step_ms"], record["notes"]) == (0, 0.0, [], ["a note"])
    assert not loop.block.complete


def test_what_ran_beside_is_the_difference_of_the_readings(monkeypatch):
    stats = blocks.device.HostStats
    readings = iter(
        [
            Reading((10, 100, 1000, 5, False), 0, stats(3, 50.0, 1, 2)),
            Reading((30, 2 * MS, 4 * MS, 5, False), 0, stats(5, 2050.0, 7, 8)),
        ]
    )
    loop = Loop(monkeypatch, steps=20)
    monkeypatch.setattr(blocks, "read", lambda: next(readings))
    loop.until_complete()
    record = loop.record()
    assert record["pin_thread"] == {
        "batches": 20, "receive_ms": 1.9999, "pin_ms": 3.999, "idle_ms": 0, "in_main_thread": False,
    }  # fmt: skip
    assert record["host_allocator"] == {"allocations": 2, "alloc_ms": 2.0, "active_bytes": 7, "reserved_bytes": 8}
    assert record["missing"].keys() == {"starvation"}


def test_parts_of_a_step_are_reckoned_from_those_that_were_looked_at(monkeypatch):
    loop = Loop(monkeypatch, steps=256)
    while not loop.step():
        for _ in range(loop.block.grant()):
            loop.now += 10 * MS
            loop.cpu += 7 * MS
            loop.block.next_step(loop.now, 3 * MS, 8).optimized = loop.now + 7 * MS
    record = loop.record()
    assert (record["steps"], record["samples"], len(record["step_ms"])) == (256, 2048, 256)
    assert 16 <= record["looked_at_steps"] < 64
    assert (record["wait_ms"], record["optimizer_ms"]) == (256 * 3, 256 * 2)


def test_a_loader_that_moves_tensors_itself_is_looked_at_in_each_step(monkeypatch):
    loop = Loop(monkeypatch, steps=256)
    while not loop.block.grant():
        loop.step()
    loop.block.sampling.look_at_all()
    loop.until_complete()
    assert loop.record()["steps"] - loop.record()["looked_at_steps"] <= 14
