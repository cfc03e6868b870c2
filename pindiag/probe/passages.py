"""Passages through loaders that do not train: how often and how long the script waited for them."""

from __future__ import annotations

import time
from collections.abc import Callable

from .recorder import Recorder

LONGEST_LIST = 200
"""Passages through loaders are recorded up to this number, so that a loop of them fills no disk."""

_now = time.monotonic_ns


class Passage:
    """One iterator's; it keeps neither the iterator nor its loader alive.

    Args:
        loader: the loader's number.
        iterator: the iterator's.
        began_ns: when `__iter__` was called.
        trained: batches that the training loader had given by then.
    """

    __slots__ = ("_batches", "_began_ns", "_iterator", "_last_ns", "_loader", "_trained", "_wait_ns")

    def __init__(self, loader: int, iterator: int, began_ns: int, trained: int) -> None:
        self._loader = loader
        self._iterator = iterator
        self._began_ns = began_ns
        self._last_ns = _now()
        self._wait_ns = self._last_ns - began_ns
        self._batches = 0
        self._trained = trained

    def took(self, wait_ns: int) -> None:
        """A batch came."""
        self._batches += 1
        self._wait_ns += wait_ns
        self._last_ns = _now()

    def record(self, trained: int, *, whole: bool) -> dict[str, object]:
        """The fields of its `LoaderSeen`.

        Args:
            trained: batches that the training loader has given.
            whole: whether it has just been exhausted.
        """
        ended = _now() if whole else self._last_ns
        return {
            "loader": self._loader,
            "iterator": self._iterator,
            "batches": self._batches,
            "wait_ms": self._wait_ns / 1e6,
            "seconds": (ended - self._began_ns) / 1e9,
            "whole": whole,
            "training_batches": trained - self._trained,
        }


class Passages:
    """All those that are not over.

    Args:
        recorder: where records go.
        trained: tells how many batches the training loader has given.
    """

    def __init__(self, recorder: Recorder, trained: Callable[[], int]) -> None:
        self._recorder = recorder
        self._trained = trained
        self._open: dict[int, Passage] = {}

    def begin(self, loader: int, iterator: int, began_ns: int) -> Passage:
        """An iterator was made."""
        passage = Passage(loader, iterator, began_ns, self._trained())
        if iterator < LONGEST_LIST:
            self._open[iterator] = passage
        return passage

    def forget(self, iterator: int) -> None:
        """It trains."""
        self._open.pop(iterator, None)

    def exhausted(self, iterator: int) -> None:
        """It has given everything."""
        passage = self._open.pop(iterator, None)
        if passage is not None:
            self._recorder.write("loader_seen", **passage.record(self._trained(), whole=True))

    def say_rest(self) -> None:
        """The launch is over: record those that were left."""
        while self._open:
            _, passage = self._open.popitem()
            self._recorder.write("loader_seen", **passage.record(self._trained(), whole=False))
