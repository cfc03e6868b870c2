"""Rings and counters, with made-up times."""

from __future__ import annotations

import errno
import os
import pickle
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch.utils.data import _utils

from pindiag import store
from pindiag.probe import workers


class Clock:
    """Wall and CPU time that only pass where a test says so."""

    def __init__(self) -> None:
        self.wall_ns = 1_000
        self.cpu_ns = 0

    def monotonic_ns(self) -> int:
        return self.wall_ns

    def thread_time_ns(self) -> int:
        return self.cpu_ns

    def sleep(self, ns: int) -> None:
        self.wall_ns += ns

    def spin(self, ns: int) -> None:
        self.wall_ns += ns
        self.cpu_ns += ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(workers, "time", clock)
    return clock


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[workers.Ring]:
    ring = workers.Ring(str(tmp_path), 7, 3)
    yield ring
    if not ring.memory.closed:
        ring.close()


def read(ring: workers.Ring) -> list[tuple[int, ...]]:
    return [
        (each.started_ns, each.fetch_ns, each.collate_ns, each.cpu_ns, each.samples)
        for each in store.read_ring(Path(ring.path))
    ]


def test_same_layout_as_the_store() -> None:
    assert workers.RING_HEADER.format == store.RING_HEADER.format
    assert workers.RING_ENTRY.format == store.RING_ENTRY.format
    assert workers.RING_MAGIC == store.RING_MAGIC


def test_an_open_ring_can_be_read(ring: workers.Ring) -> None:
    assert read(ring) == []
    ring.write(1, 2, 3, 4, 5)
    assert read(ring) == [(1, 2, 3, 4, 5)]
    (batch,) = store.read_ring(Path(ring.path))
    assert (batch.launch, batch.pid, batch.worker) == (7, os.getpid(), 3)


def test_a_ring_keeps_the_newest_batches(ring: workers.Ring) -> None:
    for number in range(workers.RING_BATCHES + 10):
        ring.write(number, 0, 0, 0, 1)
    assert [entry[0] for entry in read(ring)] == list(range(10, workers.RING_BATCHES + 10))
    ring.close()
    assert [entry[0] for entry in read(ring)] == list(range(10, workers.RING_BATCHES + 10))


def test_a_closed_ring_takes_no_more_than_it_holds(ring: workers.Ring) -> None:
    ring.write(1, 2, 3, 4, 5)
    ring.close()
    assert os.path.getsize(ring.path) == workers.RING_HEADER.size + workers.RING_ENTRY.size
    assert read(ring) == [(1, 2, 3, 4, 5)]


def test_a_full_disk_leaves_no_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        workers.Ring(str(tmp_path), 1, 0)
    assert not list(tmp_path.iterdir())


class Fetcher:
    def __init__(self, clock: Clock, *, auto_collation: bool, samples: object) -> None:
        self.clock = clock
        self.auto_collation = auto_collation
        self.samples = samples

    def fetch(self, index: object) -> object:
        self.clock.sleep(300)
        self.clock.spin(30)
        return self.collate_fn(self.samples)

    def collate_fn(self, samples: object) -> object:
        self.clock.spin(7)
        return samples


@pytest.mark.parametrize(
    ("auto_collation", "samples", "index", "count"),
    [
        (True, [1, 2, 3], [0, 1, 2], 3),
        (True, [1, 2], [0, 1, 2], 2),  # the end of a stream
        (False, "a whole batch", [0, 1, 2, 3], 4),  # batch_size=None with a batch sampler
        (False, "a sample", 5, 1),
        (True, iter([1]), [0, 1], 2),
    ],
)
def test_fetch_and_collate_apart(
    clock: Clock, ring: workers.Ring, auto_collation: bool, samples: object, index: object, count: int
) -> None:
    fetcher = Fetcher(clock, auto_collation=auto_collation, samples=samples)
    workers._time_fetcher(fetcher, ring)
    assert fetcher.fetch(index) is samples
    assert read(ring) == [(1_000, 330, 7, 37, count)]


def test_a_failing_fetch_is_no_batch(clock: Clock, ring: workers.Ring) -> None:
    fetcher = Fetcher(clock, auto_collation=True, samples=[1])
    workers._time_fetcher(fetcher, ring)
    fetcher.clock = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        fetcher.fetch([0])
    assert read(ring) == []


def test_loop_survives_pickling() -> None:
    loop = workers.WorkerLoop(_utils.worker.__name__, rings_directory="rings", launch=2, close_fds=(3,))
    again = pickle.loads(pickle.dumps(loop))
    assert (again.rings_directory, again.launch) == ("rings", 2)
    assert again.close_fds == ()  # a spawned worker inherits none
    assert again.original is _utils.worker._worker_loop


def test_workers_that_are_threads_are_left_alone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    loop = workers.WorkerLoop(_utils.worker.__name__, rings_directory=str(tmp_path), launch=1, close_fds=(writer,))
    loop.original = lambda *args: args
    assert loop("dataset", 3) == ("dataset", 3)
    assert list(tmp_path.iterdir()) == []
    assert os.write(writer, b"still open") == 10
    os.close(reader)
    os.close(writer)


class SlowQueue:
    def __init__(self, clock: Clock, *answers: object) -> None:
        self.clock = clock
        self.answers = list(answers)

    def get(self, timeout: float) -> object:
        self.clock.sleep(1000)
        if not self.answers:
            raise queue.Empty
        self.clock.spin(50)
        return self.answers.pop(0)


def difference(before: workers.PinTotals, after: workers.PinTotals) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(before[:4], after[:4], strict=True))


def test_pin_thread_totals(clock: Clock) -> None:
    def pin(data: object, _device: object = None) -> object:
        clock.spin(200)
        return [timed_pin(each) for each in data] if isinstance(data, list) else data

    def loop(in_queue: SlowQueue, out: list[object]) -> None:
        try:
            while True:
                out.append(timed_pin(in_queue.get(timeout=5)))
        except queue.Empty:
            pass

    timed_pin = workers._timed_pin(pin)
    pinned: list[object] = []
    before = workers.pin_totals()
    target = workers._timed_pin_loop(loop)
    thread = threading.Thread(target=target, args=(SlowQueue(clock, ["x", "y"], None, "z"), pinned))
    thread.start()
    thread.join()
    assert pinned == [["x", "y"], None, "z"]
    # Pinned are two batches (None is an answer without one): 3 calls of 200 ns for the list, 1 for "z".
    assert difference(before, workers.pin_totals()) == (2, 150, 800, 4000)
    assert not workers.pin_totals().in_main_thread


def test_pinning_in_the_main_thread(clock: Clock) -> None:
    clock.sleep(10**18)  # later than any thread of the other tests
    before = workers.pin_totals()
    workers._timed_pin(lambda data: clock.spin(20))("batch")
    assert difference(before, workers.pin_totals()) == (1, 0, 20, 0)
    assert workers.pin_totals().in_main_thread


def test_a_failing_pin_is_raised_and_the_next_one_counted(clock: Clock) -> None:
    def pin(data: str) -> str:
        if data == "bad":
            raise RuntimeError(data)
        return data

    timed = workers._timed_pin(pin)
    before = workers.pin_totals()
    with pytest.raises(RuntimeError, match="bad"):
        timed("bad")
    assert timed("good") == "good"
    assert difference(before, workers.pin_totals())[0] == 2


def test_queue_is_otherwise_the_same() -> None:
    timed = workers._TimedQueue(SimpleNamespace(qsize=lambda: 4))
    assert timed.qsize() == 4
