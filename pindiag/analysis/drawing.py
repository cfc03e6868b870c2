"""What the HTML report draws beyond report.json: the machine over time, and some steps of one trial."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from pindiag.analysis.evidence import RunEvidence, TrialEvidence
from pindiag.analysis.intervals import spans, union
from pindiag.analysis.trace import NEXT_BATCH, Event, window
from pindiag.analysis.workers import during
from pindiag.model import Band, Drawing, Process, Sample, Series, Span, WorkerBatch

STEPS_DRAWN = 4
KERNEL_GAP_US = 20.0
"""Kernels closer than this are drawn as one bar; between two launches there is always a little."""
LONGEST_LIST = 1500
NO_STEP = "no step was measured"


def drawing(run: RunEvidence) -> Drawing:
    """Series of the whole run, and a timeline of the baseline from its trace or, without one, from its records."""
    series = _series(run)
    trial = _drawn_trial(run)
    timeline = [] if trial is None else list(_timeline(trial))
    return Drawing(
        series=series,
        series_reason=None if series is not None else "nothing was sampled",
        timeline=timeline,
        timeline_reason=None if timeline else NO_STEP,
        timeline_trial=trial.id if trial is not None and timeline else None,
    )


# ------------------------------------------------------------------------------------------ the machine over time


def _series(run: RunEvidence) -> Series | None:
    if len(run.samples) < 2:
        return None
    begin = run.samples[0].t_ns
    pairs = [
        (before, after)
        for launch in run.journal.launches
        for samples in [launch.all(Sample)]
        for before, after in itertools.pairwise(samples)
        if after.t_ns > before.t_ns
    ]
    pairs = pairs[:: max(1, -(-len(pairs) // LONGEST_LIST))]

    def of_machine(reading: Callable[[Sample], float | None]) -> list[float | None]:
        return [_growth(reading(before), reading(after), before, after) for before, after in pairs]

    def level(reading: Callable[[Sample], float | None]) -> list[float | None]:
        return [reading(after) for _, after in pairs]

    return Series(
        t_s=[(after.t_ns - begin) / 1e9 for _, after in pairs],
        main_cpu_percent=[_cpu_percent(before, after, "main") for before, after in pairs],
        workers_cpu_percent=[_cpu_percent(before, after, "worker") for before, after in pairs],
        rss_bytes=level(lambda sample: sum(process.rss_bytes for process in sample.processes) or None),
        memory_available_bytes=level(lambda sample: sample.memory_available_bytes),
        gpu_utilization=level(lambda sample: sample.gpu_utilization),
        psi_cpu_share=of_machine(lambda sample: sample.psi_cpu_s),
        psi_io_share=of_machine(lambda sample: sample.psi_io_s),
        psi_memory_share=of_machine(lambda sample: sample.psi_memory_s),
        bands=[
            Band(
                block=block.block,
                trial=run.journal.trial(block.trial),
                start_s=(block.started_ns - begin) / 1e9,
                end_s=(block.ended_ns - begin) / 1e9,
            )
            for launch in run.journal.launches
            for block in launch.counted
        ],
    )


def _growth(first: float | None, last: float | None, before: Sample, after: Sample) -> float | None:
    if first is None or last is None:
        return None
    return max(last - first, 0.0) / ((after.t_ns - before.t_ns) / 1e9)


def _cpu_percent(before: Sample, after: Sample, role: str) -> float | None:
    known: dict[int, Process] = {process.pid: process for process in before.processes}
    grown = [
        process.cpu_s - known[process.pid].cpu_s
        for process in after.processes
        if process.role == role and process.pid in known
    ]
    return 100 * max(sum(grown), 0.0) / ((after.t_ns - before.t_ns) / 1e9) if grown else None


# ---------------------------------------------------------------------------------------------------- the timeline


def _drawn_trial(run: RunEvidence) -> TrialEvidence | None:
    baseline = run.baseline()
    return baseline if baseline is not None and baseline.blocks else None


def _timeline(trial: TrialEvidence) -> Iterator[Span]:
    trace = trial.run.traces.get(trial.id)
    if trace is not None and not isinstance(trace, str) and not isinstance(trial.gpu, str):
        yield from _from_trace(trace)
    else:
        yield from _from_records(trial)


def _from_trace(events: Sequence[Event]) -> Iterator[Span]:
    """Some steps in the middle of the window; time 0 is where the first of them begins."""
    bounds = window(events)
    fetches = sorted((event for event in events if event.name.startswith(NEXT_BATCH)), key=lambda event: event.ts)
    if bounds is None or not fetches:
        return
    first = max((len(fetches) - STEPS_DRAWN) // 2, 0)
    begin = fetches[first].ts
    end = fetches[first + STEPS_DRAWN].ts if first + STEPS_DRAWN < len(fetches) else bounds[1]
    main = fetches[0].tid
    shown = [event for event in events if event.ts < end and event.ts + event.dur > begin]

    def bar(lane: str, name: str, start: float, stop: float) -> Span:
        start, stop = max(start, begin), min(stop, end)
        return Span(lane=lane, name=name, start_ms=(start - begin) / 1e3, end_ms=(stop - begin) / 1e3)

    for event in shown:
        if lane := _lane(event, main):
            yield bar(lane[0], lane[1], event.ts, event.ts + event.dur)
    for start, stop in union(spans(event for event in shown if event.cat == "kernel"), KERNEL_GAP_US).tolist():
        yield bar("kernels", "kernels", start, stop)


def _lane(event: Event, main: int | str) -> tuple[str, str] | None:
    """The lane and the name of a bar, for events that are drawn by themselves."""
    if event.cat == "gpu_memcpy":
        return "copies", event.name
    if event.name == "aten::pin_memory" and event.tid != main:
        return "pin thread", "pin"
    if event.tid != main:
        return None
    if event.name.startswith(NEXT_BATCH):
        return "main", "wait"
    if event.cat == "user_annotation" and event.name.startswith("Optimizer.step"):
        return "main", "optimizer"
    return ("main", "transfer") if event.name == "aten::to" and event.cat == "cpu_op" else None


def _from_records(trial: TrialEvidence) -> Iterator[Span]:
    """Some steps from the middle of a block and what the workers did then; time 0 is where they begin."""
    block = trial.blocks[0]
    first = max((len(block.step_ms) - STEPS_DRAWN) // 2, 0)
    drawn = range(first, min(first + STEPS_DRAWN, len(block.step_ms)))
    begin = sum(block.step_ms[:first])
    position = 0.0
    for number in drawn:
        wait = min(block.step_wait_ms[number], block.step_ms[number])
        yield Span(lane="main", name="wait", start_ms=position, end_ms=position + wait)
        yield Span(lane="main", name="step", start_ms=position + wait, end_ms=position + block.step_ms[number])
        position += block.step_ms[number]
    before_ns = block.started_ns - (block.ended_ns - block.started_ns)
    for batch in during(trial.run.batches.get(block.launch, []), before_ns, block.ended_ns):
        yield from _worker_bars(batch, block.started_ns / 1e6 + begin, position)


def _worker_bars(batch: WorkerBatch, begin_ms: float, length_ms: float) -> Iterator[Span]:
    start = batch.started_ns / 1e6 - begin_ms
    fetched = start + batch.fetch_ns / 1e6
    for name, left, right in (("fetch", start, fetched), ("collate", fetched, fetched + batch.collate_ns / 1e6)):
        if right > 0 and left < length_ms and right > left:
            yield Span(lane=f"worker {batch.worker}", name=name, start_ms=max(left, 0.0), end_ms=min(right, length_ms))
