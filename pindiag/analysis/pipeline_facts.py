"""Facts of the pipeline's lanes beside the main thread: workers, from birth to hand-off, and pinning."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pindiag.analysis.evidence import REPLAYED, TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.model import Block, Fact, Scalar

NOT_PINNED = "nothing is pinned under this configuration"
NO_PIN_RECORD = "the probe recorded no pinning in its blocks"
PINS_BY_HAND = "the script pins by hand as well, and the allocator does not tell for whom it allocated"
NO_RING = "the workers left no ring"
NO_HAND_OFF = "no batch that was begun in a counted part left its worker"
NOT_OFFERED = "this platform does not tell it"
ACTIVE_EXCEEDS_RESERVED = (
    "torch counts more pinned memory in use than it has allocated: this version does not keep the figure right"
)


def of_workers(trial: TrialEvidence) -> Iterator[Fact]:
    """What the rings say, a mean batch of one worker, and how the workers were born."""
    yield from _of_rings(trial)
    yield from _of_births(trial)
    yield _pss(trial)
    queue = trial.configuration.num_workers * (trial.configuration.prefetch_factor or 0)
    source = "configuration"
    yield fact("queue_batches", None if trial.replayed else queue, "batches", source, REPLAYED, trial=trial.id)


def _of_rings(trial: TrialEvidence) -> Iterator[Fact]:
    workers = trial.workers
    source = f"worker rings, {trial.source}"
    untold = trial.without_workers or (NO_RING if workers is None else workers.untold)
    mean = None if workers is None else workers.mean_ms
    values: tuple[tuple[str, float | None, str, str], ...] = (
        ("worker_fetch_ms", getattr(mean, "fetch", None), "ms", NO_RING),
        ("worker_fetch_sample_ms", getattr(workers, "fetch_sample_ms", None), "ms", NO_RING),
        ("worker_collate_ms", getattr(mean, "collate", None), "ms", NO_RING),
        ("worker_hand_off_ms", getattr(mean, "hand_off", None), "ms", NO_HAND_OFF),
        ("worker_hand_off_cpu_ms", getattr(workers, "hand_off_cpu_ms", None), "ms", NO_HAND_OFF),
        ("worker_blocked_ms", getattr(workers, "blocked_ms", None), "ms", NO_HAND_OFF),
        ("worker_sent_bytes", getattr(workers, "sent_bytes", None), "B", NO_HAND_OFF),
        ("worker_idle_ms", getattr(mean, "idle", None), "ms", NO_RING),
        ("worker_busy_share", getattr(workers, "busy_share", None), "1", NO_RING),
        ("worker_fetch_cpu_share", getattr(workers, "cpu_share", None), "1", "fetching took no time"),
        ("worker_cpus", getattr(workers, "cpus", None), "CPUs", NOT_OFFERED),
        ("worker_other_threads_cpus", getattr(workers, "other_threads_cpus", None), "CPUs", NOT_OFFERED),
        ("worker_run_delay_share", getattr(workers, "run_delay_share", None), "1", NOT_OFFERED),
        ("worker_minor_faults", getattr(workers, "minor_faults", None), "faults", NOT_OFFERED),
        ("worker_major_faults", getattr(workers, "major_faults", None), "faults", NOT_OFFERED),
    )
    for name, value, unit, reason in values:
        yield fact(name, value, unit, source, untold or reason, trial=trial.id)


def _of_births(trial: TrialEvidence) -> Iterator[Fact]:
    births = trial.births
    source = "births of its iterators, median"
    no_workers = trial.without_workers
    forked = births and all(birth.start_method == "fork" for birth in births)
    no_pickle = "forked workers are not pickled" if forked else "the pickling of its workers was not recorded"
    values: tuple[tuple[str, list[float | None], str, str], ...] = (
        ("worker_start_ms", [birth.startup_ms for birth in births], "ms", "no first batch was timed"),
        ("worker_pickle_ms", [birth.pickle_ms for birth in births], "ms", no_pickle),
        ("worker_pickle_bytes", [birth.pickle_bytes for birth in births], "B", no_pickle),
    )
    for name, told, unit, reason in values:
        known = [value for value in told if value is not None]
        value = median(known) if known and no_workers is None else None
        yield fact(name, value, unit, source, no_workers or reason, trial=trial.id)


def _pss(trial: TrialEvidence) -> Fact:
    """Proportional set size of all workers: pages that they share with others count in part."""
    unread = next((read.reason for read in trial.memory if read.reason), "not read")
    value = None if trial.without_workers else trial.memory_bytes("worker_pss_bytes")
    source = f"read at the end of {trial.source}"
    return fact("worker_pss_bytes", value, "B", source, trial.without_workers or unread, trial=trial.id)


def of_pinning(trial: TrialEvidence) -> Iterator[Fact]:
    """The pin thread (without workers, the main thread's pinning), a mean batch, and the memory that it pins."""
    mean, totals = trial.totals.pin_thread(), trial.totals
    not_pinned = REPLAYED if trial.replayed else NO_PIN_RECORD if trial.configuration.pin_memory else NOT_PINNED
    reason = totals.missing("pin_thread") or not_pinned
    for stage in ("receive", "pin", "idle"):
        yield fact(f"pin_{stage}_ms", getattr(mean, stage, None), "ms", trial.source, reason, trial=trial.id)
    yield fact("pin_busy_share", totals.pin_busy_share, "1", trial.source, reason, trial=trial.id)
    yield fact("pin_in_main_thread", totals.pin_in_main_thread, None, trial.source, reason, trial=trial.id)
    yield _batch_pinned(trial)
    yield from _allocator(trial)
    found = trial.run.found
    reckoned = None
    if trial.configuration.pin_memory and trial.run.has_accelerator and found is not None and not trial.replayed:
        reckoned = (in_flight_batches(trial) + 1) * _power_of_two(found.batch_bytes)
    source = "batches in flight and one in use, each rounded up to a power of two as torch's allocator does"
    reason = REPLAYED if trial.replayed else NOT_PINNED
    yield fact("pinned_reckoned_bytes", reckoned, "B", source, reason, trial=trial.id)


def _batch_pinned(trial: TrialEvidence) -> Fact:
    """Whether what was to be pinned was."""
    told = [birth.batch_pinned for birth in trial.births if birth.batch_pinned is not None]
    pins = trial.configuration.pin_memory and trial.run.has_accelerator
    reason = "no first batch with tensors on the CPU was recorded" if pins else NOT_PINNED
    value = all(told) if told and not trial.replayed else None
    source = "first batches of its iterators"
    return fact("batch_pinned", value, None, source, REPLAYED if trial.replayed else reason, trial=trial.id)


def _allocator(trial: TrialEvidence) -> Iterator[Fact]:
    """Torch's pinned allocator: what is live, what is cached, and what allocating took."""
    blocks = [block for block in trial.blocks if block.host_allocator is not None]
    allocators = [block.host_allocator for block in blocks if block.host_allocator is not None]
    reason = trial.totals.missing("host_allocator") or "the pinned allocator was not read"
    steps = sum(block.steps for block in blocks)
    spent_ms = sum(allocator.alloc_ms for allocator in allocators)
    levels = [
        (each.active_bytes, each.reserved_bytes)
        for each in allocators
        if each.active_bytes is not None and each.reserved_bytes is not None
    ]
    kept = all(active <= reserved for active, reserved in levels)
    believed = levels if kept else []
    why_no_level = reason if kept else ACTIVE_EXCEEDS_RESERVED
    values: tuple[tuple[str, Scalar, str, str], ...] = (
        (
            "host_allocations",
            sum(each.allocations for each in allocators) if allocators else None,
            "allocations",
            reason,
        ),
        ("host_alloc_ms_per_step", spent_ms / steps if steps else None, "ms", reason),
        ("pinned_active_bytes", max((active for active, _ in believed), default=None), "B", why_no_level),
        ("pinned_cached_bytes", max((whole - active for active, whole in believed), default=None), "B", why_no_level),
        ("pinned_reserved_bytes", trial.pinned_bytes, "B", reason),
    )
    for name, value, unit, why in values:
        yield fact(name, value, unit, trial.source, why, trial=trial.id)
    yield from _split(blocks, trial, reason)


def _split(blocks: list[Block], trial: TrialEvidence, not_read: str) -> Iterator[Fact]:
    """Pinning a batch is allocating and copying, in one call: what the allocator took of it, block by block."""
    both = [
        (block.pin_thread, min(block.host_allocator.alloc_ms, block.pin_thread.pin_ms))
        for block in blocks
        if block.pin_thread is not None and block.host_allocator is not None
    ]
    batches = sum(pin.batches for pin, _ in both)
    allocate_ms = sum(ms for _, ms in both)
    copy_ms = sum(pin.pin_ms - ms for pin, ms in both)
    by_hand = PINS_BY_HAND if any(block.pins for block in blocks) else None
    reason = by_hand or (NO_PIN_RECORD if blocks else not_read)
    for name, total_ms in (("pin_allocate_ms", allocate_ms), ("pin_copy_ms", copy_ms)):
        value = total_ms / batches if batches and by_hand is None else None
        yield fact(name, value, "ms", trial.source, reason, trial=trial.id)


def in_flight_batches(trial: TrialEvidence) -> int:
    """Batches that its queue holds."""
    return max(trial.configuration.num_workers * (trial.configuration.prefetch_factor or 1), 1)


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()
