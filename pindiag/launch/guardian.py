"""Kills what a dead parent would leave behind. Runs as a process of its own and uses the standard library only.

Its input is a pipe whose other end only the parent holds: a line with the mark of the run's launches, then `+PGID` and
`-PGID` lines while the parent lives, and its end when the parent is gone, however it died. The parent uses the same
functions for its own launches.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

KILL_S = 4.0
"""How long killing is repeated: a process that forks while it dies may leave another one."""
PAUSE_S = 0.02
TIDIERS = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
SHARED_MEMORY = "/dev/shm"
_SHARED = re.compile(r"torch_(\d+)_")
TIDY_S = 2.5
"""torch's manager of shared files removes what killed workers held two seconds after the last of them is gone."""


class Entry(NamedTuple):
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    """Clock ticks since boot: tells a process from a later one with its number."""
    alive: bool


def entry(pid: int) -> Entry | None:
    """A process, read from /proc; None where it is gone, or cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, *fields = stat.read().rpartition(b")")[2].split()
        parent, group, session = map(int, fields[:3])
        return Entry(pid, parent, group, session, int(fields[18]), state not in (b"Z", b"X"))
    except (OSError, ValueError, IndexError):
        return None


def table() -> list[Entry]:
    """All processes; [] where there is no /proc."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [found for pid in pids if (found := entry(pid)) is not None]


def belongs(
    processes: Iterable[Entry], groups: Collection[int], marked: Collection[int], known: Mapping[int, int]
) -> list[Entry]:
    """Processes of launches: by group or session, by mark, by having been seen before, and all their descendants.

    Args:
        processes: the process table.
        groups: process groups of launches, each equal to the session that its leader opened.
        marked: processes whose command line is a launch's; forked workers keep it.
        known: processes seen in the tree before, with the time that each started.
    """
    processes = list(processes)
    found = {
        process.pid
        for process in processes
        if process.group in groups
        or process.session in groups
        or process.pid in marked
        or known.get(process.pid) == process.started
    }
    grown = True
    while grown:
        more = {process.pid for process in processes if process.parent in found and process.pid not in found}
        found |= more
        grown = bool(more)
    return [process for process in processes if process.pid in found]


def marked(processes: Iterable[Entry], mark: str) -> set[int]:
    """Processes of which an argument begins with the mark."""
    sign = b"\0" + os.fsencode(mark)
    return {process.pid for process in processes if sign in _command(process.pid)}


def kill(groups: Collection[int], mark: str = "", known: Mapping[int, int] | None = None) -> bool:
    """Kill launches with all their descendants, until none is left; false where some outlived it.

    Helpers that tidy up shared memory when their users are gone get a moment to do so; what was left there all the
    same, by a process that was killed while it made it, is removed.
    """
    began = time.monotonic()
    ever = dict(known or {})
    while True:
        processes = table()
        if not processes:
            return _kill_groups(groups)
        found = belongs(processes, groups, marked(processes, mark) if mark else (), known or {})
        left = [process.pid for process in found if process.alive and process.pid != os.getpid()]
        ever.update((process.pid, process.started) for process in found)
        waited_s = time.monotonic() - began
        for pid in left:
            if waited_s > TIDY_S or not any(tidier in _command(pid) for tidier in TIDIERS):
                _kill(os.kill, pid)
        if not left:
            remove_shared(ever)
        if not left or waited_s > KILL_S:
            return not left
        time.sleep(PAUSE_S)


def remove_shared(processes: Mapping[int, int], folder: str = SHARED_MEMORY) -> None:
    """Remove torch's files in shared memory that processes made, all of which are gone.

    Args:
        processes: their numbers, with the time that each started; an older file is of an earlier one of that number.
        folder: where shared memory is mounted.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            made = _SHARED.match(name)
            started = None if made is None else processes.get(int(made[1]))
            path = os.path.join(folder, name)
            if started is not None and os.stat(path).st_mtime >= _boot_s() + started / os.sysconf("SC_CLK_TCK") - 1:
                os.unlink(path)


def _boot_s() -> float:
    with open("/proc/stat", "rb") as stat:
        return next(float(line.split()[1]) for line in stat if line.startswith(b"btime"))


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            return words.read()
    except OSError:
        return b""


def _kill_groups(groups: Collection[int]) -> bool:
    for group in groups:
        _kill(os.killpg, group)
    return True


def _kill(how: Callable[[int, int], None], target: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        how(target, signal.SIGKILL)


def main() -> None:
    """Follow the parent's lines; when they end, kill what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mark = sys.stdin.readline().rstrip("\n")
    groups: set[int] = set()
    for line in sys.stdin:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    kill(groups, mark)


if __name__ == "__main__":
    main()
