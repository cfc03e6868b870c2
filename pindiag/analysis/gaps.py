"""Every null of the analysis by its JSON path, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pindiag.analysis import environment
from pindiag.analysis.evidence import NO_LOADER, REPLAYED, RunEvidence, TrialEvidence
from pindiag.analysis.facts import NO_LIVE
from pindiag.analysis.gpu import with_cure
from pindiag.analysis.machine_facts import NO_SAMPLES, NO_WORKER, NOT_OFFERED, SAMPLED, no_nvml, not_sampled
from pindiag.analysis.other_loaders import NEVER_READ, NOT_BESIDE
from pindiag.analysis.pipeline_facts import NO_HAND_OFF, NO_PIN_RECORD, NO_RING, NOT_PINNED
from pindiag.analysis.stages import STAGE_FIELDS
from pindiag.analysis.workers import FIRST_FORMAT
from pindiag.model import Ablation, Analysis, NotMeasured, Trial

MEANT = frozenset(
    {"ablation", "tweak", "reason", "non_blocking", "prefetch_factor", "batch_size"}
    | {"error", "error_step", "maker", "stacks"}
)
"""Keys whose null is a statement, not a gap."""
WITHIN = (
    *("loader", "noise_floor", "ceilings", "recommendation", "verification", "patch_verification", "launches"),
    *("overhead", "environment"),
)
WHERE_NOTHING_IS_A_GAP = ("ceilings.host_batch", "ceilings.loader_only")
STEPS_COMPARED = (
    "blocks of steps were compared: two whole epochs do not fit a launch's share of the budget, or --steps or the "
    "loader's unknown length leave none to be counted"
)
FEW_ROUNDS = "an interval needs three rounds"


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
        if not value and path in WHERE_NOTHING_IS_A_GAP:
            yield path
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
        if gap == ".predicted_samples_per_second":
            if trial.status != "measured":
                yield NotMeasured(key=f"{path}{gap}", reason="nothing was predicted of it")
        else:
            reason = _longest(reasons, gap) if trial.status == "measured" else trial.reason or "not run"
            yield NotMeasured(key=f"{path}{gap}", reason=reason)


def _trial_reasons(evidence: TrialEvidence) -> dict[str, str]:
    configuration, totals = evidence.configuration, evidence.totals
    unread = next((read.reason for read in evidence.memory if read.reason), "it was not read")
    epoch = "the loader has no length" if evidence.startup_s is not None else "no first batch was timed"
    no_pinning = REPLAYED if evidence.replayed else NO_PIN_RECORD if configuration.pin_memory else NOT_PINNED
    special = evidence.treatment.kind != "configuration"
    no_workers = evidence.without_workers
    stages = {
        f".stage_ms.{stage}": totals.missing(field) or "not measured"
        for stage, field in {**STAGE_FIELDS, "script": "script_ms"}.items()
    }
    sampled = {f".sampler.{field}": not_sampled(evidence.run, key) for field, (key, _) in SAMPLED.items()}
    return (stages | sampled) | {
        ".samples_per_second.ci95": "an interval needs three blocks",
        ".versus_baseline": "no round had both it and the baseline",
        ".versus_baseline.ci95": FEW_ROUNDS,
        ".versus_baseline.p_corrected": "it is the baseline" if evidence.id == _baseline(evidence) else FEW_ROUNDS,
        ".gpu": evidence.gpu if isinstance(evidence.gpu, str) else "the trace does not tell",
        ".pin_thread_ms": totals.missing("pin_thread") or no_pinning,
        ".worker_ms": no_workers or NO_RING,
        ".worker_ms.hand_off": NO_HAND_OFF if evidence.workers is None else evidence.workers.untold or NO_HAND_OFF,
        ".worker_ms.idle": FIRST_FORMAT,
        ".memory_bytes": unread,
        ".memory_bytes.pinned": totals.missing("host_allocator") or no_pinning,
        ".sampler": NO_SAMPLES if evidence.sampler is None else NOT_OFFERED,
        ".sampler.gpu": no_nvml(evidence.run),
        ".sampler.pcie": no_nvml(evidence.run),
        ".sampler.worker": no_workers or NO_WORKER,
        ".sampler.pin_thread_cpu_percent": NOT_PINNED if not configuration.pin_memory else "no pin thread was seen",
        ".profiler": "no profiler window ran",
        ".profiler.trace": "no trace was written"
        if evidence.window is None
        else with_cure(evidence.window.reason or "no trace"),
        ".startup_s": REPLAYED if evidence.replayed else "no first batch was timed",
        ".epoch_s": "an epoch is reckoned for configurations alone" if special else epoch,
    }


def _baseline(evidence: TrialEvidence) -> str | None:
    return evidence.run.journal.baseline_id


def _reasons(analysis: Analysis, run: RunEvidence) -> dict[str, str]:
    asked = "it was not asked for" if not run.spec.verify or not run.spec.sweep else None
    recommended = analysis.recommendation
    leads = recommended is not None and recommended.tweak is None and recommended.trial == analysis.baseline
    never_live = "it had no live round together with the baseline"
    verified, patch = analysis.verification, analysis.patch_verification
    others = [] if analysis.loader is None else analysis.loader.beside
    of_facts = environment.reasons(run, analysis.facts)
    return (
        of_facts
        | {f"loader.beside[{number}]": other.reason or NEVER_READ for number, other in enumerate(others)}
        | {f"loader.beside[{number}].step_wait_ms": NOT_BESIDE for number, other in enumerate(others) if other.batches}
        | {
            "loader": NO_LOADER,
            "loader.batches_per_epoch": "the loader has no length",
            "baseline": NO_LOADER,
            "noise_floor.ratio": analysis.noise_floor.source,
            "ceilings.compute_only": _no_ceiling(analysis, run, "compute_only"),
            "ceilings.host_batch": _no_ceiling(analysis, run, "host_batch"),
            "ceilings.loader_only": _no_ceiling(analysis, run, "loader_only"),
            "recommendation": "the script as written was not measured",
            "recommendation.versus_baseline": FEW_ROUNDS,
            "verification": asked
            or ("no change was to be verified" if leads else "the budget left no time for a pair"),
            "verification.ci95": "an interval needs three pairs",
            "patch_verification": "`pindiag run --verify-patch` was not asked for",
            "patch_verification.ratio": (patch and patch.reason) or "",
            "patch_verification.ci95": (patch and patch.reason) or "an interval needs three pairs",
            "patch_verification.epochs": (patch and patch.reason) or STEPS_COMPARED,
            "verification.epochs": STEPS_COMPARED,
            "verification.steady_ratio": "its epochs are hardly longer than its queue",
            "verification.steady_ci95": "an interval needs three pairs",
            "verification.live_ratio": never_live,
            "verification.live_ci95": FEW_ROUNDS if verified and verified.live_ratio is not None else never_live,
            "verification.agrees_with_live": "intervals need three rounds and three pairs"
            if verified and verified.live_ratio is not None
            else never_live,
            "*.epochs": "the target did not say how many epochs it ran",
            "*.purpose": "its order was not recorded",
            "overhead": "no block was counted",
            "overhead.sampler_cpu_share": "nothing was sampled",
            "environment.gpu": "no accelerator",
            "environment.cuda": "torch was built without CUDA",
            "environment": "the run did not record it",
        }
    )


def _no_ceiling(analysis: Analysis, run: RunEvidence, ablation: Ablation) -> str:
    """Why no trial of an ablation was measured."""
    tried = next((trial for trial in analysis.trials if trial.ablation == ablation), None)
    if tried is not None and tried.status != "measured":
        return tried.reason or "not run"
    if run.spec.fresh:
        return "ablations need live launches, and --fresh was asked for"
    if not any(launch.isolation == "live" for launch in run.journal.launches):
        return f"ablations need live launches, and {NO_LIVE}"
    if ablation == "host_batch" and run.found is not None and not run.has_accelerator:
        return "without an accelerator no batch is copied to one"
    return "the run ended before its turn"
