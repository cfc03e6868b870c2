"""Which counted steps took much longer than others of their block, how regularly, and what batch they waited for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pindiag.analysis.evidence import TrialEvidence
from pindiag.analysis.workers import during
from pindiag.model import Block, SlowStep, WorkerBatch

SLOW = 1.25
"""A step that takes no longer than this times the median is not slow."""
SHOWN = 5
LEAST_RECURRENCES = 4
"""So many slow steps at one distance are a pattern."""
KEPT_TO = 0.8
"""Share of the slow steps that keep to a pattern, and of the pattern's places that are slow."""
LONGEST_PERIOD = 64
HAIR = 0.1
"""Of a usual step: what its beginning may be off."""


@dataclass(frozen=True)
class SlowSteps:
    """The slow steps of all blocks of a trial."""

    shown: list[SlowStep]
    """The slowest first."""
    count: int
    of: int
    every: int | None
    """The period in that block."""
    block: Block
    """The block of the slowest; the first where no step is slow."""


def slow_steps(trial: TrialEvidence) -> SlowSteps | None:
    """The slow steps of a trial; None where no step was timed."""
    timed = [block for block in trial.blocks if block.step_ms]
    if not timed:
        return None
    found = [(block, index) for block in timed for index in _slow(block.step_ms, block.step_ms)]
    found.sort(key=lambda one: -one[0].step_ms[one[1]] / median(one[0].step_ms))
    block = found[0][0] if found else timed[0]
    return SlowSteps(
        shown=[_told(block, index, trial.run.batches.get(block.launch, [])) for block, index in found[:SHOWN]],
        count=len(found),
        of=sum(len(block.step_ms) for block in timed),
        every=period(block.step_ms),
        block=block,
    )


def aligned(block: Block) -> bool:
    """Whether its steps follow each other without a gap between epochs, so that their lengths tell when each began."""
    return block.gap_s * 1e3 <= HAIR * median(block.step_ms)


def _slow(lengths: Sequence[float], usual: Sequence[float]) -> list[int]:
    limit = SLOW * median(usual)
    return [index for index, length in enumerate(lengths) if length > limit]


def period(lengths: Sequence[float]) -> int | None:
    """The least distance at which nearly all slow steps recur and nearly all that recur are slow.

    Where every second step is slow, the median may be of either kind: slow is against the faster half here.
    """
    slow = _slow(lengths, sorted(lengths)[: (len(lengths) + 1) // 2])
    for distance in range(2, min(LONGEST_PERIOD, len(lengths) // LEAST_RECURRENCES) + 1):
        for first, kept in Counter(index % distance for index in slow).items():
            places = len(range(first, len(lengths), distance))
            if kept >= max(LEAST_RECURRENCES, KEPT_TO * len(slow), KEPT_TO * places):
                return distance
    return None


def _told(block: Block, index: int, batches: Sequence[WorkerBatch]) -> SlowStep:
    """A slow step, with the batch that ended its wait."""
    began_ns = block.started_ns + 1e6 * sum(itertools.islice(block.step_ms, index))
    wait_ms = block.step_wait_ms[index]
    nearby = during(batches, block.started_ns, block.ended_ns)
    batch = _handed_last(batches, began_ns, began_ns + 1e6 * wait_ms) if aligned(block) else None
    return SlowStep(
        block=block.block,
        step=index + 1,
        ms=block.step_ms[index],
        wait_ms=wait_ms,
        usual_ms=median(block.step_ms),
        usual_wait_ms=median(block.step_wait_ms),
        handed=batch is not None if aligned(block) and any(one.handed_ns for one in nearby) else None,
        worker=None if batch is None else batch.worker,
        batch_ms=None if batch is None else _made_ms(batch),
        usual_batch_ms=median(map(_made_ms, nearby)) if batch is not None and nearby else None,
        begun_before_ms=None if batch is None else (began_ns - batch.started_ns) / 1e6,
    )


def _handed_last(batches: Sequence[WorkerBatch], start_ns: float, end_ns: float) -> WorkerBatch | None:
    """The batch that came in last: batches are given in order, so the wait ends with the one that was missing."""
    handed = [batch for batch in batches if batch.handed_ns is not None and start_ns <= batch.handed_ns <= end_ns]
    return max(handed, key=lambda batch: batch.handed_ns or 0, default=None)


def _made_ms(batch: WorkerBatch) -> float:
    return (batch.fetch_ns + batch.collate_ns) / 1e6
