"""How long the GPU had nothing to do because the script waited for a batch, by events on its own clock."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag.analysis.evidence import REPLAYED, TrialEvidence
from pindiag.analysis.fact import fact as _fact
from pindiag.model import Fact

NOT_RECORDED = "recorded before the GPU's own clock was asked"


def of_starvation(trial: TrialEvidence) -> Iterator[Fact]:
    """In a mean step, and as a share of it.

    All steps tell how long they waited, a sample of them how much of that the GPU was starved: the mean step's wait,
    times that part of it.
    """
    sampled = [block for block in trial.blocks if block.starvation is not None]
    told = [block.starvation for block in sampled if block.starvation is not None]
    waited_ms, starved_ms = sum(each.wait_ms for each in told), sum(each.starved_ms for each in told)
    wait_ms, step_ms = trial.totals.stage_ms("wait_ms"), trial.totals.step_ms
    mean_ms = share = None
    if told and wait_ms is not None and step_ms:
        mean_ms = wait_ms * starved_ms / waited_ms if waited_ms > 0 else 0.0
        share = mean_ms / step_ms
    source = _source(trial, sum(each.sampled_steps for each in told))
    yield _fact("gpu_starved_ms", mean_ms, "ms", source, _reason(trial), trial=trial.id)
    yield _fact("gpu_starved_share", share, "1", source, _reason(trial), trial=trial.id)


def _source(trial: TrialEvidence, sampled_steps: int) -> str:
    if not sampled_steps:
        return trial.source
    return f"events around the wait in {sampled_steps} of {trial.totals.steps} steps; {trial.source}"


def _reason(trial: TrialEvidence) -> str:
    if not trial.run.has_accelerator:
        return "no accelerator"
    return trial.totals.missing("starvation") or (REPLAYED if trial.replayed else NOT_RECORDED)
