"""A pretended device with a clock, streams and events; what was planted in a loop on it has to come out."""

from __future__ import annotations

import itertools
import random
import threading
from types import SimpleNamespace

import pytest
import torch

from pindiag.model import Starvation as Recorded
from pindiag.probe import blocks, starvation
from pindiag.probe.blocks import Block, Reading
from pindiag.probe.starvation import LOADER_USES_DEVICE, OTHER_THREAD, UNUSED, Pairs, Starvation
from pindiag.probe.transfers import Transfers
from tests.unit.probe.pretended import installed

MS = 1_000_000
US = 1_000


class Device:
    """One stream a device; what is given to it runs as soon as what came before is done."""

    def __init__(self, monkeypatch, record_us=2):
        self.now = 0
        self.busy_until = {0: 0, 1: 0}
        self.record_us = record_us
        self.is_capturing = False
        self.in_use = True
        self.recorded = 0
        self.made = 0
        for module in (starvation, blocks):
            monkeypatch.setattr(module, "_now", lambda: self.now)
        monkeypatch.setattr(starvation, "_Event", lambda enable_timing: Event(self, enable_timing))
        monkeypatch.setattr(starvation, "_elapsed_ms", lambda first, last: (last.at - first.at) / MS)
        monkeypatch.setattr(starvation, "_current_stream", lambda index: index)
        monkeypatch.setattr(starvation, "_is_capturing", lambda: self.is_capturing)
        monkeypatch.setattr(starvation.device, "cuda_in_use", lambda: self.in_use)
        monkeypatch.setattr(blocks.device, "synchronise", self.synchronise)
        monkeypatch.setattr(blocks, "read", lambda: Reading((0, 0, 0, 0, False), 0, None))
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    def synchronise(self):
        self.now = max(self.now, *self.busy_until.values())

    def run(self, ns, index=0):
        self.busy_until[index] = max(self.now, self.busy_until[index]) + ns


class Event:
    def __init__(self, device, enable_timing):
        assert enable_timing
        device.made += 1
        self._device, self._stream, self.at = device, None, None

    def record(self, stream):
        assert self._stream in (None, stream), "an event stays with the device on which it was recorded first"
        assert not self._device.is_capturing
        self._stream = stream
        self._device.recorded += 1
        self._device.now += self._device.record_us * US
        self.at = max(self._device.now, self._device.busy_until[stream])

    def query(self):
        return self._device.now >= self.at


class Loop:
    """A training loop on it, as the probe drives it."""

    def __init__(self, device, why_not=None, pairs=None, **order):
        self.device = device
        self.transfers = Transfers(None)
        self.starvation = Starvation(pairs or Pairs(), self.transfers, why_not)
        order = {"block": 1, "round": 1, "trial": "t", "seconds": 0.5, **order}
        self.block = Block(order, 0, self.transfers, lambda phase: None, self.starvation, chance=random.Random(0))
        self.starved_ns = []
        self.counted_own_us = []

    def step(self, wait_us, kernel_us, script_us=100, batch=None, index=0):
        """True when the block was complete instead."""
        device, block = self.device, self.block
        if block.enter(device.now):
            return True
        asked = device.now
        device.now += wait_us * US
        block.step.wait_ns = device.now - asked
        if self.starvation.asking is not None:
            idle_from = max(asked, device.busy_until[index])
            self.starved_ns.append(max(0, device.now - idle_from))
            self.counted_own_us.append(self.starvation.handed_over(batch, block.step.wait_ns) / US)
        device.run(kernel_us * US, index)
        device.now += script_us * US
        return False

    def run(self, waits_us, **step):
        for wait_us in itertools.cycle(waits_us):
            if self.step(wait_us, **step):
                return self.record()

    def record(self):
        record = self.block.record("counted", None, [])
        return record["starvation"], record["missing"].get("starvation")


