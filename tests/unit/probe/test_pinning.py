"""Counters of the pin thread, with made-up times."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace

import pytest

from pindiag.probe import pinning


class SlowQueue:
    """Built like multiprocessing's: it polls, then reads and unpickles."""

    def __init__(self, clock, *answers: object) -> None:
        self.clock = clock
        self.answers = list(answers)
        self._poll = self.poll

    def poll(self, timeout: float) -> bool:
        self.clock.sleep(1000)
        return bool(self.answers)

    def get(self, timeout: float) -> object:
        if not self._poll(timeout):
            raise queue.Empty
        self.clock.spin(50)  # unpickling
        self.clock.sleep(25)  # a worker's descriptor
        return self.answers.pop(0)


def difference(before: pinning.PinTotals, after: pinning.PinTotals) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(before[:4], after[:4], strict=True))


def test_pin_thread_totals(clock) -> None:
    def pin(data: object, _device: object = None) -> object:
        clock.spin(200)
        return [timed_pin(each) for each in data] if isinstance(data, list) else data

    def loop(in_queue: SlowQueue, out: list[object]) -> None:
        try:
            while True:
                out.append(timed_pin(in_queue.get(timeout=5)))
        except queue.Empty:
            pass

    timed_pin = pinning.timed_pin(pin)
    pinned: list[object] = []
    before = pinning.pin_totals()
    target = pinning.timed_pin_loop(loop)
    in_queue = SlowQueue(clock, ["x", "y"], None, "z")
    thread = threading.Thread(target=target, args=(in_queue, pinned))
    thread.start()
    thread.join()
    assert in_queue._poll == in_queue.poll  # as it was
    assert pinned == [["x", "y"], None, "z"]
    # Pinned are two batches (None is an answer without one): 3 calls of 200 ns for the list, 1 for "z".
    assert difference(before, pinning.pin_totals()) == (2, 225, 800, 4000)
    assert not pinning.pin_totals().in_main_thread


def test_pinning_in_the_main_thread(clock) -> None:
    clock.sleep(10**18)  # later than any thread of the other tests
    before = pinning.pin_totals()
    pinning.timed_pin(lambda data: clock.spin(20))("batch")
    assert difference(before, pinning.pin_totals()) == (1, 0, 20, 0)
    assert pinning.pin_totals().in_main_thread


def test_a_failing_pin_is_raised_and_the_next_one_counted(clock) -> None:
    def pin(data: str) -> str:
        if data == "bad":
            raise RuntimeError(data)
        return data

    timed = pinning.timed_pin(pin)
    before = pinning.pin_totals()
    with pytest.raises(RuntimeError, match="bad"):
        timed("bad")
    assert timed("good") == "good"
    assert difference(before, pinning.pin_totals())[0] == 2


def test_queue_is_otherwise_the_same() -> None:
    timed = pinning._TimedQueue(SimpleNamespace(qsize=lambda: 4, _poll=None))
    assert timed.qsize() == 4


def test_a_queue_of_another_kind_is_left_alone() -> None:
    other = SimpleNamespace(get=lambda: "batch")
    assert pinning.timed_pin_loop(lambda in_queue: in_queue)(other) is other
