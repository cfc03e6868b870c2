"""Looks at the target's processes, the machine and the GPU from outside, five times a second."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil

from pindiag.launch import cgroups
from pindiag.launch.clocks import CpuClocks
from pindiag.launch.cpus import CpuTimes
from pindiag.launch.heat import CpuHeat
from pindiag.launch.load import block_load
from pindiag.launch.nvml import NOTHING, Gpu
from pindiag.launch.processes import NO_SHM, Tree
from pindiag.launch.storage import Seen, Storage
from pindiag.model import BlockLoad, MemoryRead, Sample, StorageSeen

PERIOD_S = 0.2
REFRESH_EVERY = 5
"""Looking for new processes costs a read for each thread: once a second while a block counts, and at its edges."""

_PRESSURES = ("cpu", "io", "memory")


class MachineReader:
    """Machine-wide counters; each field None where the platform or container does not show it."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._memory_group = next(iter(cgroups.folders("memory", root)), None)
        self._cpu_group = next(iter(cgroups.folders("cpu", root)), None)
        self._times = CpuTimes(root)
        self._heat = CpuHeat(root)
        self._clocks = CpuClocks(root)
        self.cpus = self._times.cpus
        """CPUs that the target may run on."""
        self.quota_cpus = cgroups.cpu_quota(root)

    def read(self) -> dict[str, Any]:
        """The machine's fields of a `Sample`."""
        memory = self._meminfo()
        swap_total, swap_free = memory.get("SwapTotal"), memory.get("SwapFree")
        return {
            "memory_available_bytes": memory.get("MemAvailable"),
            "memory_cached_bytes": memory.get("Cached"),
            "swap_used_bytes": swap_total - swap_free if swap_total is not None and swap_free is not None else None,
            "shm_used_bytes": self._shm_used_bytes(),
            "cgroup_memory_bytes": self._memory_group and cgroups.memory_used_bytes(self._memory_group),
            "cgroup_throttled_s": self._cpu_group and cgroups.throttled_s(self._cpu_group),
            **self._times.read(),
            "cpu_heat_s": self._heat.spent_s(),
            "cpu_clock_mhz": self._clocks.fastest_mhz(),
            **{f"psi_{what}_s": self._pressure_s(what) for what in _PRESSURES},
        }

    def _meminfo(self) -> dict[str, int]:
        try:
            lines = (self._root / "proc/meminfo").read_text(errors="replace").splitlines()
        except OSError:
            return _psutil_meminfo()
        pairs = (line.partition(":") for line in lines)
        return {name: 1024 * int(words[0]) for name, _, size in pairs if (words := size.split()) and words[0].isdigit()}

    def _shm_used_bytes(self) -> int | None:
        try:
            shm = os.statvfs(self._root / "dev/shm")
        except (OSError, AttributeError):
            return None
        return shm.f_frsize * (shm.f_blocks - shm.f_bfree)

    def _pressure_s(self, what: str) -> float | None:
        try:
            some = (self._root / "proc/pressure" / what).read_bytes().split(b"\n")[0]
            return int(some.rpartition(b"total=")[2]) / 1e6
        except (OSError, ValueError):
            return None


def _psutil_meminfo() -> dict[str, int]:
    try:
        swap = psutil.swap_memory()
        available = psutil.virtual_memory().available
    except (OSError, RuntimeError, ValueError, LookupError, psutil.Error):
        return {}
    return {"MemAvailable": available, "SwapTotal": swap.total, "SwapFree": swap.free}


