"""The script that `simulator.py` runs: what its steps cost, what disturbs them, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from pindiag.model import Configuration, Treatment

BATCH = 64
"""Samples in a batch."""


@dataclass
class Pipeline:
    """What a step costs, in seconds of a batch."""

    fetch_s: float = 0.02
    """One worker, one CPU."""
    latency: float = 0.0
    """Share of that in which it waits for storage and needs no CPU."""
    uneven: float = 0.0
    """What uneven batches take from a step: this share of the faster of loader and training, by batches in flight."""
    hand_off_s: float = 0.0005
    """Of the main thread, for each batch that a worker made."""
    compute_s: float = 0.004
    """On the device."""
    host_s: float = 0.0
    """CPU work of the main thread's step; it takes longer where a pin thread has left it a single thread."""
    pageable_s: float = 0.002
    pinned_s: float = 0.0005
    pin_s: float = 0.001
    """Copying into pinned memory, by the pin thread or, without workers, by the main thread."""
    gil_share: float = 0.1
    """Of the pin thread's time that the main thread loses too."""
    threads: int = 1
    """Of the main thread where no pin thread takes them away."""
    cpus: int = 8
    accelerator: str | None = "cuda"
    syncs_per_step: float = 1.0
    """Calls that wait for the device."""

    def step_s(self, made: Treatment) -> float:
        """A step in a steady state, without any disturbance."""
        configuration = made.configuration
        pin = self._pins(configuration)
        if made.ablation == "compute_only":
            return self._host_s(made, pin=False) + self.compute_s
        if made.ablation == "host_batch":
            return self._main_s(made, pin=False)
        if made.ablation == "loader_only":
            return max(self._loader_s(configuration, pin=pin), self.hand_off_s)
        if configuration.num_workers == 0:
            return self.fetch_s + (self.pin_s if pin else 0.0) + self._main_s(made, pin=False)
        loader_s, main_s = self._loader_s(configuration, pin=pin), self._busy_s(made, pin=pin)
        return max(loader_s, main_s) + self.uneven * min(loader_s, main_s) / queue(configuration)

    def wait_s(self, made: Treatment) -> tuple[float, float]:
        """How long the main thread waits for a batch, and how much of it it is on a CPU."""
        configuration = made.configuration
        pin = self._pins(configuration)
        if made.ablation in ("compute_only", "host_batch"):
            return 0.0, 0.0
        if configuration.num_workers == 0:
            pin_s = self.pin_s if pin else 0.0
            return self.fetch_s + pin_s, self.fetch_s * (1 - self.latency) + pin_s
        receive_s = 0.0 if pin else self.hand_off_s
        if made.ablation == "loader_only":
            return self.step_s(made), receive_s
        return self.step_s(made) - self._busy_s(made, pin=pin) + receive_s, receive_s

    def transfer_s(self, made: Treatment) -> float:
        """How long the main thread is in calls that copy to the device."""
        pinned = self._pins(made.configuration)
        copies = self.accelerator is not None and made.ablation not in ("compute_only", "loader_only")
        overlapped = pinned and made.configuration.non_blocking is True
        return (self.pinned_s if pinned else self.pageable_s) if copies and not overlapped else 0.0

    def pin_thread_s(self, made: Treatment) -> float:
        """What pinning a batch takes, with receiving it where a thread does it; 0 where none is pinned."""
        if not self._pins(made.configuration) or made.ablation in ("compute_only", "host_batch"):
            return 0.0
        return self.pin_s + (self.hand_off_s if made.configuration.num_workers > 0 else 0.0)

    def _pins(self, configuration: Configuration) -> bool:
        """What torch makes of pin_memory: nothing without an accelerator, and nothing on Apple's (FACTS.md A2)."""
        return configuration.pin_memory and self.accelerator == "cuda"

    def _busy_s(self, made: Treatment, *, pin: bool) -> float:
        """The main thread's own part of a step with workers."""
        return self._main_s(made, pin=pin) + self.hand_off_s + (self.gil_share * self.pin_s if pin else 0.0)

    def _loader_s(self, configuration: Configuration, *, pin: bool) -> float:
        if configuration.num_workers == 0:
            return self.fetch_s + (self.pin_s if pin else 0.0)
        on_cpus_s = self.fetch_s * (1 - self.latency) / (self.cpus - 1)
        crowd = 1 + 0.02 * max(configuration.num_workers - self.cpus, 0)
        fetch_s = max(self.fetch_s / configuration.num_workers, on_cpus_s) * crowd
        return max(fetch_s, self.pin_s + self.hand_off_s if pin else 0.0)

    def _main_s(self, made: Treatment, *, pin: bool) -> float:
        pinned = self._pins(made.configuration)
        copy_s = 0.0 if self.accelerator is None else self.pinned_s if pinned else self.pageable_s
        overlapped = pinned and made.configuration.non_blocking is True
        device_s = max(copy_s, self.compute_s) if overlapped else copy_s + self.compute_s
        return self._host_s(made, pin=pin) + device_s

    def _host_s(self, made: Treatment, *, pin: bool) -> float:
        alone = pin and made.tweak != "intraop_threads"
        return self.host_s * (self.threads if alone else 1)


def queue(configuration: Configuration) -> int:
    """Batches in flight."""
    return configuration.num_workers * (configuration.prefetch_factor or 2)


@dataclass
class Troubles:
    """What goes wrong, by treatment or for all."""

    dies: dict[str, str] = field(default_factory=dict)
    """Treatment to the reason with which its launch ends."""
    hangs: frozenset[str] = frozenset()
    no_room: frozenset[str] = frozenset()
    """Live, the parent does not even start these; fresh, it does not start their launch."""
    throttles: frozenset[str] = frozenset()
    """They run at half their pace from their second block on."""
    dataset_changes: bool = False
    """Whenever it serves in the main process."""
    own_iteration: bool = False
    """Nothing of the loader can be changed in a live launch."""
    steps: int = 1 << 40
    """After so many a launch's script is over by itself."""
    fails_past_end: bool = False
    live_fails: bool = False
    """No block of a live launch comes to an end, but for the very first."""


@dataclass
class Noise:
    """What disturbs every measurement, as factors of its pace."""

    block: float = 0.02
    """Standard deviation of the logarithm, of each block alone."""
    outliers: float = 0.0
    """Share of blocks that are much slower."""
    outlier: float = 1.5
    """By how much at most."""
    tail: float = 0.0
    """Of a heavy-tailed disturbance that only slows down."""
    launch: float = 0.0
    """Of each launch, common to its blocks."""
    drift: float = 0.0
    """Of a random walk over the run, a minute's step."""
    trend: float = 0.0
    """Change of the logarithm over an hour."""
    warm_up: float = 0.0
    """How much slower the run's first blocks are while caches fill."""
    warm_up_s: float = 20.0
