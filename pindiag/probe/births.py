"""What the birth of an iterator tells: its workers' share of pickling, and whether its first batch came out pinned."""

from __future__ import annotations

import functools
import time
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from .batch import tensors_of


class Pickled(NamedTuple):
    """What it took to pickle one process with its arguments."""

    ns: int
    bytes: int


_pickled: WeakKeyDictionary[BaseProcess, Pickled] = WeakKeyDictionary()


def install() -> None:
    """Time the pickling of processes that are spawned, or started by a fork server, from now on."""
    dump = reduction.dump

    @functools.wraps(dump)
    def timed_dump(obj: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(obj, BaseProcess):
            return dump(obj, file, *args, **kwargs)
        counted = file.seekable()  # Windows pickles into a pipe
        before = file.tell() if counted else 0
        started_ns = time.monotonic_ns()
        answer = dump(obj, file, *args, **kwargs)
        ended_ns = time.monotonic_ns()
        _pickled[obj] = Pickled(ended_ns - started_ns, file.tell() - before if counted else 0)
        return answer

    reduction.dump = timed_dump


def figures(iterator: Any, batch: Any) -> dict[str, Any]:
    """Fields of the record `loader_iterated`.

    Args:
        iterator: torch's iterator over a loader; None where the target has let go of it.
        batch: its first batch.

    Returns:
        pickle_ms: pickling all its workers, the dataset with each of them; None where none was pickled.
        pickle_bytes: how much that came to.
        batch_pinned: whether all tensors on the CPU are pinned; None where there are none, or none was to be pinned.
    """
    pickled = [_pickled[worker] for worker in getattr(iterator, "_workers", ()) if worker in _pickled]
    return {
        "pickle_ms": sum(each.ns for each in pickled) / 1e6 if pickled else None,
        "pickle_bytes": sum(each.bytes for each in pickled) or None,
        "batch_pinned": _pinned(batch) if getattr(iterator, "_pin_memory", False) else None,
    }


def _pinned(batch: Any) -> bool | None:
    on_cpu = [tensor for tensor in tensors_of(batch) if tensor.is_cpu]
    return all(tensor.is_pinned() for tensor in on_cpu) if on_cpu else None
