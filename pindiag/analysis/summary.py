"""The run as a whole: loader, launches, how the script fared, what measuring cost."""

from __future__ import annotations

from statistics import fmean

from pindiag.analysis import endings
from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.failures import failed_launch, launches_as_written
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
    """How the script fared under its own configuration."""
    failed = failed_launch(run)
    own = launches_as_written(run)
    last = failed or (own[-1] if own else None)
    ended = None if last is None else last.ended
    failure = None if failed is None else failed.first(TargetFailed)
    over = run.journal.ended
    interrupted = over is None or over.status != "ok"
    return TargetFigures(
        exit=_cut(over) if ended is None else ended.exit,
        status="failed" if failed is not None else "interrupted" if interrupted else "ok",
        files_changed=_files(run),
        error=None if failed is None else _error(failure, failed),
        error_step=None if failure is None else failure.step,
    )


def _cut(over: RunEnded | None) -> str:
    return CUT if over is None or over.reason is None else f"cut with the run: {over.reason}"


def _error(failure: TargetFailed | None, failed: Launch) -> str | None:
    if failure is not None:
        return failure.traceback or f"{failure.exception}: {failure.message}"
    return None if failed.ended is None else failed.ended.reason


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
