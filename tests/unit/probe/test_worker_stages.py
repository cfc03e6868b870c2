"""A worker's stages, with made-up times."""

from __future__ import annotations

import multiprocessing
import os
import queue
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from pindiag import store
from pindiag.model import WorkerBatch
from pindiag.probe import rings, worker_stages
from pindiag.probe.worker_stages import Stages, Usage

LATER_NS = 1 << 62
"""A time at which the kernel may be asked again."""


class NoUsage:
    def since(self, now_ns: int) -> tuple[int, int, int, int]:
        return (500, 12, 0, 33)


@pytest.fixture
def stages(clock, ring: rings.Ring, monkeypatch: pytest.MonkeyPatch) -> Stages:
    monkeypatch.setattr(worker_stages, "Usage", NoUsage)
    return Stages(ring)


def read(ring: rings.Ring) -> list[WorkerBatch]:
    return store.read_ring(Path(ring.path))


class Fetcher:
    def __init__(self, clock, *, auto_collation: bool = True, samples: object = (1,)) -> None:
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
def test_fetch_and_collate_apart(clock, ring, stages, auto_collation, samples, index, count) -> None:
    fetcher = Fetcher(clock, auto_collation=auto_collation, samples=samples)
    stages.time_fetcher(fetcher)
    assert fetcher.fetch(index) is samples
    (batch,) = read(ring)
    assert (batch.started_ns, batch.fetch_ns, batch.collate_ns, batch.cpu_ns) == (1_000, 330, 7, 37)
    assert batch.samples == count
    assert (batch.process_cpu_ns, batch.minor_faults, batch.major_faults, batch.run_delay_ns) == (500, 12, 0, 33)


def test_a_failing_fetch_is_no_batch(clock, ring, stages) -> None:
    fetcher = Fetcher(clock)
    stages.time_fetcher(fetcher)
    fetcher.clock = None
    with pytest.raises(AttributeError):
        fetcher.fetch([0])
    assert read(ring) == []
    assert stages.take_made() is None


class Indices:
    """An index queue that answers after a while; None is a time-out."""

    def __init__(self, clock, *answers: object) -> None:
        self.clock = clock
        self.answers = list(answers)

    def get(self, timeout: float) -> object:
        self.clock.sleep(1_000)
        answer = self.answers.pop(0)
        if answer is None:
            raise queue.Empty
        return answer


def test_waiting_for_an_index(clock, ring, stages) -> None:
    indices, fetcher = Indices(clock, (0, [1]), None, (1, [2]), "an epoch begins", (2, [3])), Fetcher(clock)
    stages.time_index_queue(indices)
    stages.time_fetcher(fetcher)

    def batch() -> None:
        _, index = indices.get(timeout=5)
        fetcher.fetch(index)

    batch()
    with pytest.raises(queue.Empty):
        indices.get(timeout=5)
    batch()
    assert indices.get(timeout=5) == "an epoch begins"
    batch()
    assert [each.idle_ns for each in read(ring)] == [1_000, 2_000, 1_000]


class Feeder:
    """What a queue's feeder thread does, when a test says so."""

    def __init__(self, clock, stages: Stages, locked: bool = True) -> None:
        self.clock = clock
        self.sent: list[bytes] = []
        lock = SimpleNamespace(acquire=lambda: clock.sleep(5), release=lambda: None)
        self.queue = SimpleNamespace(_buffer=deque(), _send_bytes=self.send, _wlock=lock if locked else None)
        stages.time_data_queue(self.queue)

    def send(self, data: bytes) -> None:
        self.clock.sleep(70)  # the pipe is full
        self.clock.spin(10)
        self.sent.append(data)

    def feed(self) -> None:
        item = self.queue._buffer.popleft()
        self.clock.spin(20)  # pickling
        self.clock.sleep(300)  # writing to shared memory
        if self.queue._wlock is not None:
            self.queue._wlock.acquire()
        self.queue._send_bytes(f"{item}".encode())
        if self.queue._wlock is not None:
            self.queue._wlock.release()


