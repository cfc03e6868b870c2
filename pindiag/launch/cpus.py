"""How many CPUs this process may really use, and how busy they are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from pindiag.launch.cgroups import cpu_quota, whole_cpus


def usable_cpus(root: Path = Path("/")) -> tuple[int, str]:
    """CPUs that the target can use, and what limits them: "affinity", "cgroup quota" or "all".

    The smaller of the affinity mask and the CPU quota of any control group above this process. What
    `os.cpu_count()` says, and torch's warning about too many workers goes by, is the machine's number.
    """
    logical = os.cpu_count() or 1
    allowed = _affinity(logical)
    quota = cpu_quota(root)
    if quota is not None and whole_cpus(quota) < allowed:
        return whole_cpus(quota), "cgroup quota"
    return allowed, "affinity" if allowed < logical else "all"


def _affinity(logical: int) -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return logical


class CpuTimes:
    """How long the CPUs have been busy, by whomever.

    Attributes:
        cpus: how many of them the target may run on, by its affinity.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._stat = root / "proc/stat"
        self._tick = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        logical = os.cpu_count() or 1
        self.cpus = _affinity(logical)
        self._usable = [b"cpu"]
        """Lines that the usable CPUs have there."""
        if self.cpus < logical:
            self._usable = [b"cpu%d" % number for number in os.sched_getaffinity(0)]

    def read(self) -> dict[str, float | None]:
        """Cumulative seconds: `machine_cpu_s` of all, `usable_cpu_s` and `steal_s` of those that the target may use."""
        try:
            lines = [line.split() for line in self._stat.read_bytes().split(b"\n") if line.startswith(b"cpu")]
            times = {words[0]: [int(word) for word in words[1:9]] for words in lines}
            whole = times[b"cpu"]
        except (OSError, ValueError, LookupError):
            return self._ask_psutil()
        usable = [times[name] for name in self._usable if len(times.get(name, [])) >= 8]
        known = len(usable) == len(self._usable)
        return {
            "machine_cpu_s": self._busy_s(whole) if len(whole) >= 7 else _psutil_busy_s(),
            "usable_cpu_s": sum(map(self._busy_s, usable)) if known else None,
            "steal_s": sum(line[7] for line in usable) / self._tick if known else None,
        }

    def _busy_s(self, line: list[int]) -> float:
        """User, nice, system, irq and softirq time; guest time is part of user time already."""
        user, nice, system, _, _, irq, soft = line[:7]
        return (user + nice + system + irq + soft) / self._tick

    def _ask_psutil(self) -> dict[str, float | None]:
        busy_s = _psutil_busy_s()
        return {"machine_cpu_s": busy_s, "usable_cpu_s": busy_s if self._usable == [b"cpu"] else None, "steal_s": None}


def _psutil_busy_s() -> float | None:
    with contextlib.suppress(OSError, RuntimeError, psutil.Error):
        times = psutil.cpu_times()
        return times.user + times.system
    return None
