"""What this machine's kernel or container does not show to the sampler, with the reason."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from pindiag.launch import cgroups

_HIDDEN = {
    errno.ENOENT: "does not exist: the kernel lacks it, or the container hides it",
    errno.EACCES: "may not be read by this user",
    errno.EPERM: "may not be read by this user",
    errno.EOPNOTSUPP: "is switched off in the kernel",
}


def not_offered(root: Path = Path("/")) -> dict[str, str]:
    """`Machine.not_sampled`."""
    if not os.path.exists(root / "proc/self/stat"):
        return dict.fromkeys(_OF_PROC, "there is no /proc on this platform")
    files = {
        "psi_cpu": root / "proc/pressure/cpu",
        "psi_io": root / "proc/pressure/io",
        "psi_memory": root / "proc/pressure/memory",
        "read_bytes": root / "proc/self/io",
        "run_delay": root / "proc/self/schedstat",
        "storage": root / "proc/self/mountinfo",
    }
    reasons = {field: reason for field, path in files.items() if (reason := _unreadable(path, root)) is not None}
    throttled = _not_throttled(root)
    return reasons if throttled is None else {**reasons, "throttled": throttled}


_OF_PROC = ("psi_cpu", "psi_io", "psi_memory", "faults", "read_bytes", "run_delay", "storage", "throttled")


def _unreadable(path: Path, root: Path) -> str | None:
    try:
        path.read_bytes()
    except OSError as error:
        what = _HIDDEN.get(error.errno or 0, f"cannot be read ({error.strerror})")
        return f"/{path.relative_to(root)} {what}"
    return None


def _not_throttled(root: Path) -> str | None:
    folders = cgroups.folders("cpu", root)
    if folders and cgroups.throttled_s(folders[0]) is not None:
        return None
    return "no control group of this process accounts throttled time"
