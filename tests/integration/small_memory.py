"""Memory cgroups of a test's own, where they may be made."""

from __future__ import annotations

import uuid
from pathlib import Path

from pindiag.launch import cgroups

_LIMITS = ("memory.max", "memory.limit_in_bytes")
_SWAP = {"memory.swap.max": 0, "memory.memsw.limit_in_bytes": None}
"""Without swap a process would be killed late, or never; version 1 counts memory and swap together."""


def group(limit_bytes: int) -> Path | None:
    """A new memory cgroup with a limit; None: this user may make none here. Its maker removes it."""
    above = next(iter(cgroups.folders("memory")), None)
    if above is None:
        return None
    made = above / f"pindiag-test-{uuid.uuid4().hex}"
    try:
        made.mkdir()
    except OSError:
        return None
    if _limited(made, limit_bytes):
        return made
    made.rmdir()
    return None


def inside(group: Path) -> list[str]:
    """Words before a command that put it into a group, with all its processes."""
    return ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh"]


def _limited(made: Path, limit_bytes: int) -> bool:
    """Whether the group could be given a limit: its controller may not have been handed down to it."""
    limit = next((made / name for name in _LIMITS if (made / name).exists()), None)
    if limit is None:
        return False
    try:
        limit.write_text(str(limit_bytes))
        for name, swap_bytes in _SWAP.items():
            if (made / name).exists():
                (made / name).write_text(str(limit_bytes if swap_bytes is None else swap_bytes))
    except OSError:
        return False
    return True
