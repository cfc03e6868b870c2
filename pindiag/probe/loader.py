"""DataLoaders: what the target makes of them, and serving one with other arguments."""

from __future__ import annotations

import contextlib
import inspect
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch.multiprocessing
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from .batch import BatchFacts, leading_dimension

_CONTEXT = "_DataLoader__multiprocessing_context"
LOADER_ARGUMENTS = ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size")


class Made(NamedTuple):
    """A DataLoader that the target constructed."""

    number: int
    location: str
    ordinal: int
    shape: tuple[Any, ...]
    """What two loaders made at one place share if the second replaces the first."""

    @property
    def key(self) -> dict[str, Any]:
        """The record's `LoaderKey`."""
        return {"location": self.location, "ordinal": self.ordinal}


def shape_of(loader: Any) -> tuple[Any, ...]:
    """Dataset, its length, sampler and batch size: a training and a validation loader differ in some of them."""
    return (type(loader.dataset), _length(loader.dataset), type(loader.sampler), loader.batch_size, loader.drop_last)


def _length(sized: Any) -> int | None:
    with contextlib.suppress(Exception):
        return len(sized)
    return None


def dataset_samples(loader: Any) -> int | None:
    """Length of the dataset; None where it has none."""
    return _length(loader.dataset)


def batches_per_epoch(loader: Any) -> int | None:
    """Length of the loader, asked without leaving a trace in it; None where it has none."""
    if is_iterable(loader):
        return _iterable_batches(loader)
    return _length(loader)


def _iterable_batches(loader: Any) -> int | None:
    # len(loader) would make torch warn later about datasets that give more than they said
    samples = _length(loader.dataset)
    size: int | None = loader.batch_size
    if samples is None or size is None:
        return samples
    return samples // size if loader.drop_last else -(-samples // size)


def is_iterable(loader: Any) -> bool:
    """Whether the dataset is an IterableDataset."""
    return isinstance(loader.dataset, IterableDataset)


def batch_size_of(loader: Any) -> int | None:
    """The loader's batch size, also where it came in a plain batch sampler."""
    size = loader.batch_size
    return size if size is not None else getattr(loader.batch_sampler, "batch_size", None)


def configuration(loader: Any, pin_memory: bool, non_blocking: bool | str | None) -> dict[str, Any]:
    """The record's `Configuration`."""
    workers = int(loader.num_workers)
    return {
        "num_workers": workers,
        "pin_memory": bool(pin_memory),
        "non_blocking": non_blocking,
        "prefetch_factor": loader.prefetch_factor if workers else None,
        "persistent_workers": bool(loader.persistent_workers) and workers > 0,
        "batch_size": batch_size_of(loader),
    }


class IndexStream:
    """Index batches of the user's own sampler, epoch after epoch.

    Args:
        sampler: the user's sampler or batch sampler.
        iterator: an iterator over it that has begun already, if any.
        drawn: how many of its index batches were drawn before.
        endless: whether the next epoch follows at once; else at `resume`.
    """

    def __init__(self, sampler: Any, *, iterator: Iterator[Any] | None = None, drawn: int = 0, endless: bool) -> None:
        self.endless = endless
        self.epochs = 0
        self.first_epoch: int | None = None
        """How many batches the first epoch had, once it has ended."""
        self._sampler = sampler
        self._iterator = iterator
        self._sizes: deque[int | None] = deque([None] * drawn)
        self._drawn = drawn
        self._epoch_ended_at: int | None = None

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> IndexStream:
        return self

    def __next__(self) -> Any:
        index = self._draw()
        self._drawn += 1
        self._sizes.append(len(index) if isinstance(index, list | tuple) else None)
        return index

    def _draw(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._sampler)
        try:
            return next(self._iterator)
        except StopIteration:
            self._end_epoch()
            if not self.endless:
                raise
        self._iterator = iter(self._sampler)
        return next(self._iterator)

    def _end_epoch(self) -> None:
        if self._epoch_ended_at == self._drawn:
            return
        self._epoch_ended_at = self._drawn
        self.epochs += 1
        if self.first_epoch is None:
            self.first_epoch = self._drawn

    def delivered(self) -> int | None:
        """A batch has arrived; returns its samples where the index batch says so."""
        return self._sizes.popleft() if self._sizes else None

    @property
    def epoch_is_over(self) -> bool:
        """Whether the target has received the last batch of a natural epoch."""
        return not self.endless and not self._sizes and self._epoch_ended_at == self._drawn

    def resume(self) -> None:
        """Begin the next natural epoch, if one has ended."""
        if self._epoch_ended_at == self._drawn:
            self._epoch_ended_at = None
            self._iterator = None


class Applied(NamedTuple):
    """What became of a treatment's changes."""

    loader: Any
    applied: dict[str, Any]
    refused: dict[str, str]


def clone(loader: Any, changes: dict[str, Any], sampler: Callable[[Any], Any]) -> Applied:
    """A loader of the same class with changed arguments; the user's own stays as it is.

    Args:
        loader: the user's.
        changes: arguments of DataLoader to new values.
        sampler: given the index sampler that the clone would have, returns the one that it gets.
    """
    twin = object.__new__(type(loader))
    state = twin.__dict__
    state.update(loader.__dict__)
    state["_iterator"] = None
    refused = {}
    for name, value in changes.items():
        if name == "batch_size":
            reason = _change_batch_size(state, value)
            if reason:
                refused[name] = reason
        else:
            state[name] = value
    normalise(state)
    index_name = "sampler" if state["batch_sampler"] is None else "batch_sampler"
    state[index_name] = sampler(state[index_name])
    for name in changes.keys() - refused.keys() - {"batch_size"}:
        if state[name] != changes[name]:
            refused[name] = "it needs num_workers > 0"
    return Applied(twin, {name: value for name, value in changes.items() if name not in refused}, refused)


