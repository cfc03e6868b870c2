"""Times what loader workers and the pin thread do with each batch.

Workers write into one preallocated ring a process, a file that survives them; the pin thread, which lives in the
main process, adds to counters there. Both run torch's own loops, whose arguments are handed through unseen.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import mmap
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from torch.utils.data import _utils
from torch.utils.data.dataloader import _DatasetKind

from . import files, stacks
from .imports import after_import

RING_HEADER = struct.Struct("<8sqqqq")
"""Magic, launch, pid, worker, number of batches written so far."""
RING_ENTRY = struct.Struct("<qqqqq")
"""started_ns, fetch_ns, collate_ns, cpu_ns, samples of one batch."""
RING_MAGIC = b"PDRING01"
RING_BATCHES = 2048
"""The newest batches that a ring holds: 80 kB a worker."""

_COUNT = struct.Struct("<q")
_COUNT_OFFSET = RING_HEADER.size - _COUNT.size

_pins: list[_Pins] = []


class PinTotals(NamedTuple):
    """What pinning has cost in this process so far."""

    batches: int
    receive_ns: int
    """On CPU while taking batches from the workers' queue: unpickling and mapping."""
    pin_ns: int
    idle_ns: int
    """Waiting for the workers' queue."""
    in_main_thread: bool
    """Whether the latest batch was pinned in the main thread, for want of workers."""


def install(rings_directory: str, launch: int, close_fds: tuple[int, ...]) -> None:
    """Time the workers and pin threads that are started from now on.

    Args:
        rings_directory: where each worker makes its ring.
        launch: number of the launch.
        close_fds: descriptors that forked workers close first; they would hold the parent's pipe open.
    """
    loop = functools.partial(WorkerLoop, rings_directory=rings_directory, launch=launch, close_fds=close_fds)
    _utils.worker._worker_loop = loop(_utils.worker.__name__)
    _utils.pin_memory._pin_memory_loop = _timed_pin_loop(_utils.pin_memory._pin_memory_loop)
    _utils.pin_memory.pin_memory = _timed_pin(_utils.pin_memory.pin_memory)

    def change(module: ModuleType) -> None:
        module._worker_loop = loop("torchdata.stateful_dataloader.worker")  # type: ignore[attr-defined]

    after_import("torchdata.stateful_dataloader.stateful_dataloader", change)


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


# ------------------------------------------------------------------------------------------------------- workers


