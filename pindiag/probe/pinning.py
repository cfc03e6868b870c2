"""Times the pin thread, which lives in the main process and adds to counters there."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_pins: list[_Pins] = []


class PinTotals(NamedTuple):
    """What pinning has cost in this process so far."""

    batches: int
    receive_ns: int
    """Taking a batch that is there from the workers' queue: reading, unpickling and mapping."""
    pin_ns: int
    idle_ns: int
    """Waiting until the workers' queue has something."""
    in_main_thread: bool
    """Whether the latest batch was pinned in the main thread, for want of workers."""


def pin_totals() -> PinTotals:
    """Cumulative counters over all pin threads and the main thread."""
    pins = list(_pins)
    latest = max(pins, key=lambda each: each.latest_ns, default=None)
    return PinTotals(
        sum(each.batches for each in pins),
        sum(each.receive_ns for each in pins),
        sum(each.pin_ns for each in pins),
        sum(each.idle_ns for each in pins),
        latest is not None and latest.is_main,
    )


class _Pins:
    """Counters of one thread; nobody else writes them."""

    def __init__(self) -> None:
        self.batches = self.receive_ns = self.pin_ns = self.idle_ns = self.latest_ns = 0
        self.is_main = threading.current_thread() is threading.main_thread()
        self.inside = False


class _Local(threading.local):
    """The counters of the thread that asks."""

    def __init__(self) -> None:
        self.pins = _Pins()
        _pins.append(self.pins)


_local = _Local()


def is_pinning() -> bool:
    """Whether this thread is inside torch's function that pins a loader's batch."""
    return _local.pins.inside


class _TimedQueue:
    """A queue whose `get` is timed: polling is waiting, what follows is receiving."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._pins = _local.pins
        self._polled_ns = 0
        self._poll = queue._poll
        queue._poll = self._timed_poll

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def _timed_poll(self, *args: Any) -> Any:
        started_ns = time.monotonic_ns()
        try:
            return self._poll(*args)
        finally:
            self._polled_ns += time.monotonic_ns() - started_ns

    def let_go(self) -> None:
        """Leave the queue as it was: one that refers to itself keeps its descriptors until garbage is collected."""
        self._queue._poll = self._poll

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._polled_ns = 0
        started_ns = time.monotonic_ns()
        try:
            return self._queue.get(*args, **kwargs)
        finally:
            self._pins.receive_ns += time.monotonic_ns() - started_ns - self._polled_ns
            self._pins.idle_ns += self._polled_ns


def timed_pin_loop(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's pin thread, with the queue that it receives from timed where it is multiprocessing's own."""

    @functools.wraps(loop)
    def timed(in_queue: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(in_queue, "_poll"):
            return loop(in_queue, *args, **kwargs)
        timed_queue = _TimedQueue(in_queue)
        try:
            return loop(timed_queue, *args, **kwargs)
        finally:
            timed_queue.let_go()

    return timed


def timed_pin(pin: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's function that pins a batch, timed; it calls itself for the parts of one."""

    @functools.wraps(pin)
    def timed(data: Any, *args: Any, **kwargs: Any) -> Any:
        pins = _local.pins
        if pins.inside or data is None:  # its own recursion; a worker's answer that carries no batch
            return pin(data, *args, **kwargs)
        pins.inside = True
        started_ns = time.monotonic_ns()
        try:
            return pin(data, *args, **kwargs)
        finally:
            pins.inside = False
            pins.latest_ns = time.monotonic_ns()
            pins.pin_ns += pins.latest_ns - started_ns
            pins.batches += 1

    return timed
