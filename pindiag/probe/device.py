"""The accelerator and the threads, looked at without waking or changing either."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple

import torch

# Bound before the target runs: whatever it replaces, the probe's clock waits for the real device.
_cuda_synchronize = torch.cuda.synchronize
_is_available = torch.accelerator.is_available
_accelerator_synchronize = torch.accelerator.synchronize
_BUILT_FOR_CUDA = bool(torch.version.cuda or torch.version.hip)


def cuda_in_use() -> bool:
    """Whether the target has begun to use CUDA; asking does not begin it."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def synchronise() -> None:
    """Wait for the device, if the target uses one."""
    if cuda_in_use():
        _cuda_synchronize()
    elif not _BUILT_FOR_CUDA and _is_available():
        _accelerator_synchronize()


def empty_host_cache() -> bool:
    """Give cached pinned memory back, if the version can; what follows pins anew, as a fresh process would."""
    empty = getattr(torch.accelerator, "empty_host_cache", None) or getattr(torch._C, "_host_emptyCache", None)
    if empty is None or not cuda_in_use():
        return False
    empty()
    return True


def accelerator() -> str | None:
    """Device type that torch offers ("cuda", "mps", ...), None where there is none."""
    if not torch.accelerator.is_available():
        return None
    device = torch.accelerator.current_accelerator()
    return device.type if device is not None else None


def device_name() -> str | None:
    """Name of the current CUDA device; None where CUDA is not in use."""
    return torch.cuda.get_device_name() if cuda_in_use() else None


def intraop_threads() -> int | None:
    """Threads that a parallel operation of this thread would use, asked of the OpenMP library itself.

    torch.get_num_threads() would fix the number in the calling thread and so mend the fault that is looked for.
    None where no OpenMP library is found among the loaded ones.
    """
    path = _openmp_library()
    if path is None:
        return None
    try:
        return int(ctypes.CDLL(path).omp_get_max_threads())
    except (OSError, AttributeError):
        return None


def _openmp_library() -> str | None:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "omp" in line}
    except OSError:
        return None
    names = ("libgomp", "libomp", "libiomp5")
    loaded = sorted(path for path in paths if os.path.basename(path).startswith(names))
    own = os.path.dirname(os.path.abspath(torch.__file__))
    return next((path for path in loaded if path.startswith(own)), loaded[0] if loaded else None)


class HostStats(NamedTuple):
    """Pinned-memory allocator since the process began; the two levels are None where the version lacks them."""

    allocations: int
    alloc_us: float
    active_bytes: int | None
    reserved_bytes: int | None


def host_stats() -> HostStats | None:
    """torch.cuda.host_memory_stats() (2.7 and later, once CUDA is in use); None where it cannot be read."""
    if not cuda_in_use() or not hasattr(torch.cuda, "host_memory_stats"):
        return None
    stats: dict[str, Any] = torch.cuda.host_memory_stats()
    has_active = "active_bytes.current" in stats
    return HostStats(
        allocations=int(stats.get("num_host_alloc", 0)),
        alloc_us=float(stats.get("host_alloc_time.total", 0)),
        active_bytes=stats.get("active_bytes.current" if has_active else "allocated_bytes.current"),
        reserved_bytes=stats.get("allocated_bytes.current" if has_active else "reserved_bytes.current"),
    )


def why_no_host_stats() -> str:
    """The reason why `host_stats` gave None."""
    if not hasattr(torch.cuda, "host_memory_stats"):
        return f"torch {torch.__version__} has no host_memory_stats (2.7 and later)"
    return "CUDA is not in use"
