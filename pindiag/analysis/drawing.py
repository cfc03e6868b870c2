"""What the HTML report draws beyond report.json: the machine over time, and some steps of one trial."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pindiag.analysis.evidence import RunEvidence, TrialEvidence
from pindiag.analysis.samplers import resident
from pindiag.analysis.slow_steps import slow_steps
from pindiag.analysis.timeline import NO_STEP, steps
from pindiag.model import Band, Drawing, Sample, Series

LONGEST_LIST = 1500


def drawing(run: RunEvidence) -> Drawing:
    """Series of the whole run, and a timeline of the baseline from its trace or, without one, from its records."""
    series = _series(run)
    trial = _drawn_trial(run)
    shown = None if trial is None else steps(trial)
    slow = None if trial is None else slow_steps(trial)
    return Drawing(
        series=series,
        series_reason=None if series is not None else "nothing was sampled",
        timeline=[] if shown is None else shown.typical,
        timeline_reason=NO_STEP if shown is None else None,
        timeline_trial=None if trial is None or shown is None else trial.id,
        timeline_source=None if shown is None else shown.source,
        timeline_steps_ms=[] if shown is None else shown.marks_ms,
        timeline_waits=None if shown is None else shown.waits,
        slowest=[] if shown is None else shown.slowest,
        slowest_over_median=None if shown is None else shown.slowest_over_median,
        slowest_steps_ms=[] if shown is None else shown.slowest_marks_ms,
        slow_steps=[] if slow is None else slow.shown,
        slow_count=0 if slow is None else slow.count,
        step_count=0 if slow is None else slow.of,
        slow_every=None if slow is None else slow.every,
        strip_block=None if slow is None else slow.block.block,
        strip_ms=[] if slow is None else slow.block.step_ms,
        strip_wait_ms=[] if slow is None else slow.block.step_wait_ms,
    )


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
        rss_bytes=level(resident),
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
    known_s = {process.pid: process.cpu_s for process in before.processes}
    pairs = [(known_s.get(process.pid), process.cpu_s) for process in after.processes if process.role == role]
    grown = [last - first for first, last in pairs if first is not None and last is not None]
    return 100 * max(sum(grown), 0.0) / ((after.t_ns - before.t_ns) / 1e9) if grown else None


def _drawn_trial(run: RunEvidence) -> TrialEvidence | None:
    baseline = run.baseline()
    return baseline if baseline is not None and baseline.blocks else None
