"""Trials of the report: one treatment each, measured, failed or skipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, get_args

from pindiag import race
from pindiag.analysis.disturbances import marks
from pindiag.analysis.evidence import RunEvidence, TrialEvidence, left_out
from pindiag.gate import safety, unsafe
from pindiag.journal import Launch
from pindiag.model import (
    Block,
    BlockFigures,
    Estimate,
    Isolation,
    MemoryBytes,
    ProfilerFigures,
    Ratio,
    Safety,
    Trial,
)
from pindiag.stats import Mean, geometric_mean, median

OVER_EPOCHS = "compared over whole epochs only: blocks of steps leave out the start of workers, which it saves"


def trials(run: RunEvidence, ratios: Mapping[str, Mean]) -> list[Trial]:
    """All trials, the baseline first."""
    racing = {isolation: _last_members(run, isolation) for isolation in get_args(Isolation)}
    return [_trial(evidence, ratios.get(evidence.id), racing[evidence.isolation]) for evidence in run.trials]


def _last_members(run: RunEvidence, isolation: Isolation) -> set[str]:
    """Configurations that the last round of the race was to run."""
    competing = {trial.id for trial in run.trials if trial.treatment.competes}
    competing -= {run.journal.baseline_id}
    orders = [order for launch in run.journal.launches if launch.isolation == isolation for order in launch.orders]
    rounds = [competing & {made.id for made in order.planned} - order.skipped.keys() for order in orders]
    return next((members for members in reversed(rounds) if members), competing)


def _trial(evidence: TrialEvidence, ratio: Mean | None, racing: Collection[str]) -> Trial:
    status, reason = _status(evidence, racing)
    profiled = evidence.window
    workers = evidence.workers
    return Trial(
        id=evidence.id,
        kind=evidence.treatment.kind,
        configuration=evidence.configuration,
        ablation=evidence.treatment.ablation,
        tweak=evidence.treatment.tweak,
        isolation=evidence.isolation,
        status=status,
        reason=reason,
        blocks=[block.block for block in evidence.blocks],
        steps=evidence.totals.steps,
        samples_per_second=estimate(evidence.rates) if evidence.rates else None,
        versus_baseline=_ratio(evidence, ratio),
        predicted_samples_per_second=evidence.predicted,
        stage_ms=evidence.totals.stages(),
        gpu=None if isinstance(evidence.gpu, str) else evidence.gpu,
        pin_thread_ms=evidence.totals.pin_thread(),
        worker_ms=None if workers is None else workers.mean_ms,
        memory_bytes=MemoryBytes(
            pss=evidence.memory_bytes("pss_bytes"),
            pinned=evidence.pinned_bytes,
            shm=evidence.memory_bytes("shm_bytes"),
        ),
        sampler=evidence.sampler,
        profiler=None
        if profiled is None
        else ProfilerFigures(steps=profiled.steps, trace=profiled.trace, reason=profiled.reason),
        startup_s=evidence.startup_s,
        epoch_s=epoch_s(evidence),
        safety=_safety(evidence),
    )


def _safety(evidence: TrialEvidence) -> Safety | None:
    journal, made = evidence.run.journal, evidence.treatment
    return safety(journal, made) if made.kind == "configuration" and made.id != journal.baseline_id else None


def _status(
    evidence: TrialEvidence, racing: Collection[str]
) -> tuple[Literal["measured", "failed", "skipped", "predicted"], str | None]:
    journal = evidence.run.journal
    if evidence.blocks:
        over_epochs = OVER_EPOCHS if evidence.over_epochs_only else None
        return "measured", _not_recommended(evidence) or over_epochs or _left_early(evidence, racing)
    if evidence.failure is not None:
        return "failed", evidence.failure
    reason = evidence.refused or journal.skipped.get(evidence.id)
    if evidence.predicted is not None and evidence.id in journal.skipped:
        return "predicted", reason
    in_order = journal.ended is not None and journal.ended.status == "ok"
    return "skipped", reason or ("the budget left no time for it" if in_order else "the run was cut before its turn")


def _not_recommended(evidence: TrialEvidence) -> str | None:
    reason = unsafe(evidence.run.journal, evidence.id)
    return None if reason is None else f"not recommended: {reason}"


def _left_early(evidence: TrialEvidence, racing: Collection[str]) -> str | None:
    """Why what was measured has fewer rounds than others."""
    journal, own = evidence.run.journal, max(block.round for block in evidence.blocks)
    if evidence.failure is not None and evidence.broke:
        return f"failed after round {own}: {evidence.failure}"
    if evidence.id in racing or not evidence.treatment.competes or evidence.id == journal.baseline_id:
        return None
    why = evidence.refused or journal.skipped.get(evidence.id)
    return f"left the race after round {own}, behind others" if why is None else f"left after round {own}: {why}"


def estimate(rates: list[float]) -> Estimate:
    """Median samples/s with the t-interval of their logarithms."""
    return Estimate(median=median(rates), ci95=geometric_mean(rates).ci95)


def ratio_of(mean: Mean) -> Ratio:
    """A paired ratio as the report shows it."""
    return Ratio(ratio=mean.value, ci95=mean.ci95, rounds=mean.count, p_corrected=mean.p)


def _ratio(evidence: TrialEvidence, ratio: Mean | None) -> Ratio | None:
    if evidence.id == evidence.run.journal.baseline_id and evidence.blocks:
        return Ratio(ratio=1.0, ci95=(1.0, 1.0), rounds=len({block.round for block in evidence.blocks}))
    if evidence.over_epochs_only:
        ratio = race.verification(evidence.run.journal, evidence.id)
    return None if ratio is None else ratio_of(ratio)


def epoch_s(evidence: TrialEvidence) -> float | None:
    """Time of an epoch of natural length under a configuration.

    Workers start anew in each unless they persist, which they cannot where the script makes its loader anew.
    """
    found = evidence.run.found
    if evidence.treatment.kind != "configuration":
        return None
    if found is None or found.batches_per_epoch is None or not evidence.rates:
        return None
    running = found.batches_per_epoch * found.batch_samples / median(evidence.rates)
    rebuilt = evidence.run.loop is not None and evidence.run.loop.rebuilt
    if evidence.configuration.persistent_workers and not rebuilt:
        return running
    return None if evidence.startup_s is None else running + evidence.startup_s


def blocks(run: RunEvidence, places: Mapping[int, str]) -> list[BlockFigures]:
    """Every block with the place of its record."""
    said = marks(run)
    return [
        _block(run, launch, block, places.get(block.block, "not in a journal"), said.get(block.block))
        for launch in run.journal.launches
        for block in launch.all(Block)
    ]


def _block(run: RunEvidence, launch: Launch, block: Block, place: str, mark: str | None) -> BlockFigures:
    reason = left_out(launch, block)
    out = reason is not None or block.block in launch.replaced
    return BlockFigures(
        id=block.block,
        launch=launch.id,
        round=block.round,
        trial=run.journal.trial(block.trial),
        settle_steps=block.settle_steps,
        steps=block.steps,
        samples=block.samples,
        seconds=block.seconds,
        status="left_out" if out else block.status,
        reason=reason or block.reason or "; ".join(([mark] if mark else []) + block.notes) or None,
        purpose=launch.purpose,
        journal=place,
        covers="steps" if block.epochs is None else "whole epochs",
    )
