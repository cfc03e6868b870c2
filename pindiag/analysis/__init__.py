"""From records to figures and facts: pure functions, the same for a run that ended and one that was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pindiag import race
from pindiag.analysis import drawing, environment, facts, gaps, recommend, summary, trials
from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.trace import Event
from pindiag.model import Ablation, Analysis, AnyRecord, Ceilings, PatchVerification, RunSpec, Trial, WorkerBatch

__all__ = ["Analysis", "analyse"]


def analyse(
    spec: RunSpec,
    records: Sequence[AnyRecord],
    worker_batches: Sequence[WorkerBatch],
    traces: Mapping[str, Sequence[Event] | str],
    places: Mapping[int, str],
    *,
    patch: PatchVerification | None = None,
) -> Analysis:
    """Everything that a run's records say, before rules judge it.

    Args:
        spec: what was asked.
        records: all journals, in the order of time; any record may be missing.
        worker_batches: what workers wrote into their rings.
        traces: events of the profiler windows by trial; a text is the reason why one could not be read.
        places: file name and line of each block's record.
        patch: what its patch gave, where that was measured.
    """
    run = RunEvidence(spec, records, worker_batches, traces)
    noise = recommend.noise_floor(run.journal)
    target = summary.target(run)
    told = facts.facts(run, noise, target)
    found = trials.trials(run, race.standings(run.journal) | race.beside(run.journal))
    analysis = Analysis(
        loader=summary.loader(run),
        baseline=run.journal.baseline_id,
        trials=found,
        blocks=trials.blocks(run, places),
        noise_floor=noise,
        ceilings=ceilings(found),
        facts=told,
        recommendation=recommend.recommendation(run.journal, found),
        verification=recommend.verification(run.journal),
        ranks=[],
        launches=summary.launches(run),
        not_measured=[],
        overhead=summary.overhead(run),
        environment=environment.environment(run, told),
        target=target,
        drawing=drawing.drawing(run),
        patch_verification=patch,
    )
    return msgspec.structs.replace(analysis, not_measured=gaps.not_measured(analysis, run))


def ceilings(found: Sequence[Trial]) -> Ceilings:
    """The ablations that ran."""

    def ran(ablation: Ablation) -> list[str]:
        return [trial.id for trial in found if trial.ablation == ablation and trial.status == "measured"]

    return Ceilings(
        compute_only=next(iter(ran("compute_only")), None),
        host_batch=ran("host_batch"),
        loader_only=ran("loader_only"),
    )