class Sampler:
    """A thread that writes samples of one launch into its journal until it is closed.

    Nothing that goes wrong in it reaches the caller: a field that cannot be read is None, and a journal that cannot
    be written ends the samples and stands in `error`.
    """

    def __init__(
        self,
        launch: int,
        tree: Tree,
        journal: Path,
        *,
        machine: MachineReader,
        gpu: Gpu | None = None,
        period_s: float = PERIOD_S,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.error: OSError | None = None
        self.low_available_bytes: int | None = None
        """The least memory that any sample saw available."""
        self.high_shm_used_bytes: int | None = None
        """The most of /dev/shm that any sample saw used."""
        self._launch = launch
        self._tree = tree
        self._machine = machine
        self._gpu = gpu
        self._storage = Storage(own=str(journal.parent.parent))
        self._period_s = period_s
        self._clock_ns = clock_ns
        self._journal = journal.open("ab", buffering=0)
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._counting = False
        self._counted: list[Sample] = []
        self._ended = True
        self._cpu_s = 0.0
        self._turns = 0
        self._thread = threading.Thread(target=self._loop, name="pindiag-sampler", daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def close(self) -> None:
        """End sampling; everything taken is on disk."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._journal.close()

    def phase(self, phase: Literal["settling", "counting", "counted"]) -> None:
        """A block's phase began: samples at the edges of the counted part are taken at once.

        While none counts, every sample looks for new processes: workers are born then, and the first sample of the
        counted part must have them.
        """
        if phase == "counting":
            self._counted, self._ended = [], False
        self._counting = phase == "counting"
        if phase != "settling":
            self.sample()
        self._ended = not self._counting

    def sample(self, *, refresh: bool = True) -> None:
        """Take one sample now, from any thread."""
        with self._lock:
            began_s = time.thread_time()
            with contextlib.suppress(OSError, ValueError, psutil.Error):
                if refresh:
                    self._tree.refresh()
                self._take(self._look())
                if not self._counting:
                    self._keep_seen(self._storage.opened)
            self._cpu_s += time.thread_time() - began_s

    def load(self, block: int, trial: str) -> BlockLoad | None:
        """What ran beside the target in the block that has just been counted; None where too little was seen of it."""
        with self._lock:
            return block_load(
                self._counted,
                block,
                trial,
                t_ns=self._clock_ns(),
                cpus=self._machine.cpus,
                quota_cpus=self._machine.quota_cpus,
            )

    def memory(self, block: int, trial: str, phase: Literal["settling", "counted"] = "counted") -> MemoryRead:
        """Proportional set sizes now; the target should not be counting, for it costs milliseconds a process."""
        with self._lock:
            pss = self._tree.pss()
            self._keep_seen(self._storage.mapped)
        known = None if isinstance(pss, str) else pss
        return MemoryRead(
            launch=self._launch,
            t_ns=self._clock_ns(),
            block=block,
            trial=trial,
            pss_bytes=known and known.total,
            worker_pss_bytes=known and known.workers,
            shm_bytes=known and known.shm,
            phase=phase,
            reason=pss if isinstance(pss, str) else NO_SHM if pss.shm is None else None,
        )

    def _loop(self) -> None:
        while not self._closed.wait(self._period_s if self._turns else 0):
            self.sample(refresh=not self._counting or self._turns % REFRESH_EVERY == 0)
            self._turns += 1

    def _take(self, sample: Sample) -> None:
        self._keep(sample)
        if not self._ended:
            self._counted.append(sample)

    def _look(self) -> Sample:
        machine = self._machine.read()
        gpu: Mapping[str, Any] = NOTHING if self._gpu is None else self._gpu.read()
        processes = self._tree.read()
        open_files, open_files_limit = self._tree.open_files()
        available, shm = machine["memory_available_bytes"], machine["shm_used_bytes"]
        if available is not None:
            self.low_available_bytes = min(available, self.low_available_bytes or available)
        if shm is not None:
            self.high_shm_used_bytes = max(shm, self.high_shm_used_bytes or 0)
        return Sample(
            launch=self._launch,
            t_ns=self._clock_ns(),
            processes=processes,
            sampler_cpu_s=self._cpu_s,
            own_cpu_s=time.process_time(),
            open_files=open_files,
            open_files_limit=open_files_limit,
            **machine,
            **gpu,
        )

    def _keep_seen(self, look: Callable[[int], list[Seen]]) -> None:
        """Note where the files lie that makers of batches read, each place once."""
        for pid in self._tree.makers():
            for seen in look(pid):
                self._keep(StorageSeen(launch=self._launch, t_ns=self._clock_ns(), **seen._asdict()))

    def _keep(self, record: Sample | StorageSeen) -> None:
        if self.error is None and not self._journal.closed:
            try:
                self._journal.write(self._encoder.encode(record) + b"\n")
            except OSError as error:
                self.error = error
