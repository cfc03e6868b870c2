"""Following an iterator over a DataLoader, as the target holds it."""

from __future__ import annotations

import time
import weakref
from multiprocessing import connection
from typing import Any, NamedTuple

import torch.multiprocessing

from . import loader as loaders
from .batch import BatchFacts, leading_dimension
from .callsite import Place
from .epochs import Epochs
from .index_stream import IndexStream
from .passages import Passage


class Made(NamedTuple):
    """A DataLoader that the target constructed."""

    number: int
    location: str
    ordinal: int
    shape: tuple[Any, ...]
    """What two loaders made at one place share if the second replaces the first."""
    maker: str | None = None
    """The library's module that made it of its own accord; None: the target did."""
    stack: tuple[Place, ...] = ()
    """The target's own calls in which it was constructed."""

    @property
    def key(self) -> dict[str, Any]:
        """The record's `LoaderKey`."""
        return {"location": self.location, "ordinal": self.ordinal}


class Watch:
    """An iterator over a DataLoader, as the target holds it; torch's iterators behind it may change.

    Args:
        made: the loader's construction.
        asked: the loader that the target iterates over.
        epochs: begins its epochs.
        stream: its index batches; None for iterable datasets.

    Attributes:
        served: the loader that gives the batches: `asked` itself or a clone of it.
        delivered: batches that the target has received.
        open: whether it may have more to give.
        fresh: whether torch's iterator has given nothing yet.
        arrived_ns: when it gave its first batch.
        granted: steps in which nothing is due but to count them; see `Session.serve_quickly`.
        passage: what it cost so far, while it is not known to train.
        looped: the target's own calls in which its first batch was asked for.
    """

    def __init__(self, made: Made, asked: Any, epochs: Epochs, stream: IndexStream | None) -> None:
        self.made = made
        self.asked = asked
        self.epochs = epochs
        self.stream = stream
        self.served: Any = asked
        self.facts: BatchFacts | None = None
        self.passage: Passage | None = None
        self.looped: tuple[Place, ...] = ()
        self.delivered = 0
        self.granted = 0
        self.restarts = 0
        self.open = True
        self.fresh = True
        self.number = 0
        self.began_ns = 0
        self.arrived_ns = 0
        self.startup_ms = 0.0
        self._in_order = True
        self._iterator: weakref.ref[Any] | None = None

    def follow(self, iterator: Any, served: Any, number: int, began_ns: int) -> None:
        """Go on with this iterator of torch's, over `served`, whose making began at a time."""
        self.served = served
        self._iterator = weakref.ref(iterator)
        self._in_order = getattr(served, "in_order", True) or served.num_workers == 0
        self.number, self.began_ns = number, began_ns
        self.startup_ms = (time.monotonic_ns() - began_ns) / 1e6
        self.fresh = True

    @property
    def iterator(self) -> Any:
        """Torch's; None once the target has let go of it (a watch must not keep its workers alive)."""
        return self._iterator() if self._iterator is not None else None

    def waited(self, wait_ns: int) -> None:
        """The target has got a batch from it, outside the training loop."""
        self.delivered += 1
        if self.passage is not None:
            self.passage.took(wait_ns)

    def samples_of(self, batch: Any) -> int:
        """A batch has arrived; its samples as the index batch says, else by the leading dimension of its tensors."""
        stream = self.stream
        told = stream.delivered() if stream is not None and self._in_order else self.arrived()
        return self._samples_found(batch) if told is None else told

    def _samples_found(self, batch: Any) -> int:
        size = self.served.batch_size
        leading = leading_dimension(batch)
        if leading is None:
            return size or 1
        return leading if size is None else min(leading, size)

    def arrived(self) -> int | None:
        """An index batch is done with, by a batch or by the exception that its making raised; returns its samples."""
        if self.stream is None:
            return None
        return self.stream.delivered(None if self._in_order else self.iterator._task_info)

    @property
    def queue(self) -> int:
        """Batches in flight: workers x prefetch factor."""
        if self.served.num_workers == 0:
            return 0
        return int(self.served.num_workers) * int(self.served.prefetch_factor or 2)

    @property
    def past_natural_end(self) -> bool:
        """Whether it gave more batches than the target's own epoch has."""
        if self.stream is None:
            return self.restarts > 0
        if not self.stream.endless:
            return False
        first = self.stream.first_epoch or loaders.batches_per_epoch(self.served)
        return first is not None and self.delivered > first

    def start_method(self) -> str | None:
        """How its workers were started; None without workers."""
        context = getattr(self.iterator, "_multiprocessing_context", None) or self.served.multiprocessing_context
        if self.served.num_workers == 0:
            return None
        if context is None:
            return str(torch.multiprocessing.get_start_method())
        return str(context.get_start_method())

    def worker_pids(self) -> list[int]:
        """Process ids of its workers."""
        return [worker.pid for worker in getattr(self.iterator, "_workers", ()) if worker.pid is not None]

    def worker_exits(self, wait_s: float) -> list[int]:
        """Exit statuses of its workers that died, waiting for a first one up to a time; negative: a signal."""
        # where torch runs workers as threads they have none
        workers = [worker for worker in getattr(self.iterator, "_workers", ()) if hasattr(worker, "sentinel")]
        if workers:
            connection.wait([worker.sentinel for worker in workers], wait_s)
        return [worker.exitcode for worker in workers if worker.exitcode]

    def configuration(self) -> dict[str, Any]:
        """What is in effect in the iterator."""
        pinned = getattr(self.iterator, "_pin_memory", self.served.pin_memory)
        return loaders.configuration(self.served, pinned, None)

    def prime(self) -> None:
        """Fill the workers' queues again after a natural epoch, as a new iterator would."""
        iterator = self.iterator
        if self.served.num_workers:
            for _ in range(self.queue - iterator._tasks_outstanding):
                iterator._try_put_index()