@pytest.mark.parametrize(
    ("waits_us", "kernel_us", "script_us", "starved_of_wait"),
    [
        ([5000], 10_000, 100, 0.0),  # the device is busy all along
        ([5000], 1_000, 1_100, 1.0),  # it has run dry before each ask, as behind .item()
        ([5000], 3_000, 1_000, 0.6),  # it runs dry in the wait
        ([200, 200, 200, 9_400], 2_000, 100, None),  # batches of four workers come in turns
    ],
)
def test_the_time_in_which_the_device_ran_dry_is_told(monkeypatch, waits_us, kernel_us, script_us, starved_of_wait):
    loop = Loop(Device(monkeypatch))
    told, missing = loop.run(waits_us, kernel_us=kernel_us, script_us=script_us)
    assert missing is None
    assert told["sampled_steps"] == len(loop.starved_ns) > 40
    # each sampled step is told as long as the recording takes too much at most
    assert told["starved_ms"] == pytest.approx(sum(loop.starved_ns) / MS, abs=0.005 * told["sampled_steps"])
    if starved_of_wait is not None:
        assert told["starved_ms"] / told["wait_ms"] == pytest.approx(starved_of_wait, abs=0.01)
    assert told["starved_ms"] <= told["wait_ms"]
    Recorded(**told)


def test_even_a_sample_of_one_in_many_sees_batches_that_come_in_turns(monkeypatch):
    # a record of 20 µs makes it one step of 11: in step with eleven workers, an even gap would see one of them
    loop = Loop(Device(monkeypatch, record_us=20), steps=4000)
    told, _ = loop.run([100] * 10 + [20_000], kernel_us=100)
    per_step = told["wait_ms"] / told["sampled_steps"]
    assert 300 < told["sampled_steps"] < 420
    assert per_step == pytest.approx((10 * 0.1 + 20) / 11, rel=0.25)


@pytest.mark.parametrize(
    ("record_us", "step_us", "one_in"),
    [
        (2, 10_000, 1),  # 4 µs a pair fit
        (13, 5_000, 7),  # 26 µs: 4 µs a step on average
        (13, 200, 13),  # 26 µs: 1 % of the step
        (13, 300_000, 1),  # a long step does not notice them
    ],
)
def test_as_often_as_the_cost_allows(monkeypatch, record_us, step_us, one_in):
    loop = Loop(Device(monkeypatch, record_us=record_us), steps=2600, seconds=0.01)
    told, _ = loop.run([step_us - 100], kernel_us=1)
    assert told["cost_us"] == pytest.approx(2 * record_us)
    assert told["sampled_steps"] == pytest.approx(2600 / one_in, rel=0.1)


def test_the_first_step_after_a_synchronisation_is_not_sampled(monkeypatch):
    loop = Loop(Device(monkeypatch), steps=4)
    told, _ = loop.run([5000], kernel_us=8000)
    assert told["sampled_steps"] == 3
    assert told["starved_ms"] < 0.02, "the first wait met a device that was made to run dry"


def test_nothing_is_recorded_while_nothing_counts_nor_waited_for(monkeypatch):
    device = Device(monkeypatch)
    loop = Loop(device, steps=20, settle_steps=6, seconds=0.001)
    for _ in range(6):
        loop.step(1000, 50_000)
    assert device.recorded == 0
    before = device.now
    for _ in range(15):
        loop.step(1000, 50_000)
    assert device.now < before + 6 * 50 * MS + 20 * 2 * MS, "the loop ran ahead of the device"
    assert loop.starvation.record() is None, "the device has not come to them yet"
    loop.block.gap(device.now, over=False)
    loop.run([1000], kernel_us=50_000)
    assert loop.record()[0]["sampled_steps"] == len(loop.starved_ns)


def test_events_are_used_again(monkeypatch):
    device, pairs = Device(monkeypatch), Pairs()
    for _ in range(2):
        Loop(device, pairs=pairs, steps=100).run([1000], kernel_us=1050)
    assert device.recorded > 390
    assert device.made < 8


def test_a_graph_that_is_captured_is_left_alone(monkeypatch):
    device = Device(monkeypatch)
    loop = Loop(device, steps=10)
    loop.run([1000], kernel_us=10)
    captured = Loop(device, steps=10)
    device.is_capturing = True
    monkeypatch.setattr(captured.starvation, "_sampling_cost_ns", lambda: 4000)
    told, missing = captured.run([1000], kernel_us=10)
    assert told is None
    assert "none of its steps was sampled" in missing


