"""A step explained: typical steps and the slowest one, with workers, threads and streams as lanes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import numpy as np

from pindiag.analysis.evidence import TrialEvidence
from pindiag.analysis.intervals import Spans, spans, union
from pindiag.analysis.slow_steps import SLOW, aligned, slow_steps
from pindiag.analysis.trace import NEXT_BATCH, Event, monotonic_us
from pindiag.analysis.who_waits import who_waits
from pindiag.analysis.workers import during
from pindiag.model import Block, Span, Waits, WorkerBatch

TYPICAL_STEPS = 3
STEPS_AROUND = 8
"""So many on each side of the typical ones are looked at as well to say who waits for whom."""
MOST_BEFORE = 2.0
"""So many lengths of the slowest step are shown before it."""
HAIR = 1 / 1500
"""Of what is drawn: what is shorter would not be seen."""
WIDENED = ("copies", "kernels")
NO_STEP = "no step was measured"
FROM_RECORDS = (
    "From the counted blocks: the probe's records of the main thread and of the workers, on one clock. "
    "There is no profiler window to tell more of the step: {reason}."
)


@dataclass(frozen=True)
class Steps:
    """Typical steps and the slowest."""

    typical: list[Span]
    marks_ms: list[float]
    """Where each typical step begins, and the last one ends."""
    waits: Waits | None
    slowest: list[Span]
    slowest_over_median: float | None
    slowest_marks_ms: list[float]
    """Where the slowest step begins and ends; bars before it show how its batch was made."""
    source: str


class _Recording(Protocol):
    @property
    def marks(self) -> Sequence[float]:
        """Microseconds at which steps begin, and the last one ends."""

    @property
    def source(self) -> str:
        """Where its bars come from."""

    def bars(self, begin: float, end: float) -> Iterator[Span]:
        """What was done between two moments; time 0 is the first."""


def steps(trial: TrialEvidence) -> Steps | None:
    """Steps of a trial from its profiler window or, without one, from its records; None where no step was seen."""
    found = _recording(trial)
    if found is None:
        return None
    lengths = [after - before for before, after in itertools.pairwise(found.marks)]
    first = nearest_the_median(lengths, TYPICAL_STEPS)
    last = min(first + TYPICAL_STEPS, len(lengths))
    begin = found.marks[first]
    slowest = _slowest_counted(trial) or _slowest_traced(found, lengths)
    wide = found.marks[max(first - STEPS_AROUND, 0) : last + STEPS_AROUND + 1]
    return Steps(
        typical=_drawn(found, begin, found.marks[last]),
        marks_ms=[(mark - begin) / 1e3 for mark in found.marks[first : last + 1]],
        waits=who_waits(
            list(found.bars(wide[0], wide[-1])), (wide[-1] - wide[0]) / 1e3, workers=trial.configuration.num_workers > 0
        ),
        slowest=[] if slowest is None else slowest.bars,
        slowest_over_median=None if slowest is None else slowest.over_median,
        slowest_marks_ms=[] if slowest is None else slowest.marks_ms,
        source=found.source,
    )


@dataclass(frozen=True)
class _Slowest:
    bars: list[Span]
    over_median: float
    marks_ms: list[float]


def _slowest_counted(trial: TrialEvidence) -> _Slowest | None:
    """The slowest step of all counted blocks, from when its batch was begun."""
    told = slow_steps(trial)
    if told is None or not told.shown or not aligned(told.block):
        return None
    slow, recorded = told.shown[0], _Recorded(trial, told.block)
    start, end = recorded.marks[slow.step - 1], recorded.marks[slow.step]
    earlier_us = min(max(1e3 * (slow.begun_before_ms or 0.0), 0.0), MOST_BEFORE * (end - start))
    begin = max(start - earlier_us, recorded.marks[0])
    return _Slowest(
        _drawn(recorded, begin, end), slow.ms / slow.usual_ms, [0.0, (start - begin) / 1e3, (end - begin) / 1e3]
    )


def _slowest_traced(found: _Recording, lengths: Sequence[float]) -> _Slowest | None:
    slow = stands_out(lengths)
    if slow is None:
        return None
    begin, end = found.marks[slow], found.marks[slow + 1]
    return _Slowest(_drawn(found, begin, end), lengths[slow] / median(lengths), [0.0, (end - begin) / 1e3])


def _drawn(found: _Recording, begin: float, end: float) -> list[Span]:
    return drawable(found.bars(begin, end), (end - begin) / 1e3)


def _recording(trial: TrialEvidence) -> _Recording | None:
    if not isinstance(trial.trace, str):
        traced = _Traced(trial, trial.trace)
        if len(traced.marks) > 1:
            return traced
    timed = sorted((block for block in trial.blocks if block.step_ms), key=lambda block: not aligned(block))
    return _Recorded(trial, timed[0]) if timed else None


def nearest_the_median(lengths: Sequence[float], count: int) -> int:
    """Where those `count` steps in a row begin that are, together, nearest the median of all."""
    middle = median(lengths)
    off = [abs(step - middle) for step in lengths]
    return min(range(max(len(off) - count, 0) + 1), key=lambda first: sum(off[first : first + count]))


def stands_out(lengths: Sequence[float]) -> int | None:
    """The slowest step, where it is much slower than the median."""
    slowest = max(range(len(lengths)), key=lengths.__getitem__)
    return slowest if lengths[slowest] > SLOW * median(lengths) else None


def _cut(lane: str, name: str, found: Spans, begin: float, end: float) -> Iterator[Span]:
    """Bars for what falls between two moments."""
    shown = np.clip(found[(found[:, 1] > begin) & (found[:, 0] < end)], begin, end)
    for start, stop in union(shown).tolist():
        yield Span(lane=lane, name=name, start_ms=(start - begin) / 1e3, end_ms=(stop - begin) / 1e3)


def drawable(bars: Iterable[Span], length_ms: float) -> list[Span]:
    """Bars as they are drawn, those of a lane and name in the order of time.

    Bars of one name that are closer than a hair become one. What is shorter is left out, but for copies and kernels,
    which are widened to be seen.
    """
    hair = length_ms * HAIR
    by_name: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for bar in bars:
        by_name[bar.lane, bar.name].append((bar.start_ms, bar.end_ms))
    return [
        Span(lane=lane, name=name, start_ms=start, end_ms=min(max(end, start + hair), length_ms))
        for (lane, name), times in by_name.items()
        for start, end in union(np.array(times), hair).tolist()
        if end - start >= hair or lane in WIDENED
    ]


class _Workers:
    """The workers of one launch.

    Args:
        batches: of that launch, in the order of time.
        offset_us: what takes the recording's times to the rings' clock.
    """

    def __init__(self, batches: Sequence[WorkerBatch], offset_us: float) -> None:
        self._batches = batches
        self._offset_us = offset_us

    def bars(self, begin: float, end: float) -> Iterator[Span]:
        """What they did; what is seen of a batch may be the wait before it, or what was begun long before."""
        reach = 10 * (end - begin)
        moments = (begin - reach + self._offset_us, end + reach + self._offset_us)
        shown = during(self._batches, *(round(moment * 1e3) for moment in moments))
        for batch in shown:
            for name, start_ns, length_ns in _stages(batch):
                start = start_ns / 1e3 - self._offset_us
                yield from _cut(
                    f"worker {batch.worker}", name, np.array([[start, start + length_ns / 1e3]]), begin, end
                )


def _stages(batch: WorkerBatch) -> Iterator[tuple[str, int, int]]:
    """Name, beginning and length of what a worker did for a batch."""
    collated_ns = batch.started_ns + batch.fetch_ns
    yield "idle", batch.started_ns - (batch.idle_ns or 0), batch.idle_ns or 0
    yield "fetch", batch.started_ns, batch.fetch_ns
    yield "collate", collated_ns, batch.collate_ns
    if batch.handed_ns is not None and batch.hand_off_ns is not None:
        sent_ns = batch.handed_ns - (batch.blocked_ns or 0)
        yield "hand-off", sent_ns - batch.hand_off_ns, batch.hand_off_ns
        yield "blocked", sent_ns, batch.blocked_ns or 0


class _Traced:
    """A profiler window; the bars of workers come from their rings."""

    def __init__(self, trial: TrialEvidence, events: Sequence[Event]) -> None:
        main = trial.main_thread
        self.marks: list[float] = []
        if main is None:
            return
        start, end = main.start, main.end
        fetches = sorted(event.ts for event in events if event.name.startswith(NEXT_BATCH) and event.ts >= start)
        # the last step ends with the profiler's own end
        self.marks = fetches if len(fetches) > 1 else [*fetches, end]
        self._main = main
        self._pins = spans(
            event for event in events if event.name == "aten::pin_memory" and event.tid != self._main.tid
        )
        self._copies = {
            kind: spans(event for event in events if event.cat == "gpu_memcpy" and kind in event.name)
            for kind in ("HtoD", "DtoH", "DtoD")
        }
        self._kernels = spans(event for event in events if event.cat == "kernel")
        offset_us = monotonic_us(events)
        batches = [] if trial.window is None else trial.run.batches.get(trial.window.launch, [])
        self._workers = None if offset_us is None or not batches else _Workers(batches, offset_us)
        self.source = "From the profiler window after the counted blocks, which slows the script but not the kernels."
        if self._workers is not None:
            self.source += " Workers are from their own records, aligned to some 10 µs."

    def bars(self, begin: float, end: float) -> Iterator[Span]:
        """What was done between two moments."""
        for name, found in self._main.lane.items():
            yield from _cut("main", name, found, begin, end)
        yield from _cut("pin thread", "pin", self._pins, begin, end)
        for name, found in self._copies.items():
            yield from _cut("copies", name, found, begin, end)
        yield from _cut("kernels", "kernels", self._kernels, begin, end)
        if self._workers is not None:
            yield from self._workers.bars(begin, end)


class _Recorded:
    """A counted block; what the main thread did besides waiting is not told step by step."""

    def __init__(self, trial: TrialEvidence, block: Block) -> None:
        self.source = FROM_RECORDS.format(
            reason=trial.trace if isinstance(trial.trace, str) else "its trace marks no two steps"
        )
        lengths_us = [1e3 * step for step in block.step_ms]
        self.marks = [block.started_ns / 1e3 + passed for passed in (0.0, *itertools.accumulate(lengths_us))]
        waits_us = [min(1e3 * wait, step) for wait, step in zip(block.step_wait_ms, lengths_us, strict=False)]
        began = np.array(self.marks[: len(waits_us)])
        waited = began + np.array(waits_us)
        self._waits = np.column_stack((began, waited))
        self._rest = np.column_stack((waited, self.marks[1 : len(waits_us) + 1]))
        self._workers = _Workers(trial.run.batches.get(block.launch, []), 0.0)

    def bars(self, begin: float, end: float) -> Iterator[Span]:
        """What was done between two moments."""
        yield from _cut("main", "wait", self._waits, begin, end)
        yield from _cut("main", "step", self._rest, begin, end)
        yield from self._workers.bars(begin, end)
