"""The target's processes as the kernel counts them.

/proc is read directly: psutil needs several times as long for the same numbers, and a sample is taken five times a
second while the target is being measured. Where there is no /proc, psutil answers what it can.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import psutil

from pindiag.model import Process

Role = Literal["main", "worker", "other"]

WORKER_NAME = "pt_data_worker"
PIN_THREAD_NAME = "pt_data_pin"
NAME_READS = 3
"""A thread gets its name soon after it was born, so its name is read again at the first samples. A process gets it
after its imports, which under spawn takes seconds: it is read at every sample."""

_SWITCHES = (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")

Told = TypeVar("Told")

NO_SHM = "the kernel does not tell shared memory apart"


class Pss(NamedTuple):
    """Proportional set sizes of a tree, in bytes."""

    total: int
    workers: int
    shm: int | None
    """None where the kernel does not tell it apart."""


class Tree:
    """A target's main process and everything descended from it.

    Args:
        main: id of the main process.
        proc: where the process table is mounted.
    """

    def __init__(self, main: int, proc: Path = Path("/proc")) -> None:
        self.main = main
        self.started: dict[int, int] = {}
        """Every process ever seen in the tree, with the clock tick at which it started."""
        self._proc = str(proc)
        self._has_proc = os.path.exists(proc / str(main) / "stat")
        self._pids: list[int] = [main]
        self._names: dict[int, tuple[str, int]] = {}
        self._tick = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def refresh(self) -> None:
        """Look for processes that were born since."""
        found, waiting = [], [self.main]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            waiting += [child for child in self._children(pid) if child not in found]
        self._pids = found

    def read(self) -> list[Process]:
        """Every process of the tree that is alive; one that vanishes meanwhile is left out."""
        read = self._read if self._has_proc else self._ask_psutil
        return [process for pid in self._pids if (process := read(pid)) is not None]

    def open_files(self) -> tuple[int | None, int | None]:
        """Descriptors that the main process holds, and how many it may; None each where this user may not know."""
        if not self._has_proc:
            process = _asked(self.main)
            return (None if process is None else _allowed(process.num_fds)), None
        try:
            folder = f"{self._proc}/{self.main}/fd"
            held = os.stat(folder).st_size or len(os.listdir(folder))  # older kernels give no size
        except OSError:
            return None, None
        return held, self._limit()

    def _limit(self) -> int | None:
        try:
            lines = self._bytes(f"{self.main}/limits").splitlines()
        except OSError:
            return None
        row = next((line.split() for line in lines if line.startswith(b"Max open files")), [])
        return _number(row, 3)

    def makers(self) -> list[int]:
        """Processes that make batches: the workers, or the main process where there are none."""
        return [pid for pid in self._pids if self._role(pid) == "worker"] or [self.main]

    def pss(self) -> Pss | str:
        """Proportional set sizes now, or why they cannot be read. Costs milliseconds a process."""
        self.refresh()
        total = workers = 0
        shm: int | None = 0
        for pid in self._pids:
            try:
                sizes = self._rollup(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except (OSError, ValueError) as error:
                return f"/proc/PID/smaps_rollup cannot be read: {error}"
            shared = sizes.get(b"Pss_Shmem")
            shm = None if shm is None or shared is None else shm + shared
            total += sizes[b"Pss"]
            workers += sizes[b"Pss"] if self._role(pid) == "worker" else 0
        return Pss(total, workers, shm) if total else "the kernel does not tell proportional set sizes"

    def _rollup(self, pid: int) -> dict[bytes, int]:
        sizes = _numbers(self._bytes(f"{pid}/smaps_rollup").splitlines()[1:])
        if b"Pss" not in sizes:
            raise ValueError("it has no line Pss")
        return {name: 1024 * size for name, size in sizes.items()}

    def _bytes(self, name: str) -> bytes:
        with open(f"{self._proc}/{name}", "rb", buffering=0) as file:
            return file.read()

    def _children(self, pid: int) -> list[int]:
        if not self._has_proc:
            return self._psutil_children(pid)
        found: list[int] = []
        try:
            tasks = os.listdir(f"{self._proc}/{pid}/task")
        except OSError:
            return []
        for task in tasks:
            try:
                found += map(int, self._bytes(f"{pid}/task/{task}/children").split())
            except FileNotFoundError:
                if os.path.exists(f"{self._proc}/{pid}/task/{task}"):
                    return self._psutil_children(pid)  # a kernel without CONFIG_PROC_CHILDREN
            except (OSError, ValueError):
                continue
        return found

    def _psutil_children(self, pid: int) -> list[int]:
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []

    def _role(self, pid: int) -> Role:
        if pid == self.main:
            return "main"
        return "worker" if self._name(pid, pid) == WORKER_NAME else "other"

    def _name(self, pid: int, task: int) -> str:
        name, reads = self._names.get(task, ("", 0))
        if reads < NAME_READS or task == pid:
            try:
                name = self._bytes(f"{pid}/task/{task}/comm").decode(errors="replace").strip()
            except OSError:
                return name
            self._names[task] = name, reads + 1
        return name

    def _read(self, pid: int) -> Process | None:
        try:
            stat = self._bytes(f"{pid}/stat").rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError:
            stat = []
        if stat[:1] in ([b"Z"], [b"X"]):
            return None
        tasks = self._tasks(pid)
        started = _number(stat, 19)
        if started is not None:
            self.started[pid] = started
        pages = _number(stat, 21)
        switches = self._told(pid, "status", last=4)
        delay_s, pin_s = self._scheduling(pid, tasks)
        given = self._told(pid, "io")
        return Process(
            pid=pid,
            role=self._role(pid),
            cpu_s=self._seconds(_number(stat, 11), _number(stat, 12)),
            rss_bytes=None if pages is None else pages * self._page,
            threads=len(tasks) or None,
            voluntary_switches=switches.get(_SWITCHES[0]),
            involuntary_switches=switches.get(_SWITCHES[1]),
            minor_faults=_number(stat, 7),
            major_faults=_number(stat, 9),
            run_delay_s=delay_s,
            read_bytes=given.get(b"read_bytes"),
            asked_bytes=given.get(b"rchar"),
            block_io_delay_s=self._seconds(_number(stat, 39)),
            state=stat[0].decode(errors="replace") if stat else None,
            pin_thread_cpu_s=pin_s,
            reaped_cpu_s=self._seconds(_number(stat, 13), _number(stat, 14)),
            allowed_cpus=self._allowed_cpus(pid),
        )

    def _tasks(self, pid: int) -> list[int]:
        try:
            return [int(task) for task in os.listdir(f"{self._proc}/{pid}/task") if task.isdigit()]
        except OSError:
            return []

    def _seconds(self, *ticks: int | None) -> float | None:
        known = [each for each in ticks if each is not None]
        return sum(known) / self._tick if len(known) == len(ticks) else None

    def _allowed_cpus(self, pid: int) -> str | None:
        """The CPUs that the main thread of a process of this machine is bound to, as a hexadecimal mask."""
        if self._proc != "/proc" or not hasattr(os, "sched_getaffinity"):
            return None
        try:
            return f"{sum(1 << cpu for cpu in os.sched_getaffinity(pid)):x}"
        except OSError:
            return None

    def _told(self, pid: int, name: str, last: int = 0) -> dict[bytes, int]:
        """The numbers in the last lines of a file, or in all of them; {} where the kernel does not tell."""
        try:
            return _numbers(self._bytes(f"{pid}/{name}").splitlines()[-last:])
        except OSError:
            return {}

    def _scheduling(self, pid: int, tasks: list[int]) -> tuple[float | None, float | None]:
        """Run-queue delay of all threads, and CPU time of the pin thread, in seconds."""
        delay_ns, seen = 0, False
        pin_ns: int | None = None
        for task in tasks:
            try:
                on_cpu_ns, waiting_ns, _ = map(int, self._bytes(f"{pid}/task/{task}/schedstat").split())
            except (OSError, ValueError):
                continue
            seen = True
            delay_ns += waiting_ns
            if pid == self.main and self._name(pid, task) == PIN_THREAD_NAME:
                pin_ns = (pin_ns or 0) + on_cpu_ns
        return (delay_ns / 1e9 if seen else None), (None if pin_ns is None else pin_ns / 1e9)

    def _ask_psutil(self, pid: int) -> Process | None:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                times, switches = _allowed(process.cpu_times), _allowed(process.num_ctx_switches)
                memory = _allowed(process.memory_info)
                return Process(
                    pid=pid,
                    role="main" if pid == self.main else "worker" if _allowed(process.ppid) == self.main else "other",
                    cpu_s=times and times.user + times.system,
                    rss_bytes=memory and memory.rss,
                    threads=_allowed(process.num_threads),
                    voluntary_switches=switches and switches.voluntary,
                    involuntary_switches=switches and switches.involuntary,
                    minor_faults=None,
                    major_faults=None,
                    run_delay_s=None,
                    read_bytes=None,
                    state=_allowed(process.status),
                )
        except psutil.NoSuchProcess:
            return None


def _asked(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _allowed(ask: Callable[[], Told]) -> Told | None:
    """What psutil tells of a process; None where this user may not know it, or the platform does not tell."""
    try:
        return ask()
    except (psutil.AccessDenied, OSError, NotImplementedError):
        return None


def _numbers(lines: Iterable[bytes]) -> dict[bytes, int]:
    """Lines of `name: number`, whatever follows; any other line is left out."""
    pairs = (line.partition(b":") for line in lines)
    return {name: int(words[0]) for name, _, text in pairs if (words := text.split()) and words[0].isdigit()}


def _number(words: list[bytes], place: int) -> int | None:
    return int(words[place]) if place < len(words) and words[place].isdigit() else None
