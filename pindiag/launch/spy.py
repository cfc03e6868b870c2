"""py-spy, where the user has installed it: it looks into a process from outside, native frames included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

DUMP_S = 5.0
"""How long the dumps of all processes together may take; one takes about a tenth of a second."""


def dumps(pids: Iterable[int], *, clock_s: Callable[[], float] = time.monotonic) -> dict[int, str]:
    """The stacks of these processes, as many as there is time for; those that cannot be looked into are left out.

    Args:
        pids: Python processes, the most important ones first.
        clock_s: now, in seconds.
    """
    program = shutil.which("py-spy") or shutil.which("py-spy", path=os.path.dirname(sys.executable))
    until_s = clock_s() + DUMP_S
    found = {}
    for pid in pids if program is not None else ():
        left_s = until_s - clock_s()
        text = _dump(str(program), pid, left_s) if left_s > 0 else None
        if text is not None:
            found[pid] = text
    return found


def _dump(program: str, pid: int, limit_s: float) -> str | None:
    """None: the kernel does not let it (as a rule only root and a process's own parents may), or it takes too long."""
    command = [program, "dump", "--native", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit_s, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 and done.stdout else None
