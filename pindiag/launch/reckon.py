"""Memory that a treatment will need, reckoned before it starts. Pure."""

from __future__ import annotations

from pindiag.model import Base, Configuration, LoaderChosen, Treatment

SAFE_SHARE = 0.8
"""Of what is free now: the script's own needs grow too, and a full /dev/shm kills a worker by a bus error."""
BATCHES_IN_USE = 2
"""Beyond the queue: the batch that the script holds and the one that is being pinned or collated."""


class FreeMemory(Base, frozen=True, kw_only=True):
    """What is free now, in bytes; None where the platform does not say."""

    available_bytes: int | None
    shm_bytes: int | None
    cgroup_bytes: int | None
    """What the control groups' limits leave; None: no limit."""
    shm_used_bytes: int | None = None

    def without(self, queue_bytes: int) -> FreeMemory:
        """What will be free once a prefetch queue is gone, which may be less full than it could be."""
        freed = min(queue_bytes, self.shm_used_bytes or 0)
        return FreeMemory(
            available_bytes=None if self.available_bytes is None else self.available_bytes + freed,
            shm_bytes=None if self.shm_bytes is None else self.shm_bytes + freed,
            cgroup_bytes=None if self.cgroup_bytes is None else self.cgroup_bytes + freed,
        )


def in_flight_bytes(configuration: Configuration, batch_bytes: int) -> int:
    """Bytes of the batches that a full prefetch queue holds, and of those in use."""
    queue = configuration.num_workers * (configuration.prefetch_factor or 2)
    return (queue + BATCHES_IN_USE) * batch_bytes


def reason_to_refuse(
    treatment: Treatment | None, found: LoaderChosen | None, free: FreeMemory, *, running: Configuration | None = None
) -> str | None:
    """Why a treatment should not be started; None where it fits, or needs no more than the script as written.

    Args:
        treatment: what would run.
        found: the training loader, once it is known.
        free: what is free now.
        running: what the loader runs under in the same process until then; its queue will make room.
    """
    if treatment is None or found is None:
        return None
    own, wanted = found.configuration, treatment.configuration
    growth = (wanted.batch_size or 1) / (own.batch_size or wanted.batch_size or 1)
    batch_bytes = int(found.batch_bytes * growth)
    if in_flight_bytes(wanted, batch_bytes) <= in_flight_bytes(own, found.batch_bytes):
        return None
    if running is not None and running.num_workers > 0:
        free = free.without(in_flight_bytes(running, found.batch_bytes))
    return reason_to_skip(wanted, batch_bytes, free)


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
