"""What psutil, /proc and NVML saw over the counted parts of blocks."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from statistics import fmean

from pindiag.analysis.nvml import gpu_figures
from pindiag.model import Block, Process, Sample, SamplerFigures

SLACK_NS = 50_000_000
"""The samples at both ends of a counted part are taken on a message, a little after it begins and ends."""

Reading = Callable[[Process], float | None]


class Window:
    """Of samples in the order of time, those within the counted part of one block, and none before `since_ns`.

    One of those taken after its end at most: by the next one, a live launch may have ended this block's workers.
    """

    def __init__(self, samples: Sequence[Sample], block: Block, since_ns: int = 0) -> None:
        early, late = max(block.started_ns - SLACK_NS, since_ns), block.ended_ns + SLACK_NS
        first, last = bisect_left(samples, early, key=_t_ns), bisect_right(samples, late, key=_t_ns)
        over = bisect_left(samples, block.ended_ns, key=_t_ns)
        self.samples = samples[first : min(last, over + 1)]
        self.seconds = (self.samples[-1].t_ns - self.samples[0].t_ns) / 1e9 if self.samples else 0.0

    @property
    def enough(self) -> bool:
        """Whether differences over it mean something."""
        return len(self.samples) >= 2 and self.seconds > 0

    def used(self, reading: Reading, role: str | None = None) -> list[float]:
        """How much a counter grew, one value a process that lived through the window."""
        before = {process.pid: process for process in self.samples[0].processes}
        grown = []
        for process in self.samples[-1].processes:
            if process.pid not in before or role not in (None, process.role):
                continue
            first, last = reading(before[process.pid]), reading(process)
            if first is not None and last is not None:
                grown.append(last - first)
        return grown

    def rate(self, reading: Reading, role: str | None = None) -> float | None:
        """Growth a second, summed over processes."""
        grown = self.used(reading, role)
        return sum(grown) / self.seconds if grown else None

    def machine_rate(self, reading: Callable[[Sample], float | None]) -> float | None:
        """Growth a second of a counter of the machine."""
        first, last = reading(self.samples[0]), reading(self.samples[-1])
        return None if first is None or last is None else (last - first) / self.seconds

    def worker_cpu(self) -> float | None:
        """CPU seconds a second of one worker."""
        grown = self.used(lambda process: process.cpu_s, "worker")
        return fmean(grown) / self.seconds if grown else None

    def run_delay_share(self) -> float | None:
        """Part of the CPU time that processes wanted which they spent waiting for a CPU."""
        delay = self.used(lambda process: process.run_delay_s)
        wanted = sum(delay) + sum(self.used(lambda process: process.cpu_s))
        return sum(delay) / wanted if delay and wanted > 0 else None

    def resident(self) -> list[float]:
        """Resident bytes of the whole tree, a value a sample that has it."""
        return self.levels(resident)

    def worker_resident(self) -> list[float]:
        """Resident bytes of the largest worker, a value a sample that has one."""
        return self.levels(lambda sample: _largest(sample, lambda process: process.rss_bytes))

    def worker_threads(self) -> list[float]:
        """Threads of the worker that has most, a value a sample that has one."""
        return self.levels(lambda sample: _largest(sample, lambda process: process.threads))

    def allowed_cpus(self, role: str) -> list[float]:
        """CPUs on which some process of this kind may run, a value a sample that tells it."""
        return self.levels(lambda sample: _allowed_cpus(sample, role))

    def rate_of_makers(self, reading: Reading) -> float | None:
        """Growth a second, summed over those who make batches: workers, or the main process where there are none."""
        alive = {process.role for process in self.samples[-1].processes}
        return self.rate(reading, "worker" if "worker" in alive else "main")

    def levels(self, reading: Callable[[Sample], float | None]) -> list[float]:
        """A level of the machine, a value a sample that has it."""
        return [value for sample in self.samples if (value := reading(sample)) is not None]


def sampler_figures(windows: Iterable[Window]) -> SamplerFigures | None:
    """The sampler's figures over all blocks of a trial; None without two samples in any of them."""
    found = [window for window in windows if window.enough]
    if not found:
        return None

    def mean(read: Callable[[Window], float | None], scale: float = 1.0) -> float | None:
        values = [value * scale for window in found if (value := read(window)) is not None]
        return fmean(values) if values else None

    def extreme(choose: Callable[[list[float]], float], read: Callable[[Window], list[float]]) -> int | None:
        values = [value for window in found for value in read(window)]
        return int(choose(values)) if values else None

    return SamplerFigures(
        samples=sum(len(window.samples) for window in found),
        cpu_percent=mean(lambda window: window.rate(lambda process: process.cpu_s), 100),
        main_cpu_percent=mean(lambda window: window.rate(lambda process: process.cpu_s, "main"), 100),
        worker_cpu_percent=mean(lambda window: window.worker_cpu(), 100),
        pin_thread_cpu_percent=mean(lambda window: window.rate(lambda process: process.pin_thread_cpu_s, "main"), 100),
        run_delay_share=mean(lambda window: window.run_delay_share()),
        involuntary_switches_per_s=mean(lambda window: window.rate(lambda process: process.involuntary_switches)),
        major_faults_per_s=mean(lambda window: window.rate(lambda process: process.major_faults)),
        read_bytes_per_s=mean(lambda window: window.rate(lambda process: process.read_bytes)),
        rss_bytes=extreme(max, lambda window: window.resident()),
        worker_rss_bytes=extreme(max, lambda window: window.worker_resident()),
        worker_threads=extreme(max, lambda window: window.worker_threads()),
        memory_available_bytes=extreme(min, lambda window: window.levels(lambda sample: sample.memory_available_bytes)),
        swap_used_bytes=extreme(max, lambda window: window.levels(lambda sample: sample.swap_used_bytes)),
        psi_cpu_share=mean(lambda window: window.machine_rate(lambda sample: sample.psi_cpu_s)),
        psi_io_share=mean(lambda window: window.machine_rate(lambda sample: sample.psi_io_s)),
        psi_memory_share=mean(lambda window: window.machine_rate(lambda sample: sample.psi_memory_s)),
        gpu_utilization=mean(lambda window: _mean(window.levels(lambda sample: sample.gpu_utilization))),
        worker_allowed_cpus=extreme(min, lambda window: window.allowed_cpus("worker")),
        main_allowed_cpus=extreme(min, lambda window: window.allowed_cpus("main")),
        throttled_share=mean(lambda window: window.machine_rate(lambda sample: sample.cgroup_throttled_s)),
        shm_used_bytes=extreme(max, lambda window: window.levels(lambda sample: sample.shm_used_bytes)),
        fetched_bytes_per_s=mean(lambda window: window.rate_of_makers(lambda process: process.asked_bytes)),
        storage_bytes_per_s=mean(lambda window: window.rate_of_makers(lambda process: process.read_bytes)),
        **gpu_figures([sample for window in found for sample in window.samples]),
    )


