"""A profiler window's trace: what the GPU did in a mean step.

Names are Kineto's: `Memcpy HtoD (Pageable -> Device)` and `(Pinned -> Device)` with CUDA; ROCm prints
`(Host -> Device)`, so there pinned and pageable cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pindiag.model import GpuStep

Spans = npt.NDArray[np.float64]
"""Start and end of each span, microseconds; shape (n, 2)."""

NEXT_BATCH = "enumerate(DataLoader)"
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


class Event(Protocol):
    """A complete event of a trace; times in microseconds."""

    @property
    def cat(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ts(self) -> float: ...  # noqa: D102
    @property
    def dur(self) -> float: ...  # noqa: D102
    @property
    def tid(self) -> int | str: ...  # noqa: D102
    @property
    def args(self) -> Mapping[str, Any]: ...  # noqa: D102


def window(events: Sequence[Event]) -> tuple[float, float, int] | None:
    """Start and end of the profiled steps in microseconds, and their number; None where no step is marked.

    Steps are marked by `ProfilerStep#N` where the profiler had a schedule, otherwise by the calls for a next batch.
    The end includes what the GPU still had to do.
    """
    marks = [event for event in events if event.cat == "user_annotation" and event.name.startswith("ProfilerStep#")]
    marks = marks or [event for event in events if event.name.startswith(NEXT_BATCH)]
    if not marks:
        return None
    by_schedule = marks[0].name.startswith("ProfilerStep#")
    ends = marks if by_schedule else [event for event in events if event.cat in ("cpu_op", "user_annotation")]
    device = [event for event in events if event.cat in ON_DEVICE]
    last = max(event.ts + event.dur for event in [*ends, *device])
    return min(event.ts for event in marks), last, len({event.name for event in marks} if by_schedule else marks)


def gpu_step(events: Sequence[Event]) -> GpuStep | str:
    """The GPU in a mean step of the window, or the reason why the trace does not tell."""
    bounds = window(events)
    if bounds is None:
        return "the trace marks no step"
    start, end, steps = bounds
    events = [event for event in events if event.ts >= start]
    kernels = union(spans(event for event in events if event.cat == "kernel"))
    if not len(kernels):
        return "the trace holds no kernel"
    wall = end - start
    busy = union(spans(event for event in events if event.cat in ON_DEVICE))
    copies = [event for event in events if event.cat == "gpu_memcpy" and "HtoD" in event.name]
    copy_us = sum(event.dur for event in copies)
    copied = _bytes(copies)
    return GpuStep(
        kernel_ms=length(kernels) / steps / 1e3,
        copy_ms=copy_us / steps / 1e3,
        busy_share=length(kernels) / wall,
        overlap_share=length(intersection(union(spans(copies)), kernels)) / copy_us if copy_us else None,
        pageable_bytes=_known(copies, "Pageable", steps),
        pinned_bytes=_known(copies, "Pinned", steps),
        copy_gb_per_s=copied / copy_us / 1e3 if copy_us else None,
        synchronise_ms=sum(event.dur for event in events if _synchronises(event)) / steps / 1e3,
        idle_share=max(1 - length(busy) / wall, 0.0),
        launches=sum(1 for event in events if _launches(event)) / steps,
    )


def _bytes(copies: Iterable[Event]) -> int:
    return sum(int(event.args.get("bytes", 0)) for event in copies)


def _known(copies: Sequence[Event], kind: str, steps: int) -> int | None:
    """Bytes a step of one kind of host memory; None where the trace does not name the kinds."""
    if not all("(Pageable" in event.name or "(Pinned" in event.name for event in copies):
        return None
    return round(_bytes(event for event in copies if f"({kind}" in event.name) / steps)


def _synchronises(event: Event) -> bool:
    return event.cat in ("cuda_runtime", "cuda_driver") and event.name.endswith("Synchronize")


def _launches(event: Event) -> bool:
    return event.cat in ("cuda_runtime", "cuda_driver") and "LaunchKernel" in event.name


def spans(events: Iterable[Event]) -> Spans:
    """Start and end of events."""
    return np.array([(event.ts, event.ts + event.dur) for event in events], dtype=float).reshape(-1, 2)


def union(found: Spans, gap: float = 0.0) -> Spans:
    """Spans without overlaps; those closer than `gap` become one."""
    if not len(found):
        return found
    found = found[np.argsort(found[:, 0])]
    ends = np.maximum.accumulate(found[:, 1])
    first = np.concatenate(([True], found[1:, 0] > ends[:-1] + gap))
    last = np.concatenate((first[1:], [True]))
    return np.column_stack((found[first, 0], ends[last]))


def length(found: Spans) -> float:
    """Summed length of spans that do not overlap."""
    return float((found[:, 1] - found[:, 0]).sum())


def intersection(one: Spans, other: Spans) -> Spans:
    """Where both unions have a span."""
    pairs = [
        (max(start, left), min(end, right))
        for start, end in one
        for left, right in other[(other[:, 1] > start) & (other[:, 0] < end)]
    ]
    return np.array(pairs, dtype=float).reshape(-1, 2)
