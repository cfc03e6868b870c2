"""Times what one loader worker does with each batch, inside its process, where it happens.

The fetching thread waits for an index, fetches and collates; `Queue.put` only appends to a buffer, from which the
queue's feeder thread takes the batch, pickles it, which writes tensors to shared memory, and sends it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from torch.utils.data.dataloader import _DatasetKind

from .rings import Ring

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

NOT_TOLD = -1
USAGE_EVERY_NS = 5_000_000
"""The kernel is asked no more often: it takes as long to tell as all the clocks around a batch."""


class Stages:
    """Writes the stages of a worker's batches into its ring.

    Args:
        ring: where they go.
        after: called once a batch is made.
    """

    def __init__(self, ring: Ring, after: Callable[[], None] = lambda: None) -> None:
        self._ring = ring
        self._after = after
        self._usage = Usage()
        self._idle_ns = 0
        self._made: int | None = None

    # --------------------------------------------------------------------------------------- the fetching thread

    def time_fetchers(self) -> None:
        """Time the fetchers that this process creates from now on."""
        create: Callable[..., Any] = _DatasetKind.create_fetcher

        def create_timed(*args: Any, **kwargs: Any) -> Any:
            fetcher = create(*args, **kwargs)
            self.time_fetcher(fetcher)
            return fetcher

        _DatasetKind.create_fetcher = staticmethod(create_timed)  # type: ignore[method-assign]

    def time_fetcher(self, fetcher: Any) -> None:
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
            idle_ns, self._idle_ns = self._idle_ns, 0
            cpu_ns = time.thread_time_ns()
            started_ns = time.monotonic_ns()
            batch = fetch(index)
            ended_ns = time.monotonic_ns()
            fetch_ns = ended_ns - started_ns - collate_ns
            cpu_ns = time.thread_time_ns() - cpu_ns
            used = self._usage.since(ended_ns)
            self._made = self._ring.write(started_ns, idle_ns, fetch_ns, collate_ns, cpu_ns, samples, *used)
            self._after()
            return batch

        fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate

    def time_index_queue(self, queue: Any) -> None:
        """Time the waiting for the next index batch."""
        get = queue.get

        def timed_get(*args: Any, **kwargs: Any) -> Any:
            started_ns = time.monotonic_ns()
            try:
                answer = get(*args, **kwargs)
            finally:
                self._idle_ns += time.monotonic_ns() - started_ns
            if not isinstance(answer, tuple):
                self._idle_ns = 0  # an epoch begins, or the worker's end: what was waited for is no batch
            return answer

        queue.get = timed_get

    def take_made(self) -> int | None:
        """Number of the batch that was made since this was last asked."""
        made, self._made = self._made, None
        return made

    # ----------------------------------------------------------------------------------------- the feeder thread

    def time_data_queue(self, queue: Any) -> None:
        """Time the hand-off of batches; a queue that is not multiprocessing's own is left alone."""
        if isinstance(getattr(queue, "_buffer", None), deque) and hasattr(queue, "_send_bytes"):
            # all three are handed to the feeder thread, which starts at the first `put`
            buffer = Buffer(self.take_made)
            queue._buffer = buffer
            queue._send_bytes = self._timed_send(queue._send_bytes, buffer)
            if queue._wlock is not None:  # Windows has none
                queue._wlock = Lock(queue._wlock, buffer)

    def _timed_send(self, send: Callable[..., Any], buffer: Buffer) -> Callable[..., Any]:
        def timed_send(data: Any, *args: Any) -> Any:
            pickled_ns = buffer.pickled_ns or time.monotonic_ns()
            send_cpu_ns = time.thread_time_ns()
            answer = send(data, *args)
            if buffer.taken is not None:
                cpu_ns, ended_ns = time.thread_time_ns(), time.monotonic_ns()
                work_ns = pickled_ns - buffer.taken_ns + cpu_ns - send_cpu_ns
                blocked_ns = max(ended_ns - buffer.taken_ns - work_ns, 0)
                self._ring.hand_off(
                    buffer.taken, ended_ns, work_ns, cpu_ns - buffer.taken_cpu_ns, blocked_ns, len(data)
                )
            return answer

        return timed_send


