"""Every null of the analysis by its JSON path, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pindiag.analysis.evidence import NO_LOADER, RunEvidence, TrialEvidence
from pindiag.analysis.facts import NO_PIN_RECORD, NO_SAMPLES, NO_WORKERS, NOT_PINNED
from pindiag.model import Analysis, NotMeasured, Trial

MEANT = frozenset(
    {"ablation", "tweak", "reason", "non_blocking", "prefetch_factor", "batch_size", "error", "error_step"}
)
"""Keys whose null is a statement, not a gap."""
WITHIN = ("loader", "noise_floor", "ceilings", "recommendation", "verification", "launches", "overhead", "environment")
FEW_ROUNDS = "an interval needs three rounds"
NEVER_PREDICTED = "no ceiling was measured to predict from"


def not_measured(analysis: Analysis, run: RunEvidence) -> list[NotMeasured]:
    """What is null outside of facts (which carry their own reasons), and why."""
    content = {key: msgspec.to_builtins(getattr(analysis, key)) for key in ("trials", "baseline", *WITHIN)}
    gaps = [
        gap
        for number, (trial, evidence) in enumerate(zip(analysis.trials, run.trials, strict=True))
        for gap in _of_trial(content["trials"][number], f"trials[{number}]", trial, evidence)
    ]
    reasons = _reasons(analysis, run)
    for key in ("baseline", *WITHIN):
        gaps += [NotMeasured(key=path, reason=_longest(reasons, path)) for path in _nulls(content[key], key)]
    return gaps


def _nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in MEANT:
                yield from _nulls(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _nulls(inner, f"{path}[{number}]")


def _longest(reasons: Mapping[str, str], path: str) -> str:
    """The reason given for the path or the nearest thing around it, else for its last key."""
    around = [known for known in reasons if path.startswith(known)]
    last = path.rpartition(".")[2]
    return reasons[max(around, key=len)] if around else reasons.get(f"*.{last}", "not recorded")


def _of_trial(content: Any, path: str, trial: Trial, evidence: TrialEvidence) -> Iterator[NotMeasured]:
    reasons = _trial_reasons(evidence)
    for gap in _nulls(content, ""):
        if trial.status == "measured" or gap == ".predicted_samples_per_second":
            reason = _longest(reasons, gap)
        else:
            reason = trial.reason or "not run"
        if trial.status != "measured" or gap != ".predicted_samples_per_second":
            yield NotMeasured(key=f"{path}{gap}", reason=reason)


def _trial_reasons(evidence: TrialEvidence) -> dict[str, str]:
    configuration, totals = evidence.configuration, evidence.totals
    unread = next((read.reason for read in evidence.memory if read.reason), "it was not read")
    epoch = "the loader has no length" if evidence.startup_s is not None else "no first batch was timed"
    no_pinning = NO_PIN_RECORD if configuration.pin_memory else NOT_PINNED
    stages = {
        f".stage_ms.{stage}": totals.missing(f"{stage}_ms") or "not measured"
        for stage in ("wait", "transfer", "synchronise", "optimizer", "script")
    }
    return stages | {
        ".predicted_samples_per_second": NEVER_PREDICTED,
        ".samples_per_second.ci95": "an interval needs three blocks",
        ".versus_baseline": "no round had both it and the baseline",
        ".versus_baseline.ci95": FEW_ROUNDS,
        ".versus_baseline.p_corrected": "it is the baseline" if evidence.id == _baseline(evidence) else FEW_ROUNDS,
        ".gpu": evidence.gpu if isinstance(evidence.gpu, str) else "the trace does not tell",
        ".pin_thread_ms": totals.missing("pin_thread") or no_pinning,
        ".worker_ms": NO_WORKERS if not configuration.num_workers else "the workers left no ring",
        ".worker_ms.hand_off": "the rings do not tell it from idle",
        ".worker_ms.idle": "no worker fetched two batches in a counted part",
        ".memory_bytes": unread,
        ".memory_bytes.pinned": totals.missing("host_allocator") or no_pinning,
        ".sampler": NO_SAMPLES if evidence.sampler is None else "not offered by this platform",
        ".sampler.gpu_utilization": "NVML gave none" if evidence.run.has_accelerator else "no accelerator",
        ".sampler.worker": NO_WORKERS if not configuration.num_workers else "no worker lived through a counted part",
        ".sampler.pin_thread_cpu_percent": NOT_PINNED if not configuration.pin_memory else "no pin thread was seen",
        ".profiler": "no profiler window ran",
        ".profiler.trace": "no trace was written" if evidence.window is None else evidence.window.reason or "no trace",
        ".startup_s": "no first batch was timed",
        ".epoch_s": epoch,
    }


def _baseline(evidence: TrialEvidence) -> str | None:
    return evidence.run.journal.baseline_id


def _reasons(analysis: Analysis, run: RunEvidence) -> dict[str, str]:
    asked = "it was not asked for" if not run.spec.verify or not run.spec.sweep else None
    leads = analysis.recommendation is not None and analysis.recommendation.trial == analysis.baseline
    return {
        "loader": NO_LOADER,
        "loader.batches_per_epoch": "the loader has no length",
        "baseline": NO_LOADER,
        "noise_floor.ratio": analysis.noise_floor.source,
        "ceilings": "ablations need live launches",
        "recommendation": "the script as written was not measured",
        "recommendation.versus_baseline": FEW_ROUNDS,
        "verification": asked or ("no change was to be verified" if leads else "the budget left no time for a pair"),
        "verification.ci95": "an interval needs three pairs",
        "verification.agrees_with_live": "no live launches ran",
        "launches": "the target did not say how many epochs it ran",
        "overhead": "no block was counted",
        "overhead.sampler_cpu_share": "nothing was sampled",
        "environment.gpu": "no accelerator",
        "environment.cuda": "torch was built without CUDA",
        "environment": "the run did not record it",
    }
