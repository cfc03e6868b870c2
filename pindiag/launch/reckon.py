"""Memory that a treatment will need, reckoned before it starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

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

    def without(self, queue_bytes: int, workers_bytes: int = 0) -> FreeMemory:
        """What will be free once some workers and their queue are gone, which may be less full than it could be."""
        freed = min(queue_bytes, self.shm_used_bytes or 0)
        return FreeMemory(
            available_bytes=_more(self.available_bytes, freed + workers_bytes),
            shm_bytes=_more(self.shm_bytes, freed),
            cgroup_bytes=_more(self.cgroup_bytes, freed + workers_bytes),
        )


class Killed(Base, frozen=True, kw_only=True):
    """A configuration under which a launch ended for want of memory."""

    configuration: Configuration
    shm: bool
    """It was /dev/shm that was full, which the workers' own memory has no part in."""

    def needs_no_more_than(self, other: Configuration) -> bool:
        """Whether another configuration needs at least as much of what there was too little of."""
        mine = self.configuration
        batches = (mine.batch_size or 0) <= (other.batch_size or 0) and queue(mine) <= queue(other)
        return batches and (self.shm or (mine.num_workers <= other.num_workers and mine.pin_memory <= other.pin_memory))


class Met(Base, frozen=True, kw_only=True):
    """What earlier blocks of a run showed of its memory."""

    worker_bytes: int = 0
    """What each worker holds beyond what it shares with the others."""
    killed: Sequence[Killed] = ()


class Need(Base, frozen=True, kw_only=True):
    """Bytes that a loader holds at most."""

    queue_bytes: int
    """Batches in flight, in /dev/shm where there are workers."""
    host_bytes: int
    """The same as they lie in memory: torch rounds what it pins up to the next power of two."""
    workers_bytes: int

    @property
    def memory_bytes(self) -> int:
        """All of it."""
        return self.host_bytes + self.workers_bytes


def queue(configuration: Configuration) -> int:
    """Batches that a full prefetch queue holds."""
    return configuration.num_workers * (configuration.prefetch_factor or 2)


def need(configuration: Configuration, batch_bytes: int, *, worker_bytes: int = 0, pins: bool = False) -> Need:
    """What a loader holds at most.

    Args:
        configuration: what it runs under.
        batch_bytes: one batch under that configuration.
        worker_bytes: what each worker holds for itself.
        pins: whether torch pins here at all.
    """
    batches = queue(configuration) + BATCHES_IN_USE
    rounded = 1 << (batch_bytes - 1).bit_length() if pins and configuration.pin_memory and batch_bytes else batch_bytes
    return Need(
        queue_bytes=batches * batch_bytes,
        host_bytes=batches * rounded,
        workers_bytes=configuration.num_workers * worker_bytes,
    )


def reason_to_refuse(
    treatment: Treatment | None,
    found: LoaderChosen | None,
    free: FreeMemory,
    *,
    running: Configuration | None = None,
    met: Met | None = None,
) -> str | None:
    """Why a treatment should not be started; None where it fits, or needs no more than the script as written.

    Args:
        treatment: what would run.
        found: the training loader, once it is known.
        free: what is free now.
        running: what the loader runs under in the same process until then; its queue and its workers will make room.
        met: what earlier blocks showed.
    """
    if treatment is None or found is None:
        return None
    met = met or Met()
    own, wanted = found.configuration, treatment.configuration
    growth = (wanted.batch_size or 1) / (own.batch_size or wanted.batch_size or 1)

    def of(configuration: Configuration, batch_bytes: int) -> Need:
        pins = found.accelerator is not None
        return need(configuration, batch_bytes, worker_bytes=met.worker_bytes, pins=pins)

    needed, as_written = of(wanted, int(found.batch_bytes * growth)), of(own, found.batch_bytes)
    if needed.queue_bytes <= as_written.queue_bytes and needed.memory_bytes <= as_written.memory_bytes:
        return None
    killed = next((killed.configuration for killed in met.killed if killed.needs_no_more_than(wanted)), None)
    if killed is not None:
        return f"it would be out of memory: it needs at least as much as {killed.id}, which ended for want of it"
    if running is not None and running.num_workers > 0:
        freed = of(running, found.batch_bytes)
        free = free.without(freed.queue_bytes, freed.workers_bytes)
    return reason_to_skip(wanted, needed, free)


def reason_to_skip(configuration: Configuration, needed: Need, free: FreeMemory) -> str | None:
    """Why a configuration should not be started; None where it fits.

    Args:
        configuration: what the loader would run under.
        needed: what it would hold.
        free: what is free now.
    """
    own = f" and {_size(needed.workers_bytes)} of their own" if needed.workers_bytes else ""
    held = f"{_size(needed.host_bytes)} of batches{own}"
    rooms = [
        ("memory", free.available_bytes, needed.memory_bytes, held),
        ("the control group's memory limit", free.cgroup_bytes, needed.memory_bytes, held),
    ]
    if configuration.num_workers > 0:
        shm = f"{_size(needed.queue_bytes)} of batches"
        rooms.insert(0, ("/dev/shm", free.shm_bytes, needed.queue_bytes, shm))
    for name, bytes_free, bytes_needed, what in rooms:
        if bytes_free is not None and bytes_needed > SAFE_SHARE * bytes_free:
            return (
                f"it would be out of memory: {configuration.num_workers} workers hold up to {what}, "
                f"and {name} has {_size(bytes_free)} free"
            )
    return None


def _more(count: int | None, by: int) -> int | None:
    return None if count is None else count + by


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