class Buffer(deque[Any]):
    """What a queue holds before it is sent, with the numbers of the batches in it.

    Args:
        take_made: gives the number of the batch that is being appended; None where it is no batch.

    Attributes:
        taken: number of the batch that the feeder thread has taken; None where it is no batch.
        taken_ns: when it was taken.
        taken_cpu_ns: CPU time of the feeder thread then.
        pickled_ns: when it was pickled; 0 until then, and where no lock tells.
    """

    def __init__(self, take_made: Callable[[], int | None]) -> None:
        super().__init__()
        self._take_made = take_made
        self._numbers: deque[int | None] = deque()
        self.taken: int | None = None
        self.taken_ns = self.taken_cpu_ns = self.pickled_ns = 0

    def append(self, item: Any, /) -> None:
        """The fetching thread puts something."""
        self._numbers.append(self._take_made())
        super().append(item)

    def popleft(self) -> Any:
        """The feeder thread takes it: hand-off begins."""
        item = super().popleft()
        self.taken = self._numbers.popleft()
        self.pickled_ns = 0
        self.taken_cpu_ns = time.thread_time_ns()
        self.taken_ns = time.monotonic_ns()
        return item


class Lock:
    """The lock of a queue's pipe; the feeder thread asks for it once a batch is pickled."""

    def __init__(self, lock: Any, buffer: Buffer) -> None:
        self._lock = lock
        self._buffer = buffer
        self.release = lock.release

    def acquire(self, *args: Any) -> Any:
        """Wait for the other workers to have sent theirs."""
        self._buffer.pickled_ns = time.monotonic_ns()
        return self._lock.acquire(*args)


class Usage:
    """What the kernel counts for this process; -1 is what it does not tell."""

    def __init__(self) -> None:
        self._schedstat = _open_schedstat()
        self._before = self._read()
        self._nothing = _none_since(self._before)
        self._due_ns = time.monotonic_ns() + USAGE_EVERY_NS

    def since(self, now_ns: int) -> tuple[int, int, int, int]:
        """CPU time of all threads (ns), minor faults, major faults, run-queue delay of the main thread (ns).

        All since the kernel was last asked; zeros where that was a moment ago, so that sums over batches are right.
        """
        if now_ns < self._due_ns:
            return self._nothing
        self._due_ns = now_ns + USAGE_EVERY_NS
        before, self._before = self._before, self._read()
        self._nothing = _none_since(self._before)
        cpu, minor, major, delay = (
            now - then if NOT_TOLD not in (now, then) else NOT_TOLD
            for now, then in zip(self._before, before, strict=True)
        )
        return cpu, minor, major, delay

    def _read(self) -> tuple[int, int, int, int]:
        if resource is None:
            return time.process_time_ns(), NOT_TOLD, NOT_TOLD, NOT_TOLD
        used = resource.getrusage(resource.RUSAGE_SELF)
        return round((used.ru_utime + used.ru_stime) * 1e9), used.ru_minflt, used.ru_majflt, self._run_delay_ns()

    def _run_delay_ns(self) -> int:
        if self._schedstat is None:
            return NOT_TOLD
        try:
            on_cpu_ns, delay_ns, _ = map(int, os.pread(self._schedstat, 64, 0).split())
        except (OSError, ValueError):  # also where the script has closed or reused the descriptor
            self._schedstat = None
            return NOT_TOLD
        return delay_ns if on_cpu_ns else NOT_TOLD  # all zero: the kernel does not account it


def _none_since(read: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    cpu, minor, major, delay = (NOT_TOLD if value == NOT_TOLD else 0 for value in read)
    return cpu, minor, major, delay


def _open_schedstat() -> int | None:
    """Of the main thread of this process, where Linux offers it."""
    try:
        return os.open("/proc/self/schedstat", os.O_RDONLY)
    except OSError:
        return None
