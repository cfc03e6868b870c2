"""The target's processes as the kernel counts them.

/proc is read directly: psutil needs several times as long for the same numbers, and a sample is taken five times a
second while the target is being measured. Where there is no /proc, psutil answers what it can.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from pindiag.model import Process

Role = Literal["main", "worker", "other"]

WORKER_NAME = "pt_data_worker"
PIN_THREAD_NAME = "pt_data_pin"
NAME_READS = 3
"""A thread gets its name soon after it was born, so its name is read again at the first samples. A process gets it
after its imports, which under spawn takes seconds: it is read at every sample."""

_SWITCHES = (b"voluntary_ctxt_switches:", b"nonvoluntary_ctxt_switches:")


class Pss(NamedTuple):
    """Proportional set sizes of a tree, in bytes."""

    total: int
    workers: int
    shm: int


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
        self._has_proc = (proc / str(main) / "stat").exists()
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

    def makers(self) -> list[int]:
        """Processes that make batches: the workers, or the main process where there are none."""
        return [pid for pid in self._pids if self._role(pid) == "worker"] or [self.main]

    def pss(self) -> Pss | str:
        """Proportional set sizes now, or why they cannot be read. Costs milliseconds a process."""
        self.refresh()
        total = workers = shm = 0
        for pid in self._pids:
            try:
                sizes = self._rollup(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except (OSError, ValueError) as error:
                return f"/proc/PID/smaps_rollup cannot be read: {error}"
            total += sizes.get(b"Pss", 0)
            shm += sizes.get(b"Pss_Shmem", 0)
            workers += sizes.get(b"Pss", 0) if self._role(pid) == "worker" else 0
        return Pss(total, workers, shm) if total else "the kernel does not tell proportional set sizes"

    def _rollup(self, pid: int) -> dict[bytes, int]:
        lines = self._bytes(f"{pid}/smaps_rollup").splitlines()[1:]
        return {name: 1024 * int(size.split()[0]) for name, _, size in (line.partition(b":") for line in lines)}

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
            except OSError:
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
            tasks = [int(task) for task in os.listdir(f"{self._proc}/{pid}/task")]
        except OSError:
            return None
        if len(stat) < 22 or stat[0] in (b"Z", b"X"):
            return None
        self.started[pid] = int(stat[19])
        voluntary, involuntary = self._switches(pid)
        delay_s, pin_s = self._scheduling(pid, tasks)
        given = self._given(pid)
        return Process(
            pid=pid,
            role=self._role(pid),
            cpu_s=(int(stat[11]) + int(stat[12])) / self._tick,
            rss_bytes=int(stat[21]) * self._page,
            threads=len(tasks),
            voluntary_switches=voluntary,
            involuntary_switches=involuntary,
            minor_faults=int(stat[7]),
            major_faults=int(stat[9]),
            run_delay_s=delay_s,
            read_bytes=given.get(b"read_bytes"),
            asked_bytes=given.get(b"rchar"),
            block_io_delay_s=int(stat[39]) / self._tick if len(stat) > 39 else None,
            state=stat[0].decode(),
            pin_thread_cpu_s=pin_s,
        )

    def _switches(self, pid: int) -> tuple[int | None, int | None]:
        try:
            lines = self._bytes(f"{pid}/status").splitlines()[-4:]
        except OSError:
            return None, None
        found = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith(_SWITCHES)}
        return found.get(_SWITCHES[0]), found.get(_SWITCHES[1])

    def _scheduling(self, pid: int, tasks: list[int]) -> tuple[float | None, float | None]:
        """Run-queue delay of all threads, and CPU time of the pin thread, in seconds."""
        delay_ns, seen = 0, False
        pin_ns: int | None = None
        for task in tasks:
            try:
                on_cpu, waiting, _ = self._bytes(f"{pid}/task/{task}/schedstat").split()
            except (OSError, ValueError):
                continue
            seen = True
            delay_ns += int(waiting)
            if pid == self.main and self._name(pid, task) == PIN_THREAD_NAME:
                pin_ns = (pin_ns or 0) + int(on_cpu)
        return (delay_ns / 1e9 if seen else None), (None if pin_ns is None else pin_ns / 1e9)

    def _given(self, pid: int) -> dict[bytes, int]:
        """What it was given by read calls and from storage, in bytes; {} where the kernel does not tell."""
        try:
            lines = self._bytes(f"{pid}/io").splitlines()
        except OSError:
            return {}
        return {name: int(size) for name, _, size in (line.partition(b":") for line in lines)}

    def _ask_psutil(self, pid: int) -> Process | None:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                times, switches = process.cpu_times(), process.num_ctx_switches()
                return Process(
                    pid=pid,
                    role="main" if pid == self.main else "worker" if process.ppid() == self.main else "other",
                    cpu_s=times.user + times.system,
                    rss_bytes=process.memory_info().rss,
                    threads=process.num_threads(),
                    voluntary_switches=switches.voluntary,
                    involuntary_switches=switches.involuntary,
                    minor_faults=None,
                    major_faults=None,
                    run_delay_s=None,
                    read_bytes=None,
                    state=process.status(),
                )
        except psutil.Error:
            return None
