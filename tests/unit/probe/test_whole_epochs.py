"""A block of whole epochs, on a clock of its own."""

from __future__ import annotations

import random

import pytest

from pindiag.probe import blocks, whole_epochs
from pindiag.probe.blocks import Reading
from pindiag.probe.starvation import Pairs, Starvation
from pindiag.probe.transfers import Transfers
from pindiag.probe.whole_epochs import NOT_SAMPLED, WholeEpochs

MS = 1_000_000
STEP_MS = 10
BIRTH_MS, ARRIVED_MS, FIRST_STEP_MS = 1000, 1200, 5000


class Born:
    began_ns = BIRTH_MS * MS
    arrived_ns = ARRIVED_MS * MS


class Loop:
    """A script whose workers take 200 ms to start, and whose first step takes 5 s."""

    def __init__(self, monkeypatch, queue=0, epochs=2, batches=20):
        self.now = (ARRIVED_MS + FIRST_STEP_MS // 2) * MS
        self.synchronised = []
        for module in (blocks, whole_epochs):
            monkeypatch.setattr(module, "_now", lambda: self.now)
        monkeypatch.setattr(blocks.device, "synchronise", lambda: self.synchronised.append(self.now))
        monkeypatch.setattr(blocks, "read", lambda: Reading((0, 0, 0, 0, False), 0, None))
        self.phases = []
        order = {"block": 1, "round": 1, "trial": "t", "seconds": 1.0, "epochs": epochs, "steps": epochs * batches}
        transfers = Transfers(None)
        starvation = Starvation(Pairs(), transfers, NOT_SAMPLED)
        self.block = WholeEpochs(order, queue, transfers, self.phases.append, starvation, chance=random.Random(0))
        self.block.born(Born())
        self.now = (ARRIVED_MS + FIRST_STEP_MS) * MS

    def steps(self, count):
        for _ in range(count):
            assert not self.block.enter(self.now)
            self.block.step.samples = 8
            self.now += STEP_MS * MS
            self.block.step.optimized = self.now

    def exhaust(self, shut_down_ms=0):
        """Torch's iterator has no more, and says so once its workers are gone."""
        assert not self.block.enter(self.now)
        self.block.gap(self.now, over=True)
        self.now += shut_down_ms * MS
        self.block.end_epoch(over=True)

    def away(self, ms):
        self.now += ms * MS

    def record(self):
        return self.block.record("counted", None, [])


def test_everything_counts_but_the_first_step(monkeypatch):
    loop = Loop(monkeypatch)
    loop.steps(19)
    loop.exhaust(shut_down_ms=70)
    loop.away(400)
    assert not loop.block.complete
    loop.steps(20)
    loop.exhaust(shut_down_ms=30)
    assert loop.block.complete
    loop.away(9000)
    made = loop.record()
    assert (made["steps"], made["samples"], made["settle_steps"]) == (39, 312, 0)
    assert made["seconds"] == pytest.approx(0.2 + 0.39 + 0.07 + 0.4 + 0.03)
    assert made["gap_s"] == pytest.approx(5.0)
    assert made["started_ns"] == Born.began_ns
    assert made["seconds"] + made["gap_s"] == pytest.approx((made["ended_ns"] - made["started_ns"]) / 1e9)
    assert made["epochs"]["epochs"] == 2
    assert made["epochs"]["startup_s"] == pytest.approx(0.2)
    assert made["missing"]["starvation"] == NOT_SAMPLED
    assert len(loop.synchronised) == 2, "none between, where the script has none"


def test_steady_is_what_a_block_of_steps_would_count(monkeypatch):
    loop = Loop(monkeypatch, queue=4)
    for _ in range(2):
        loop.steps(15)
        loop.block.gap(loop.now, over=False)
        loop.away(300)
        loop.steps(5)
        loop.exhaust(shut_down_ms=50)
        loop.away(1000)
    steady = loop.record()["epochs"]
    assert (steady["steady_steps"], steady["steady_samples"]) == (26, 208)
    assert steady["steady_seconds"] == pytest.approx(0.26), "neither the nested validation nor the ends of epochs"


def test_a_loop_that_leaves_by_break_ends_its_epoch_when_it_comes_back(monkeypatch):
    loop = Loop(monkeypatch, batches=30)
    for _ in range(2):
        loop.steps(12)
        loop.away(500)
        loop.block.gap(loop.now, over=False)
        loop.block.end_epoch(over=False)
    made = loop.record()
    assert loop.block.complete
    assert made["steps"] == 24
    assert made["seconds"] == pytest.approx(0.2 + 0.24 + 0.5), "what follows the last epoch is no part of it"


def test_a_script_of_one_epoch_is_counted_to_its_end(monkeypatch):
    loop = Loop(monkeypatch)
    loop.steps(19)
    assert not loop.block.covers_two_queues
    loop.exhaust()
    assert loop.block.covers_two_queues
    assert not loop.block.complete
    loop.away(3000)
    made = loop.record()
    assert (made["steps"], made["seconds"], made["epochs"]["epochs"]) == (19, pytest.approx(0.39), 1)


def test_what_was_begun_after_the_last_whole_epoch_is_left_out(monkeypatch):
    loop = Loop(monkeypatch)
    loop.steps(19)
    loop.exhaust()
    loop.steps(7)
    made = loop.record()
    assert (made["steps"], made["samples"], made["seconds"]) == (19, 152, pytest.approx(0.39))


def test_steps_go_by_quickly_once_the_queue_has_turned_over(monkeypatch):
    loop = Loop(monkeypatch, queue=4, batches=200)
    loop.steps(7)
    assert loop.block.grant() == 0
    loop.steps(1)
    assert max(loop.block.grant() for _ in range(20)) > 0
    loop.block.totals.steps = 399
    assert loop.block.grant() == 0


def test_no_whole_epoch_gives_what_there_is(monkeypatch):
    loop = Loop(monkeypatch)
    loop.steps(5)
    made = loop.block.record("failed", "it failed", [])
    assert (made["steps"], made["status"]) == (4, "failed")
    assert "epochs" not in made
