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
        pin = configuration.pin_memory and self.accelerator is not None
        if made.ablation == "compute_only":
            return self._host_s(made, pin=False) + self.compute_s
        if made.ablation == "host_batch":
            return self._main_s(made, pin=False)
        if made.ablation == "loader_only":
            return max(self._loader_s(configuration, pin=pin), self.hand_off_s)
        if configuration.num_workers == 0:
            return self.fetch_s + (self.pin_s if pin else 0.0) + self._main_s(made, pin=False)
        main_s = self._main_s(made, pin=pin) + self.hand_off_s + (self.gil_share * self.pin_s if pin else 0.0)
        return max(self._loader_s(configuration, pin=pin), main_s)

    def _loader_s(self, configuration: Configuration, *, pin: bool) -> float:
        if configuration.num_workers == 0:
            return self.fetch_s + (self.pin_s if pin else 0.0)
        busy = min(configuration.num_workers, self.cpus - 1)
        fetch_s = self.fetch_s / busy * (1 + 0.02 * max(configuration.num_workers - self.cpus, 0))
        return max(fetch_s, self.pin_s + self.hand_off_s if pin else 0.0)

    def _main_s(self, made: Treatment, *, pin: bool) -> float:
        pinned = made.configuration.pin_memory
        copy_s = 0.0 if self.accelerator is None else self.pinned_s if pinned else self.pageable_s
        overlapped = pinned and made.configuration.non_blocking is True
        device_s = max(copy_s, self.compute_s) if overlapped else copy_s + self.compute_s
        return self._host_s(made, pin=pin) + device_s

    def _host_s(self, made: Treatment, *, pin: bool) -> float:
        alone = pin and made.tweak != "intraop_threads"
        return self.host_s * (self.threads if alone else 1)


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
