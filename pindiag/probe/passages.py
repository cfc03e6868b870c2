"""Passages through loaders that do not train: how often and how long the script waited for them."""

from __future__ import annotations

import time

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
    """

    __slots__ = ("_batches", "_began_ns", "_iterator", "_last_ns", "_loader", "_wait_ns")

    def __init__(self, loader: int, iterator: int, began_ns: int) -> None:
        self._loader = loader
        self._iterator = iterator
        self._began_ns = began_ns
        self._last_ns = _now()
        self._wait_ns = self._last_ns - began_ns
        self._batches = 0

    def took(self, wait_ns: int) -> None:
        """A batch came."""
        self._batches += 1
        self._wait_ns += wait_ns
        self._last_ns = _now()

    def record(self, *, whole: bool) -> dict[str, object]:
        """The fields of its `LoaderSeen`.

        Args:
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
        }


class Passages:
    """All those that are not over.

    Args:
        recorder: where records go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[int, Passage] = {}

    def begin(self, loader: int, iterator: int, began_ns: int) -> Passage:
        """An iterator was made."""
        passage = Passage(loader, iterator, began_ns)
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
            self._recorder.write("loader_seen", **passage.record(whole=True))

    def say_rest(self) -> None:
        """The launch is over: record those that were left."""
        while self._open:
            _, passage = self._open.popitem()
            self._recorder.write("loader_seen", **passage.record(whole=False))
