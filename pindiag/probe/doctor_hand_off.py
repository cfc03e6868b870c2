"""How fast one worker hands batches over, by start method: a stock DataLoader, a dataset that costs nothing."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from .doctor import Unavailable
from .repeated import REPETITIONS, long_enough, per_second

SIZES_BYTES = (64 << 10, 1 << 20, 16 << 20)
PREFETCH = 2
IN_FLIGHT = PREFETCH + 3
"""Batches that exist at once: the queue, one in the worker's hands, one in ours, and the one before it."""
FREE_SHARE = 0.5
"""Of /dev/shm: others use it too, and a full one kills the worker."""
TIMING_S = 0.1
MOST_BATCHES = 2000
TIMEOUT_S = 30.0


class Ready(Dataset[torch.Tensor]):
    """A sample for each size in bytes, made once; its pages are touched."""

    def __init__(self) -> None:
        self._made: dict[int, torch.Tensor] = {}

    def __getitem__(self, size_bytes: int) -> torch.Tensor:
        """The sample of that size."""
        if size_bytes not in self._made:
            self._made[size_bytes] = torch.ones(size_bytes, dtype=torch.uint8)
        return self._made[size_bytes]


class Orders:
    """An endless batch sampler that orders one sample of the size that is wanted now."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    def __iter__(self) -> Iterator[list[int]]:
        """One index batch after another."""
        while True:
            yield [self.size_bytes]


def hand_off(start_method: str) -> dict[str, Any]:
    """Seconds until the first batch, and bytes per second by batch size; fields are those of `doctor_model.HandOff`.

    The worker's stock collate function copies the sample into shared memory and its descriptor goes through the
    queue; the main process maps it and does not read it. One timing is of consecutive batches, after the queue has
    turned over.

    Raises:
        Unavailable: the platform has no such start method, or /dev/shm is too small for any size.
        RuntimeError: the worker died or did not answer.
    """
    if start_method not in multiprocessing.get_all_start_methods():
        raise Unavailable(f"the platform has no {start_method}")
    sizes = [_outcome(size, _free_shm()) for size in SIZES_BYTES]
    fitting = [outcome["batch_bytes"] for outcome in sizes if outcome["reason"] is None]
    if not fitting:
        raise Unavailable(sizes[0]["reason"])
    orders = Orders(fitting[0])
    loader: DataLoader[torch.Tensor] = DataLoader(
        Ready(),
        batch_sampler=orders,
        num_workers=1,
        prefetch_factor=PREFETCH,
        multiprocessing_context=start_method,
        timeout=TIMEOUT_S,
    )
    began = time.perf_counter()
    batches = iter(loader)
    next(batches)
    startup_s = time.perf_counter() - began
    for outcome in sizes:
        if outcome["reason"] is None:
            orders.size_bytes = outcome["batch_bytes"]
            outcome["bytes_per_s"] = _rate(batches, outcome["batch_bytes"])
    return {"start_method": start_method, "startup_s": startup_s, "sizes": sizes}


def too_large(batch_bytes: int, free_bytes: int | None) -> str | None:
    """Why batches of this size are left out; None where they fit into /dev/shm, or where nothing is known of it."""
    needed = IN_FLIGHT * batch_bytes
    if free_bytes is None or needed <= FREE_SHARE * free_bytes:
        return None
    return f"{IN_FLIGHT} batches hold {needed / 1e6:.0f} MB, and /dev/shm has {free_bytes / 1e6:.0f} MB free"


def _outcome(batch_bytes: int, free_bytes: int | None) -> dict[str, Any]:
    return {"batch_bytes": batch_bytes, "bytes_per_s": None, "reason": too_large(batch_bytes, free_bytes)}


def _free_shm() -> int | None:
    try:
        shm = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    return shm.f_frsize * shm.f_bavail


def _rate(batches: Iterator[torch.Tensor], batch_bytes: int) -> dict[str, Any]:
    while next(batches).nbytes != batch_bytes:
        continue  # ordered before the size changed
    take = _taker(batches)
    take(2 * PREFETCH)
    number = max(2 * PREFETCH, long_enough(lambda: take(2 * PREFETCH) / (2 * PREFETCH), TIMING_S, MOST_BATCHES))
    return per_second(number * batch_bytes, [take(number) for _ in range(REPETITIONS)])


def _taker(batches: Iterator[torch.Tensor]) -> Callable[[int], float]:
    def take(number: int) -> float:
        began = time.perf_counter()
        for _ in range(number):
            next(batches)
        return time.perf_counter() - began

    return take
