"""What `pindiag doctor` finds, as msgspec structs; `--json` prints one `Doctor`.

As in `pindiag.model`: a number's name ends in its unit, and what was not measured is null with its reason.
"""

from __future__ import annotations

import msgspec

from pindiag.model import Base, Machine, NotMeasured

DOCTOR_SCHEMA_VERSION = 1


class Spread(Base, frozen=True, kw_only=True):
    """Several repetitions of one measurement."""

    median: float
    min: float
    max: float
    repetitions: int


class Torch(Base, frozen=True, kw_only=True):
    """What torch is and can use, asked of the interpreter that trains."""

    version: str
    python_version: str
    cuda_version: str | None
    """CUDA that torch is built for."""
    hip_version: str | None
    accelerator: str | None
    """Device type that torch offers: "cuda" (ROCm too), "mps", ..."""
    no_accelerator: str | None
    """Why there is none."""
    intraop_threads: int
    start_method: str
    """How this interpreter starts workers unless it is told otherwise."""
    start_methods: list[str]
    sharing_strategy: str


class HandOffSize(Base, frozen=True, kw_only=True):
    """Batches of one size through the queue of one worker."""

    batch_bytes: int
    bytes_per_s: Spread | None
    reason: str | None = None


class HandOff(Base, frozen=True, kw_only=True):
    """One worker of a stock DataLoader whose dataset costs nothing.

    The stock collate function copies the sample into shared memory; the main process maps the batch and does not
    read it.
    """

    start_method: str
    startup_s: float
    """From `iter(loader)` to its first batch; with forkserver its server starts as well."""
    sizes: list[HandOffSize]


class CopySize(Base, frozen=True, kw_only=True):
    """Copies of one size from the host to the GPU, and what it costs to pin that much."""

    bytes: int
    pageable_bytes_per_s: Spread | None = None
    """Blocking, as `.to(device)` does."""
    pinned_bytes_per_s: Spread | None = None
    """`non_blocking`, consecutive ones."""
    first_pin_ms: Spread | None = None
    """`pin_memory()` that allocates pinned memory and copies."""
    cached_pin_ms: Spread | None = None
    """`pin_memory()` that finds a cached block of its size and copies."""
    reason: str | None = None


class Copies(Base, frozen=True, kw_only=True):
    """From the host's memory to the current GPU: page-aligned, warmed up, host clock between two synchronisations.

    Pageable sources take turns over more memory than CPUs cache.
    """

    device_name: str
    device_uuid: str | None
    sizes: list[CopySize]


class KnownFault(Base, frozen=True, kw_only=True):
    """What a version of torch or Python is known to do wrong, or to lack."""

    versions: str
    """Where it is, in words: "torch 2.13"."""
    what: str
    do: str
    source: str
    """Where it can be read up, or where it was seen."""


class Limit(Base, frozen=True, kw_only=True):
    """Something of this machine that limits training."""

    name: str
    what: str
    """A sentence of fact with its numbers."""
    do: str
    """What to do about it, or how to live with it."""


class Doctor(Base, frozen=True, kw_only=True):
    """What a machine can do, and what limits it."""

    pindiag_version: str
    python: str
    """The interpreter that was asked."""
    machine: Machine
    """Its `gpus` tell the fastest and widest PCIe link that was read while doctor measured, and in `pcie_under_load`
    whether copies went over it then: an idle link saves power.
    """
    torch: Torch | None
    copies: Copies | None
    hand_off: list[HandOff]
    """One a start method that could be measured."""
    seconds: float
    known_faults: list[KnownFault] = msgspec.field(default_factory=list)
    limits: list[Limit] = msgspec.field(default_factory=list)
    not_measured: list[NotMeasured] = msgspec.field(default_factory=list)
    schema_version: int = DOCTOR_SCHEMA_VERSION