def _change_batch_size(state: dict[str, Any], size: int) -> str | None:
    """Give a loader's state another batch size; returns the reason where that cannot be done."""
    batches = state["batch_sampler"]
    if batches is None:
        return "the loader does not make batches itself (batch_size=None)"
    if type(batches) is not BatchSampler:
        return f"its batches are made by {type(batches).__name__}, a batch sampler of the script's own"
    state["batch_sampler"] = BatchSampler(batches.sampler, size, batches.drop_last)
    if state["batch_size"] is not None:
        state["batch_size"] = size
    return None


def normalise(state: dict[str, Any]) -> None:
    """Make the arguments that depend on num_workers agree with it, as the constructor demands."""
    if state["num_workers"] == 0:
        state.update({"persistent_workers": False, "prefetch_factor": None, "timeout": 0, _CONTEXT: None})
    elif state["prefetch_factor"] is None:
        state["prefetch_factor"] = 2


def changed_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], changes: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, str]]:
    """A constructor call with changed arguments, and what could not be changed.

    For loaders that iterate in their own way, so that a clone would never be asked.
    """
    bound = signature.bind(None, *args, **kwargs)
    given = bound.arguments
    refused = {}
    for name, value in changes.items():
        if name == "batch_size" and (given.get("batch_sampler") is not None or given.get("batch_size", 1) is None):
            refused[name] = "the script makes its batches itself"
        else:
            given[name] = value
    if given.get("num_workers", 0) == 0:
        for name in ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context"):
            if given.pop(name, None) and name in changes:
                refused[name] = "it needs num_workers > 0"
    return bound.args[1:], bound.kwargs, refused


@contextlib.contextmanager
def quiet(changes: dict[str, Any]) -> Iterator[None]:
    """Silence the warnings that only a change provokes."""
    with contextlib.ExitStack() as stack:
        if changes:
            stack.enter_context(warnings.catch_warnings())
        if "num_workers" in changes:
            warnings.filterwarnings("ignore", message="This DataLoader will create")
        if "pin_memory" in changes:
            warnings.filterwarnings("ignore", message="'pin_memory' argument is set")
        yield


class Watch:
    """An iterator over a DataLoader, as the target holds it.

    Attributes:
        iterator: torch's, None once the target has let go of it (a watch must not keep its workers alive); for
            iterable datasets it is replaced when one is exhausted while blocks remain.
        stream: the index batches; None for iterable datasets.
        open: whether it may have more to give.
        fresh: whether torch's iterator has given nothing yet.
    """

    def __init__(
        self, made: Made, loader: Any, iterator: Any, stream: IndexStream | None, *, number: int, began_ns: int
    ) -> None:
        self.made = made
        self.loader = loader
        self._iterator = weakref.ref(iterator)
        self.stream = stream
        self.number = number
        self.facts: BatchFacts | None = None
        self.delivered = 0
        self.restarts = 0
        self.open = True
        self.fresh = True
        self.began_ns = began_ns
        self.startup_ms = (time.monotonic_ns() - began_ns) / 1e6

    def replace(self, iterator: Any, began_ns: int, number: int) -> None:
        """Go on with another iterator of torch's, after the first is exhausted."""
        self._iterator = weakref.ref(iterator)
        self.number, self.began_ns = number, began_ns
        self.startup_ms = (time.monotonic_ns() - began_ns) / 1e6
        self.restarts += 1
        self.fresh = True

    @property
    def iterator(self) -> Any:
        """See the class."""
        return self._iterator()

    def samples_of(self, batch: Any) -> int:
        """A batch has arrived; its samples as the index batch says, else by the leading dimension of its tensors."""
        told = self.stream.delivered() if self.stream is not None else None
        if told is not None:
            return told
        size = self.loader.batch_size
        leading = leading_dimension(batch)
        if leading is None:
            return size or 1
        return leading if size is None else min(leading, size)

    @property
    def queue(self) -> int:
        """Batches in flight: workers x prefetch factor."""
        if self.loader.num_workers == 0:
            return 0
        return int(self.loader.num_workers) * int(self.loader.prefetch_factor or 2)

    @property
    def past_natural_end(self) -> bool:
        """Whether it gave more batches than the target's own epoch has."""
        if self.stream is None:
            return self.restarts > 0
        first = self.stream.first_epoch
        return self.stream.endless and first is not None and self.delivered > first

    def start_method(self) -> str | None:
        """How its workers were started; None without workers."""
        context = getattr(self.iterator, "_multiprocessing_context", None) or self.loader.multiprocessing_context
        if self.loader.num_workers == 0:
            return None
        if context is None:
            return str(torch.multiprocessing.get_start_method())
        return str(context.get_start_method())

    def worker_pids(self) -> list[int]:
        """Process ids of its workers."""
        return [worker.pid for worker in getattr(self.iterator, "_workers", ()) if worker.pid is not None]

    def configuration(self) -> dict[str, Any]:
        """What is in effect in the iterator."""
        return configuration(self.loader, getattr(self.iterator, "_pin_memory", self.loader.pin_memory), None)

    def prime(self) -> None:
        """Fill the workers' queues again after a natural epoch, as a new iterator would."""
        iterator = self.iterator
        if self.loader.num_workers:
            for _ in range(self.queue - iterator._tasks_outstanding):
                iterator._try_put_index()


def has_own_iteration(kind: type) -> bool:
    """Whether a class of loaders overrides `__iter__`, so that a clone may never be asked."""
    return getattr(kind, "__iter__", None) is not DataLoader.__iter__
