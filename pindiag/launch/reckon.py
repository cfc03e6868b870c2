"""Memory that a treatment will need, reckoned before it starts. Pure."""

from __future__ import annotations

from pindiag.model import Base, Configuration

SAFE_SHARE = 0.8
"""Of what is free now: the script's own needs grow too, and a full /dev/shm kills a worker by a bus error."""
BATCHES_IN_USE = 2
"""Beyond the queue: the batch that the script holds and the one that is being pinned or collated."""


class FreeMemory(Base, frozen=True, kw_only=True):
    """What is free before a launch, in bytes; None where the platform does not say."""

    available_bytes: int | None
    shm_bytes: int | None
    cgroup_bytes: int | None
    """What the control groups' limits leave; None: no limit."""


def in_flight_bytes(configuration: Configuration, batch_bytes: int) -> int:
    """Bytes of the batches that a full prefetch queue holds, and of those in use."""
    queue = configuration.num_workers * (configuration.prefetch_factor or 2)
    return (queue + BATCHES_IN_USE) * batch_bytes


def reason_to_skip(configuration: Configuration, batch_bytes: int, free: FreeMemory) -> str | None:
    """Why a configuration should not be started; None where it fits.

    Args:
        configuration: what the loader would run under.
        batch_bytes: one batch under that configuration.
        free: what is free now.
    """
    needed = in_flight_bytes(configuration, batch_bytes)
    rooms = [("memory", free.available_bytes), ("the control group's memory limit", free.cgroup_bytes)]
    if configuration.num_workers > 0:
        rooms.insert(0, ("/dev/shm", free.shm_bytes))
    for name, bytes_free in rooms:
        if bytes_free is not None and needed > SAFE_SHARE * bytes_free:
            return (
                f"it would be out of memory: {configuration.num_workers} workers hold up to {_size(needed)} "
                f"of batches, and {name} has {_size(bytes_free)} free"
            )
    return None


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