def resident(sample: Sample) -> float | None:
    """Resident bytes of the whole tree; None where those of a process are not known."""
    sizes = [process.rss_bytes for process in sample.processes]
    known = [size for size in sizes if size is not None]
    return float(sum(known)) if known and len(known) == len(sizes) else None


def _largest(sample: Sample, reading: Reading) -> float | None:
    """The greatest reading of a worker; None where no worker has it."""
    workers = (process for process in sample.processes if process.role == "worker")
    return max((value for worker in workers if (value := reading(worker)) is not None), default=None)


def _allowed_cpus(sample: Sample, role: str) -> float | None:
    told = (process.allowed_cpus for process in sample.processes if process.role == role)
    masks = [int(mask, 16) for mask in told if mask is not None]
    return float(reduce(operator.or_, masks).bit_count()) if masks else None


def sampler_cost(samples: Sequence[Sample]) -> float | None:
    """CPU seconds a second that the sampler itself took in one launch."""
    if len(samples) < 2 or samples[-1].t_ns <= samples[0].t_ns:
        return None
    return (samples[-1].sampler_cpu_s - samples[0].sampler_cpu_s) / ((samples[-1].t_ns - samples[0].t_ns) / 1e9)


def _t_ns(sample: Sample) -> int:
    return sample.t_ns


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None
