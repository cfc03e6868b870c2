"""What workers did, from their rings."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pindiag.model import Block, WorkerBatch, WorkerMs

FIRST_FORMAT = "the run was recorded by an earlier pindiag, whose rings do not tell it"


@dataclass(frozen=True)
class WorkerFigures:
    """The workers of a trial over the counted parts of its blocks; a mean batch of one worker."""

    batches: int
    mean_ms: WorkerMs
    """The hand-off runs in a thread of its own, beside what comes next."""
    fetch_sample_ms: float
    busy_share: float
    """Fetch and collate over the wall time of one worker."""
    cpu_share: float | None
    """CPU time of the fetching thread over fetch and collate."""
    hand_off_cpu_ms: float | None
    blocked_ms: float | None
    """Beside the hand-off: waiting for a pipe that others write to, or that is full."""
    sent_bytes: float | None
    """Through the queue's pipe."""
    cpus: float | None
    """CPU time of all threads of one worker over its wall time."""
    other_threads_cpus: float | None
    """Of these, threads that neither fetch nor hand off: native threads of libraries."""
    run_delay_share: float | None
    """Part of the CPU time that the fetching thread wanted which it spent waiting for a CPU."""
    minor_faults: float | None
    major_faults: float | None
    untold: str | None
    """Why idle, hand-off and what follows are None, where all are; else None."""


def worker_figures(blocks: Sequence[Block], batches: dict[int, list[WorkerBatch]]) -> WorkerFigures | None:
    """Means over the batches that were begun in counted parts; None without any.

    Settling turns the queue over, so what the first of them waited for its index lies after all pauses.

    Args:
        blocks: the blocks of one trial.
        batches: batches by launch, in the order of time; a live launch holds those of many workers after each other.
    """
    lanes = [lane for block in blocks for lane in _lanes(block, batches.get(block.launch, []))]
    found = [batch for _, lane in lanes for batch in lane]
    if not found:
        return None
    fetch, collate = sum(batch.fetch_ns for batch in found), sum(batch.collate_ns for batch in found)
    busy, wall = fetch + collate, sum(block.ended_ns - block.started_ns for block, _ in lanes)
    cpu = sum(batch.cpu_ns for batch in found)
    all_threads, handing = _total(found, "process_cpu_ns"), _total(found, "hand_off_cpu_ns")
    delay = _total(found, "run_delay_ns")
    return WorkerFigures(
        batches=len(found),
        mean_ms=WorkerMs(
            fetch=fetch / len(found) / 1e6,
            collate=collate / len(found) / 1e6,
            hand_off=_mean(found, "hand_off_ns", 1e6),
            idle=_mean(found, "idle_ns", 1e6),
        ),
        fetch_sample_ms=fetch / max(sum(batch.samples for batch in found), 1) / 1e6,
        busy_share=min(busy / wall, 1.0) if wall else 0.0,
        cpu_share=cpu / busy if busy else None,
        hand_off_cpu_ms=_mean(found, "hand_off_cpu_ns", 1e6),
        blocked_ms=_mean(found, "blocked_ns", 1e6),
        sent_bytes=_mean(found, "sent_bytes"),
        cpus=all_threads / wall if all_threads is not None and wall else None,
        other_threads_cpus=max(all_threads - cpu - (handing or 0), 0) / wall
        if all_threads is not None and wall
        else None,
        run_delay_share=delay / (delay + cpu) if delay is not None and delay + cpu else None,
        minor_faults=_mean(found, "minor_faults"),
        major_faults=_mean(found, "major_faults"),
        untold=None if _told(found, "idle_ns") else FIRST_FORMAT,
    )


def _told(batches: Sequence[WorkerBatch], field: str) -> list[int]:
    return [value for batch in batches if (value := getattr(batch, field)) is not None]


def _total(batches: Sequence[WorkerBatch], field: str) -> int | None:
    told = _told(batches, field)
    return sum(told) if told else None


def _mean(batches: Sequence[WorkerBatch], field: str, per: float = 1.0) -> float | None:
    told = _told(batches, field)
    return sum(told) / len(told) / per if told else None


def _lanes(block: Block, batches: Sequence[WorkerBatch]) -> list[tuple[Block, list[WorkerBatch]]]:
    """The batches of each worker in a block, oldest first."""
    by_worker: dict[int, list[WorkerBatch]] = defaultdict(list)
    for batch in during(batches, block.started_ns, block.ended_ns):
        by_worker[batch.pid].append(batch)
    return [(block, lane) for lane in by_worker.values()]


def during(batches: Sequence[WorkerBatch], start_ns: int, end_ns: int) -> Sequence[WorkerBatch]:
    """Of batches in the order of time, those that were begun in a span."""
    first, last = (bisect_left(batches, ns, key=lambda batch: batch.started_ns) for ns in (start_ns, end_ns))
    return batches[first:last]