class WorkerLoop:
    """Stands where torch's `_worker_loop` stood; it can be pickled for spawned workers."""

    def __init__(self, module: str, *, rings_directory: str, launch: int, close_fds: tuple[int, ...]) -> None:
        self.module = module
        self.rings_directory = rings_directory
        self.launch = launch
        self.close_fds = close_fds
        self.main_pid = os.getpid()
        self.guard: tuple[str, int, int] | None = None
        self.original = _original_loop(module)

    def __getstate__(self) -> dict[str, Any]:
        """For a spawned worker, which finds the original in its own torch, inherits no fds and has no guard yet."""
        return {**self.__dict__, "original": None, "close_fds": (), "guard": files.arguments()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.original = _original_loop(self.module)
        if self.guard is not None:
            files.install(*self.guard)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Be a worker; where torch runs it as a thread of the main process, an untimed one."""
        if os.getpid() == self.main_pid:
            return self.original(*args, **kwargs)
        for fd in self.close_fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        stacks.offer()
        ring = self._ring(inspect.signature(self.original).bind(*args, **kwargs).arguments.get("worker_id", -1))
        if ring is not None:
            _time_fetchers(ring)
            module = import_module(self.module)
            module.ExceptionWrapper = _without_own_frames(module.ExceptionWrapper)  # type: ignore[attr-defined]
        try:
            return self.original(*args, **kwargs)
        finally:
            if ring is not None:
                ring.close()

    def _ring(self, worker: int) -> Ring | None:
        try:
            return Ring(self.rings_directory, self.launch, worker)
        except OSError:
            return None


def _original_loop(module: str) -> Callable[..., Any]:
    loop = import_module(module)._worker_loop
    return loop.original if isinstance(loop, WorkerLoop) else loop


class Ring:
    """The newest batches of one worker, in a mapped file that outlives it.

    Raises:
        OSError: the file cannot be made whole, e.g. on a full disk (a sparse one would kill the worker by SIGBUS).
    """

    def __init__(self, folder: str, launch: int, worker: int) -> None:
        self.path = os.path.join(folder, f"{launch:03d}-{os.getpid()}.ring")
        self.written = 0
        size = RING_HEADER.size + RING_BATCHES * RING_ENTRY.size
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.fd, 0, size)
            elif os.write(self.fd, bytes(size)) != size:
                raise OSError("the disk is full")
            self.memory = mmap.mmap(self.fd, size)
        except OSError:
            os.close(self.fd)
            os.unlink(self.path)
            raise
        RING_HEADER.pack_into(self.memory, 0, RING_MAGIC, launch, os.getpid(), worker, 0)

    def write(self, started_ns: int, fetch_ns: int, collate_ns: int, cpu_ns: int, samples: int) -> None:
        """Write a batch, and only then count it."""
        place = RING_HEADER.size + self.written % RING_BATCHES * RING_ENTRY.size
        RING_ENTRY.pack_into(self.memory, place, started_ns, fetch_ns, collate_ns, cpu_ns, samples)
        self.written += 1
        _COUNT.pack_into(self.memory, _COUNT_OFFSET, self.written)

    def close(self) -> None:
        """Give back the part that was not used."""
        self.memory.close()
        os.ftruncate(self.fd, RING_HEADER.size + min(self.written, RING_BATCHES) * RING_ENTRY.size)
        os.close(self.fd)


def _time_fetchers(ring: Ring) -> None:
    create: Callable[..., Any] = _DatasetKind.create_fetcher

    def create_timed(*args: Any, **kwargs: Any) -> Any:
        fetcher = create(*args, **kwargs)
        _time_fetcher(fetcher, ring)
        return fetcher

    _DatasetKind.create_fetcher = staticmethod(create_timed)  # type: ignore[method-assign]


def _time_fetcher(fetcher: Any, ring: Ring) -> None:
    """Let `fetcher.fetch` write a ring entry for each batch, with the time in its collate function apart."""
    fetch, collate = fetcher.fetch, fetcher.collate_fn
    collate_ns = samples = 0

    def timed_collate(data: Any) -> Any:
        nonlocal collate_ns, samples
        if fetcher.auto_collation and hasattr(data, "__len__"):
            samples = len(data)
        started_ns = time.monotonic_ns()
        batch = collate(data)
        collate_ns = time.monotonic_ns() - started_ns
        return batch

    def timed_fetch(index: Any) -> Any:
        nonlocal collate_ns, samples
        collate_ns, samples = 0, len(index) if isinstance(index, (list, tuple)) else 1
        cpu_ns = time.thread_time_ns()
        started_ns = time.monotonic_ns()
        batch = fetch(index)
        fetch_ns = time.monotonic_ns() - started_ns - collate_ns
        ring.write(started_ns, fetch_ns, collate_ns, time.thread_time_ns() - cpu_ns, samples)
        return batch

    fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate


def _without_own_frames(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's ExceptionWrapper, made from a traceback as it would be without this file."""

    def wrap(exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, traceback = exc_info or sys.exc_info()
        return wrapper((kind, error, _stripped(traceback)), where)

    return wrap


def _stripped(traceback: TracebackType | None) -> TracebackType | None:
    if traceback is None:
        return None
    rest = _stripped(traceback.tb_next)
    if traceback.tb_frame.f_code.co_filename == __file__:
        return rest
    traceback.tb_next = rest
    return traceback


# ---------------------------------------------------------------------------------------------------- pin thread


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


class _TimedQueue:
    """A queue whose `get` is timed: CPU time is receiving, the rest of it waiting."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._pins = _local.pins

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        cpu_ns = time.thread_time_ns()
        started_ns = time.monotonic_ns()
        try:
            return self._queue.get(*args, **kwargs)
        finally:
            receive_ns = time.thread_time_ns() - cpu_ns
            self._pins.receive_ns += receive_ns
            self._pins.idle_ns += max(0, time.monotonic_ns() - started_ns - receive_ns)


def _timed_pin_loop(loop: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(loop)
    def timed(in_queue: Any, *args: Any, **kwargs: Any) -> Any:
        return loop(_TimedQueue(in_queue), *args, **kwargs)

    return timed


def _timed_pin(pin: Callable[..., Any]) -> Callable[..., Any]:
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
