"""How fast host memory goes to the GPU, and what it costs to pin it, by size."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import device
from .doctor import Unavailable
from .repeated import REPETITIONS, long_enough, per_second, spread

SIZES_BYTES = tuple(64 << 10 << shift for shift in (0, 2, 4, 6, 8, 10, 12))
ROOM_BYTES = 2 * SIZES_BYTES[-1]
DEVICE = "cuda"
PAGE_BYTES = 4096
TIMING_S = 0.005
MOST_COPIES = 200
FIRST_PINS = 3
DEVICE_SHARE = 0.25
"""Of the GPU's free memory: someone else may be training there."""


def measure() -> dict[str, Any]:
    """Bandwidth and the cost of pinning for each size; fields are those of `doctor_model.Copies`.

    Every source is aligned to a page and touched; pageable ones take turns over more memory than the CPU caches, as
    batches do. Every copy is warmed up. One timing is of consecutive copies between two device synchronisations on the
    host's clock: pageable ones block, as `.to(device)` does, pinned ones are `non_blocking`. Pinning is one
    `pin_memory()` on the host's clock: the first of its size allocates, a cached one only copies.

    Raises:
        Unavailable: there is no accelerator, or none that torch drives through CUDA.
    """
    kind = device.accelerator()
    if kind != "cuda":
        raise Unavailable("no accelerator" if kind is None else f"copies are measured on CUDA devices, not on {kind}")
    torch.ones(1).pin_memory()  # begins CUDA and its allocator
    free_bytes = torch.cuda.mem_get_info()[0]
    memory = aligned(ROOM_BYTES)
    return {
        "device_name": torch.cuda.get_device_name(),
        "device_uuid": _uuid(),
        "sizes": [_outcome(_parts(memory, size), free_bytes) for size in SIZES_BYTES],
    }


def _uuid() -> str | None:
    found = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return None if found is None else str(found)


def _parts(memory: torch.Tensor, size_bytes: int) -> list[torch.Tensor]:
    return [memory[start : start + size_bytes] for start in range(0, memory.nbytes, size_bytes)]


def _outcome(sources: Sequence[torch.Tensor], free_bytes: int) -> dict[str, Any]:
    size_bytes = sources[0].nbytes
    found: dict[str, Any] = {"bytes": size_bytes, "reason": None}
    if size_bytes > DEVICE_SHARE * free_bytes:
        return {**found, "reason": f"the GPU has {free_bytes / 1e6:.0f} MB free"}
    try:
        return {**found, **_at(sources)}
    except RuntimeError as error:
        return {**found, "reason": str(error).strip().splitlines()[0]}


def _at(sources: Sequence[torch.Tensor]) -> dict[str, Any]:
    size_bytes = sources[0].nbytes
    pageable = itertools.cycle(sources)
    target = torch.empty(size_bytes, dtype=torch.uint8, device=DEVICE)
    first_ms = _first_pins_ms(pageable)
    cached_ms = [_pin_ms(next(pageable)) for _ in range(REPETITIONS)]
    pinned = next(pageable).pin_memory()
    return {
        "pageable_bytes_per_s": _rate(size_bytes, lambda: target.copy_(next(pageable))),
        "pinned_bytes_per_s": _rate(size_bytes, lambda: target.copy_(pinned, non_blocking=True)),
        "first_pin_ms": spread(first_ms),
        "cached_pin_ms": spread(cached_ms),
    }


def aligned(size_bytes: int) -> torch.Tensor:
    """Pageable host memory that begins on a page, all of its pages touched."""
    room = torch.ones(size_bytes + PAGE_BYTES, dtype=torch.uint8)
    return room[-room.data_ptr() % PAGE_BYTES :][:size_bytes]


def _first_pins_ms(sources: Iterator[torch.Tensor]) -> list[float]:
    """Several where the version can give cached memory back in between, else the one that found none."""
    times_ms = [_pin_ms(next(sources))]
    while len(times_ms) < FIRST_PINS and device.empty_host_cache():
        times_ms.append(_pin_ms(next(sources)))
    return times_ms


def _pin_ms(source: torch.Tensor) -> float:
    began = time.perf_counter()
    pinned = source.pin_memory()
    took_ms = (time.perf_counter() - began) * 1e3
    del pinned  # after the clock: giving memory back is no part of pinning
    return took_ms


def _rate(size_bytes: int, copy: Callable[[], object]) -> dict[str, Any]:
    def take(number: int) -> float:
        device.synchronise()
        began = time.perf_counter()
        for _ in range(number):
            copy()
        device.synchronise()
        return time.perf_counter() - began

    take(2)
    number = long_enough(lambda: take(1), TIMING_S, MOST_COPIES)
    return per_second(number * size_bytes, [take(number) for _ in range(REPETITIONS)])
