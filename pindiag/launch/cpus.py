"""How many CPUs this process may really use."""

from __future__ import annotations

import os
from pathlib import Path

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
