"""How fast the CPUs are clocked now. Linux with cpufreq only: virtual machines rarely have it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

CLOCK = "cpufreq/scaling_cur_freq"
"""In kHz."""

MOST_READS = 16
"""Files that are read for a sample, on average: each takes some ten microseconds."""


class CpuClocks:
    """Reads the clocks of the CPUs that the target may run on, by its affinity.

    Args:
        root: where /sys lies.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        files = [root / f"sys/devices/system/cpu/cpu{number}" / CLOCK for number in sorted(_allowed())]
        self._files = [path for path in files if path.exists()]
        self._every = -(-len(self._files) // MOST_READS)
        self._turn = 0

    def fastest_mhz(self) -> float | None:
        """Of the fastest CPU, since idle ones are clocked down; None where it is not told, or not this time."""
        self._turn += 1
        if not self._files or self._turn % self._every:
            return None
        return max(filter(None, map(_mhz, self._files)), default=None)


def _allowed() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except (AttributeError, OSError):
        return set(range(os.cpu_count() or 1))


def _mhz(path: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_bytes()) / 1e3
    return None
