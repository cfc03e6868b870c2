"""What the GPU did in a mean step of a profiler window, and what kept it idle.

Copies are `Memcpy HtoD (Pageable -> Device)` and `(Pinned -> Device)` with CUDA; ROCm prints `(Host -> Device)`, so
there pinned and pageable cannot be told apart.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pindiag.analysis.intervals import Spans, intersection, length, outside, shared, spans, union
from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.trace import ON_DEVICE, Event, is_runtime, synchronises, window
from pindiag.model import GpuIdle, GpuStep, KernelTime

LONGEST_KERNELS = 5
LONGEST_NAME = 60
CURE = (
    "Run as root, in a container with --cap-add SYS_ADMIN, or load the nvidia module with "
    "NVreg_RestrictProfilingToAdminUsers=0; end Nsight and DCGM, which may hold it"
)
REFUSED = (
    "the trace shows nothing of the device: the steps do not use it, or, probably, the driver refuses CUPTI to this "
    f"user. {CURE}"
)
_CLUTTER = re.compile(r"^void |at::native::|\(anonymous namespace\)::")


def gpu_step(
    events: Sequence[Event], accelerator: str | None = "cuda", main: MainThread | None = None
) -> GpuStep | str:
    """The GPU in a mean step of the window, or the reason why the trace does not tell.

    Args:
        events: of the trace.
        accelerator: as torch calls its type.
        main: the main thread in these events, where somebody has found it already.
    """
    bounds = window(events)
    if bounds is None:
        return "the trace marks no step"
    start, end, steps = bounds
    of_device = [event for event in events if event.ts >= start and _of_device(event)]
    work = [event for event in of_device if event.cat in ON_DEVICE]
    calls = [event for event in of_device if is_runtime(event)]
    ran = [event for event in work if event.cat == "kernel"]
    if not ran:
        unseen = REFUSED if accelerator == "cuda" else f"the trace shows nothing of a device of type {accelerator}"
        return "the trace holds no kernel" if of_device else unseen
    wall = end - start
    kernels = union(spans(ran))
    idle = outside(union(spans(work)), start, end)
    copies = [event for event in work if event.cat == "gpu_memcpy" and "HtoD" in event.name]
    copy_us = sum(event.dur for event in copies)
    main = main or MainThread(events, start, end)
    return GpuStep(
        kernel_ms=length(kernels) / steps / 1e3,
        copy_ms=copy_us / steps / 1e3,
        busy_share=length(kernels) / wall,
        overlap_share=length(intersection(union(spans(copies)), kernels)) / copy_us if copy_us else None,
        pageable_bytes=_known(copies, "Pageable", steps),
        pinned_bytes=_known(copies, "Pinned", steps),
        copy_gb_per_s=_bytes(copies) / copy_us / 1e3 if copy_us else None,
        synchronise_ms=sum(event.dur for event in calls if synchronises(event)) / steps / 1e3,
        idle_share=length(idle) / wall,
        launches=sum(1 for event in calls if "LaunchKernel" in event.name) / steps,
        launch_share=length(main.feeding["launch"]) / wall if calls else None,
        idle=_idle(idle, main, wall) if calls else None,
        longest_kernels=_longest(ran, steps),
    )


def with_cure(reason: str) -> str:
    """Why a profiler window has no trace, and what to do where the driver refused it."""
    return f"{reason}. {CURE}" if "CUPTI" in reason else reason


def _of_device(event: Event) -> bool:
    return event.cat in ON_DEVICE or is_runtime(event)


def _idle(idle: Spans, main: MainThread, wall: float) -> GpuIdle:
    parts = {name: shared(idle, found) / wall for name, found in main.feeding.items()}
    parts["operators"] += parts.pop("backward")
    return GpuIdle(**parts)


def _longest(kernels: Sequence[Event], steps: int) -> list[KernelTime]:
    by_name: dict[str, list[float]] = defaultdict(list)
    for event in kernels:
        by_name[_short(event.name)].append(event.dur)
    total = sum(event.dur for event in kernels)
    found = [
        KernelTime(name=name, ms=sum(times) / steps / 1e3, share=sum(times) / total, calls=len(times) / steps)
        for name, times in by_name.items()
        if total
    ]
    return sorted(found, key=lambda kernel: kernel.ms, reverse=True)[:LONGEST_KERNELS]


@functools.cache
def _short(kernel: str) -> str:
    """Without what templates and parameters add; those of cutlass bear their name inside."""
    plain = _CLUTTER.sub("", kernel)
    return (plain if plain.startswith("cutlass") else re.split(r"[<(]", plain)[0])[:LONGEST_NAME]


def _bytes(copies: Iterable[Event]) -> int:
    return sum(int(event.args.get("bytes", 0)) for event in copies)


def _known(copies: Sequence[Event], kind: str, steps: int) -> int | None:
    """Bytes a step of one kind of host memory; None where the trace does not name the kinds."""
    if not all("(Pageable" in event.name or "(Pinned" in event.name for event in copies):
        return None
    return round(_bytes(event for event in copies if f"({kind}" in event.name) / steps)
