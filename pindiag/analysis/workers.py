"""What workers did, from their rings."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pindiag.model import Block, WorkerBatch, WorkerMs


@dataclass(frozen=True)
class WorkerFigures:
    """The workers of a trial over the counted parts of its blocks."""

    batches: int
    mean_ms: WorkerMs
    """`idle` is the time between two batches, hand-off included: the rings do not tell them apart."""
    busy_share: float
    """Fetch and collate over the wall time of one worker."""
    cpu_share: float | None
    """CPU time of the fetching thread over fetch and collate."""


def worker_figures(blocks: Sequence[Block], batches: dict[int, list[WorkerBatch]]) -> WorkerFigures | None:
    """Means over the batches that were begun in counted parts; None without any.

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
    gaps = [following.started_ns - _end_ns(batch) for _, lane in lanes for batch, following in itertools.pairwise(lane)]
    return WorkerFigures(
        batches=len(found),
        mean_ms=WorkerMs(
            fetch=fetch / len(found) / 1e6,
            collate=collate / len(found) / 1e6,
            hand_off=None,
            idle=max(sum(gaps) / len(gaps), 0.0) / 1e6 if gaps else None,
        ),
        busy_share=min(busy / wall, 1.0) if wall else 0.0,
        cpu_share=sum(batch.cpu_ns for batch in found) / busy if busy else None,
    )


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


def _end_ns(batch: WorkerBatch) -> int:
    return batch.started_ns + batch.fetch_ns + batch.collate_ns