def test_the_device_is_the_one_that_batches_go_to(monkeypatch):
    loop = Loop(Device(monkeypatch), steps=30)
    loop.transfers.device = "cuda:1"
    told, _ = loop.run([5000], kernel_us=10_000, index=1)
    assert told["device"] == "cuda:1"
    assert told["starved_ms"] < 0.02 * told["wait_ms"]


@pytest.mark.parametrize("how", ["batch", "transfer"])
def test_a_loader_that_works_on_the_device_is_not_told_from_waiting(monkeypatch, how):
    loop = Loop(Device(monkeypatch), steps=10)
    batch = [SimpleNamespace(), torch.empty(2, device="meta" if how == "batch" else "cpu")]
    sampled = loop.starvation.handed_over

    def handed_over(*args):
        loop.block._tally.hooked_ns += how == "transfer"
        return sampled(*args)

    monkeypatch.setattr(loop.starvation, "handed_over", handed_over)
    assert loop.run([1000], kernel_us=1, batch=batch) == (None, LOADER_USES_DEVICE)


def test_a_device_that_fails_is_left_to_the_script(monkeypatch):
    device = Device(monkeypatch)
    loop = Loop(device, steps=20)

    def fails(event):
        raise RuntimeError("device-side assert triggered\nand more")

    for _ in range(55):
        loop.step(1000, 10)
    assert loop.starvation.asking is None
    monkeypatch.setattr(Event, "query", fails)
    told, missing = loop.run([1000], kernel_us=10)
    assert (told, missing) == (None, "the device's events failed: device-side assert triggered")


def test_what_keeps_a_full_queue_waiting_is_no_cost_of_ours(monkeypatch):
    device = Device(monkeypatch)
    loop = Loop(device, steps=20, settle_steps=3, seconds=0.001)
    while not loop.counted_own_us:
        loop.step(1000, 10)
    assert loop.counted_own_us == [2], "beside the 2 µs of asking"
    device.record_us = 700
    loop.run([1000], kernel_us=10)
    assert set(loop.counted_own_us[1:]) == {8 - 700}, "at most twice what a pair costs, in place of what it took"


def test_reasons(monkeypatch):
    device = Device(monkeypatch)
    told, missing = Loop(device, "replayed", steps=10).run([1000], kernel_us=1)
    assert (told, missing, device.recorded) == (None, "replayed", 0)

    found = []
    thread = threading.Thread(target=lambda: found.append(Loop(device, steps=10).run([1000], kernel_us=1)))
    thread.start()
    thread.join()
    assert found == [(None, OTHER_THREAD)]

    device.record_us = 400
    told, missing = Loop(device, steps=3).run([1000], kernel_us=1)
    assert told is None
    assert missing == (
        "none of its steps was sampled: a step takes 1.1 ms, to sample it costs 800 µs, so that it is done in one step "
        "of 200"
    )
    loop = Loop(device)
    assert loop.record() == (None, "no step was counted")

    device.in_use = False
    for accelerator, reason in (
        (None, "no accelerator"),
        ("cuda", UNUSED),
        ("mps", "events are read from CUDA and ROCm devices only, not from mps"),
    ):
        monkeypatch.setattr(starvation.device, "accelerator", lambda accelerator=accelerator: accelerator)
        assert Loop(device, steps=10).run([1000], kernel_us=1) == (None, reason)


def test_it_reads_by_the_function_under_the_hook():
    with installed():
        assert torch.cuda.Event.elapsed_time is not starvation._elapsed_ms
        assert torch.cuda.Event.elapsed_time.__wrapped__ is starvation._elapsed_ms


def test_steps_that_are_passed_over_bring_the_next_sample_nearer(monkeypatch):
    loop = Loop(Device(monkeypatch, record_us=40), steps=500)
    while not loop.starved_ns:
        loop.step(100, 1)
    left = loop.starvation._steps_left
    assert left > 2
    assert loop.starvation.pass_over(1) == 1
    assert loop.starvation.pass_over(1000) == left - 2, "the sampled step is asked for"
    loop.step(100, 1)
    assert len(loop.starved_ns) == 2


def test_a_block_that_has_nothing_to_sample_passes_over_all():
    assert Starvation(Pairs(), Transfers(None), "a reason").pass_over(1000) == 1000
