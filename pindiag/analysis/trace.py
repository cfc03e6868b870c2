"""A profiler window's trace: its events, its bounds, its clock. Names are Kineto's."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

NEXT_BATCH = "enumerate(DataLoader)"
ANCHOR = "pindiag monotonic_ns="
"""Begins the name of a span that the probe opened at that moment."""
STEP = "ProfilerStep#"
RUNTIME = ("cuda_runtime", "cuda_driver")
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
    marks = [event for event in events if event.cat == "user_annotation" and event.name.startswith(STEP)]
    marks = marks or [event for event in events if event.name.startswith(NEXT_BATCH)]
    if not marks:
        return None
    by_schedule = marks[0].name.startswith(STEP)
    ends = marks if by_schedule else [event for event in events if event.cat in ("cpu_op", "user_annotation")]
    device = [event for event in events if event.cat in ON_DEVICE]
    last = max(event.ts + event.dur for event in [*ends, *device])
    return min(event.ts for event in marks), last, len({event.name for event in marks} if by_schedule else marks)


def is_runtime(event: Event) -> bool:
    """Whether it is a call into the accelerator's runtime or driver."""
    return event.cat in RUNTIME


def synchronises(event: Event) -> bool:
    """Whether it is a call that waits for the device."""
    return is_runtime(event) and event.name.endswith("Synchronize")


def launches(event: Event) -> bool:
    """Whether it is a call that gives the device a kernel, a graph of them, or memory to fill."""
    return is_runtime(event) and _gives_work(event.name)


@functools.cache
def _gives_work(name: str) -> bool:
    return any(kind in name for kind in ("LaunchKernel", "GraphLaunch", "emset"))


def monotonic_us(events: Sequence[Event]) -> float | None:
    """What to add to a trace's times for those of the monotonic clock, microseconds; None without an anchor.

    An anchor's name is made before its span begins: the shortest of these delays, some microseconds, is the error.
    """
    anchors = [event for event in events if event.name.startswith(ANCHOR)]
    offsets = [int(event.name.removeprefix(ANCHOR)) / 1e3 - event.ts for event in anchors]
    return max(offsets, default=None)
