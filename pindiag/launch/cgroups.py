"""Control groups, version 2 and 1: the limits that containers, Slurm and systemd put on a process."""

from __future__ import annotations

import math
from pathlib import Path

_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest multiple of a page below 2**63."""

_CHARGE_BYTES = 1 << 20
"""The kernel charges memory to a group ahead, by 64 pages a CPU: a full group may be seen so far below its limit."""


def folders(controller: str, root: Path = Path("/")) -> list[Path]:
    """Folders of a controller that hold for this process, its own first, then every parent.

    Inside a container /proc/self/cgroup may name a path of the host: what is not visible is left out, and the walk
    ends at the mount, which then is the container's own group.
    """
    mounts = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not path:
            continue
        if controller in names.split(","):
            mount = next((mount for name in (names, controller) if (mount := mounts / name).is_dir()), None)
        elif not names and controller in _text(mounts / "cgroup.controllers").split():
            mount = mounts
        else:
            continue
        if mount is not None:
            return _upwards(mount, path)
    return []


def _upwards(mount: Path, path: str) -> list[Path]:
    own = mount / path.strip("/")
    chain = [own, *own.parents]
    return [folder for folder in chain[: chain.index(mount) + 1] if folder.is_dir()]


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the quota allows, the tightest of all groups above this process; None: no quota."""
    quotas = [quota for folder in folders("cpu", root) if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split() or [
        _text(folder / "cpu.cfs_quota_us").strip(),
        _text(folder / "cpu.cfs_period_us").strip(),
    ]
    try:
        quota, period = int(words[0]), int(words[1])
    except (ValueError, IndexError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """The tightest memory limit above this process; None: no limit."""
    return min(
        (limit for folder in folders("memory", root) if (limit := own_memory_limit_bytes(folder)) is not None),
        default=None,
    )


def memory_free_bytes(root: Path = Path("/")) -> int | None:
    """What the limits above this process leave; page cache that the kernel can drop counts as free. None: no limit."""
    free = [
        limit - max(used - _dropped(folder), 0)
        for folder in folders("memory", root)
        if (limit := own_memory_limit_bytes(folder)) is not None and (used := memory_used_bytes(folder)) is not None
    ]
    return min(free, default=None)


def memory_used_bytes(folder: Path) -> int | None:
    """What a group uses now, page cache included."""
    return number(folder / "memory.current", number(folder / "memory.usage_in_bytes"))


def own_memory_limit_bytes(folder: Path) -> int | None:
    """The limit of one group alone; None: it has none."""
    limit = number(folder / "memory.max", number(folder / "memory.limit_in_bytes"))
    return limit if limit is not None and limit < _UNLIMITED_BYTES else None


def _dropped(folder: Path) -> int:
    stat = counters(folder / "memory.stat")
    return stat.get("total_inactive_file", stat.get("inactive_file", 0))


def throttled_s(folder: Path) -> float | None:
    """Seconds that a group's quota has held its tasks back since it exists."""
    stat = counters(folder / "cpu.stat")
    if "throttled_usec" in stat:
        return stat["throttled_usec"] / 1e6
    return stat["throttled_time"] / 1e9 if "throttled_time" in stat else None


def out_of_memory_kills(root: Path = Path("/")) -> int | None:
    """Processes that the kernel has killed for want of memory, in the groups above this process or else anywhere."""
    for folder in folders("memory", root):
        found = counters(folder / "memory.events") or counters(folder / "memory.oom_control")
        if "oom_kill" in found:
            return found["oom_kill"]
    return counters(root / "proc/vmstat").get("oom_kill")


def limit_reached(folder: Path) -> bool:
    """Whether a group's memory ever came to its limit: an allocation found nothing, or (version 1) it was once full.

    Version 1 counts failures too, but not those that the limit of memory and swap together brings about.
    """
    limit, most = own_memory_limit_bytes(folder), number(folder / "memory.max_usage_in_bytes")
    if limit is None:
        return False
    return counters(folder / "memory.events").get("oom", 0) > 0 or (most is not None and most > limit - _CHARGE_BYTES)


def whole_cpus(quota: float) -> int:
    """Quotas are rarely whole: 1.5 CPUs keep two processes busy for most of the time."""
    return max(1, math.ceil(quota))


def counters(path: Path) -> dict[str, int]:
    """A file of `name number` lines; {} where it cannot be read."""
    found = {}
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found


def number(path: Path, otherwise: int | None = None) -> int | None:
    """A file that holds one number; `otherwise` where it is missing or says "max"."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else otherwise


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