def test_hand_off_is_what_the_feeder_thread_does(clock, ring, stages) -> None:
    feeder, fetcher = Feeder(clock, stages), Fetcher(clock)
    stages.time_fetcher(fetcher)
    put = feeder.queue._buffer.append
    put("acknowledged")
    fetcher.fetch([0])
    put("first")
    put("an exception")
    fetcher.fetch([1])
    put("second one")
    assert all(batch.hand_off_ns is None for batch in read(ring))
    clock.sleep(1_000)  # in the buffer: no hand-off yet
    for _ in range(4):
        feeder.feed()
    assert feeder.sent == [b"acknowledged", b"first", b"an exception", b"second one"]
    first, second = read(ring)
    assert (first.hand_off_ns, first.hand_off_cpu_ns, first.blocked_ns, first.sent_bytes) == (330, 30, 75, 5)
    assert (second.hand_off_ns, second.hand_off_cpu_ns, second.blocked_ns, second.sent_bytes) == (330, 30, 75, 10)
    assert second.handed_ns - first.handed_ns == 2 * (330 + 75)
    with pytest.raises(IndexError):
        feeder.feed()


def test_hand_off_where_the_pipe_has_no_lock(clock, ring, stages) -> None:
    feeder, fetcher = Feeder(clock, stages, locked=False), Fetcher(clock)
    stages.time_fetcher(fetcher)
    fetcher.fetch([0])
    feeder.queue._buffer.append("batch")
    feeder.feed()
    (batch,) = read(ring)
    assert (batch.hand_off_ns, batch.hand_off_cpu_ns, batch.blocked_ns) == (330, 30, 70)


def test_a_batch_that_cannot_be_sent_has_no_hand_off(clock, ring, stages) -> None:
    feeder, fetcher = Feeder(clock, stages), Fetcher(clock)
    stages.time_fetcher(fetcher)
    for name in ("lost", "sent"):
        fetcher.fetch([0])
        feeder.queue._buffer.append(name)
    feeder.queue._buffer.popleft()  # its pickling raises
    feeder.feed()
    assert [batch.hand_off_ns for batch in read(ring)] == [None, 330]


def test_a_queue_of_another_kind_is_left_alone(stages) -> None:
    kept = SimpleNamespace(put=print)
    stages.time_data_queue(kept)
    assert vars(kept) == {"put": print}


def test_multiprocessing_has_what_is_timed() -> None:
    real = multiprocessing.get_context("spawn").Queue()
    assert isinstance(real._buffer, deque)
    assert callable(real._send_bytes)
    assert callable(real._wlock.acquire)
    assert callable(real._poll)


def test_usage_is_the_difference_of_the_kernels_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    used = [SimpleNamespace(ru_utime=0.5, ru_stime=0.25, ru_minflt=10, ru_majflt=1)]
    used.append(SimpleNamespace(ru_utime=0.75, ru_stime=0.5, ru_minflt=15, ru_majflt=3))
    monkeypatch.setattr(worker_stages, "resource", SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: used.pop(0)))
    schedstat = [b"100 40 7\n", b"300 45 9\n"]
    monkeypatch.setattr(os, "pread", lambda *_: schedstat.pop(0))
    monkeypatch.setattr(worker_stages, "_open_schedstat", lambda: 99)
    usage = Usage()
    assert usage.since(0) == (0, 0, 0, 0), "it was just asked"
    assert usage.since(LATER_NS) == (500_000_000, 5, 2, 5)
    assert usage.since(LATER_NS + 1) == (0, 0, 0, 0)


@pytest.mark.parametrize("text", [b"0 0 0\n", b"", b"not numbers at all", b"x y z\n", OSError("closed")])
def test_a_run_delay_that_is_not_told(monkeypatch: pytest.MonkeyPatch, text: bytes | OSError) -> None:
    def pread(*_: int) -> bytes:
        if isinstance(text, OSError):
            raise text
        return text

    monkeypatch.setattr(os, "pread", pread)
    monkeypatch.setattr(worker_stages, "_open_schedstat", lambda: 99)
    usage = Usage()
    assert usage.since(0)[3] == usage.since(LATER_NS)[3] == worker_stages.NOT_TOLD


def test_without_proc_and_without_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", missing)
    assert Usage().since(LATER_NS)[3] == worker_stages.NOT_TOLD
    monkeypatch.setattr(worker_stages, "resource", None)
    cpu_ns, *others = Usage().since(LATER_NS)
    assert cpu_ns >= 0
    assert others == [worker_stages.NOT_TOLD] * 3
