"""The run as a whole: loader, launches, how the script fared, what measuring cost."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pindiag.analysis import endings
from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.other_loaders import other_loaders
from pindiag.analysis.samplers import sampler_cost
from pindiag.journal import Launch
from pindiag.model import (
    FilesSettled,
    LaunchFigures,
    LaunchStarted,
    LoaderFigures,
    Overhead,
    RunEnded,
    Sample,
    TargetEnded,
    TargetFailed,
    TargetFigures,
)

CUT = "its end was not recorded"


def loader(run: RunEvidence) -> LoaderFigures | None:
    """The training loader of the script as written."""
    if run.found is None:
        return None
    return LoaderFigures(
        chosen=run.found.key.location,
        why=run.found.why,
        others=run.found.others,
        batches_per_epoch=run.found.batches_per_epoch,
        sample_bytes=run.found.sample_bytes,
        batch_bytes=run.found.batch_bytes,
        beside=other_loaders(run),
        maker=None if run.made is None else run.made.maker,
    )


def launches(run: RunEvidence) -> list[LaunchFigures]:
    """All launches in their order."""
    return [_launch(launch) for launch in run.journal.launches]


def _launch(launch: Launch) -> LaunchFigures:
    ended, over, started = launch.ended, launch.first(TargetEnded), launch.first(LaunchStarted)
    return LaunchFigures(
        id=launch.id,
        isolation="fresh" if launch.order is None else launch.order.isolation,
        pid=0 if started is None else started.pid,
        epochs=None if over is None else over.epochs,
        exit=CUT if ended is None else ended.exit,
        status="interrupted" if ended is None else ended.status,
        purpose=None if launch.order is None else launch.order.purpose,
        reason=endings.in_words(launch),
        stacks=None if ended is None else ended.stacks,
    )


def target(run: RunEvidence) -> TargetFigures:
    """How the script fared under its own configuration.

    It failed when a launch as written gave nothing: the first, or two of them where others went well. What another
    treatment's block ended in a live launch is that treatment's failure.
    """
    own = [launch for launch in run.journal.launches if _as_written(launch)]
    broken = [launch for launch in own if _broken(launch)]
    failed = len(broken) > (1 if any(launch.measured for launch in own) else 0)
    last = (broken if failed else own)[-1:]
    ended = last[0].ended if last else None
    failure = last[0].first(TargetFailed) if last and failed else None
    over = run.journal.ended
    interrupted = over is None or over.status != "ok"
    return TargetFigures(
        exit=_cut(over) if ended is None else ended.exit,
        status="failed" if failed else "interrupted" if interrupted else "ok",
        files_changed=_files(run),
        error=_error(failure, last) if failed else None,
        error_step=None if failure is None else failure.step,
    )


def _cut(over: RunEnded | None) -> str:
    return CUT if over is None or over.reason is None else f"cut with the run: {over.reason}"


def _as_written(launch: Launch) -> bool:
    """Whether what it ran last was the script's own configuration."""
    pending = launch.unfinished
    treatment = launch.treatment if pending is None else launch.trial_of(pending)
    return treatment is None or (treatment.kind == "configuration" and not treatment.changes)


def _broken(launch: Launch) -> bool:
    ended = launch.ended
    return not launch.measured and not launch.past_natural_end and ended is not None and ended.status == "failed"


def _error(failure: TargetFailed | None, last: Sequence[Launch]) -> str | None:
    if failure is not None:
        return failure.traceback or f"{failure.exception}: {failure.message}"
    return last[0].ended.reason if last and last[0].ended is not None else None


def _files(run: RunEvidence) -> list[str]:
    settled = [record for launch in [run.journal.run, *run.journal.launches] for record in launch.all(FilesSettled)]
    return sorted({path for record in settled for path in [*record.restored, *record.moved, *record.listed]})


def overhead(run: RunEvidence) -> Overhead:
    """What measuring cost the target."""
    blocks = [block for launch in run.journal.launches for block in launch.counted]
    steps = sum(block.steps for block in blocks)
    spent_us = sum(block.probe_us_per_step * block.steps for block in blocks)
    costs = [sampler_cost(launch.all(Sample)) for launch in run.journal.launches]
    known = [cost for cost in costs if cost is not None]
    return Overhead(
        probe_us_per_step=spent_us / steps if steps else None,
        share_of_step=spent_us / 1e6 / sum(block.seconds for block in blocks) if steps else None,
        sampler_cpu_share=fmean(known) if known else None,
    )
