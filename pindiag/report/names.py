"""The words that people read for what the model names in code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Configuration, Finding, Fix, Report, Trial, Tweak

STAGES = ("wait", "transfer", "pin", "synchronise", "optimizer", "script")
STAGE_WORDS = {
    "wait": "wait for the batch",
    "transfer": "transfer (host blocked)",
    "pin": "pinning by hand",
    "synchronise": "synchronise",
    "optimizer": "optimizer",
    "script": "the script's own part",
    "rest": "not told apart",
}
TRANSFER_CAUSES = frozenset(("pageable_copy", "missing_non_blocking", "sync_defeats_overlap", "pinned_alloc"))
"""Causes whose stage is the transfer; those of data are seen as waiting."""
ALONE = "Step alone"
"""The row of `compute_only`: what the loop reaches with batches that are already where the step wants them."""
STATUS_WORDS = {
    "confirmed": "Confirmed",
    "suspected": "Suspected",
    "not_settled": "Not settled",
    "ruled_out": "Ruled out",
    "not_applicable": "Not applicable",
    "error": "Not decided",
}
STATUS_MARKS = {
    "confirmed": "full",
    "suspected": "half",
    "not_settled": "none",
    "ruled_out": "out",
    "not_applicable": "na",
    "error": "none",
}
TWEAK_WORDS: Mapping[Tweak, str] = {
    "intraop_threads": "the main thread with all its threads",
    "lazy_sync": "without waiting for the device in each step",
    "worker_threads": "one native thread a worker",
    "fewer_intraop_threads": "the main thread with half its threads",
    "worker_affinity": "workers on all CPUs",
}
TWEAK_CAUSES: Mapping[Tweak, str] = {
    "intraop_threads": "intraop_threads_lost",
    "lazy_sync": "sync_defeats_overlap",
    "worker_threads": "native_threads_in_workers",
    "fewer_intraop_threads": "native_threads_in_workers",
    "worker_affinity": "affinity_collapsed",
}
"""The cause that a tweak takes away."""
_UNIT = re.compile(r"(?<!^)_(?:gb_per_s|bytes_per_s|per_s|ms|bytes|s)$")
_ACRONYMS = {"cpu": "CPU", "cpus": "CPUs", "gpu": "GPU", "psi": "PSI", "rss": "RSS", "pss": "PSS", "gb": "GB"}


_SPANS = {"HtoD": "to the GPU", "DtoH": "from the GPU", "DtoD": "on the GPU"}


def span(name: str) -> str:
    """What a bar of a timeline shows; a copy is named by its way."""
    return _SPANS.get(name, name)


def workers(count: int) -> str:
    """The number of workers in words: no workers, 1 worker, 4 workers."""
    return "no workers" if count == 0 else f"{count} worker{'s' * (count != 1)}"


def configuration(one: Configuration, *, with_batch: bool = False) -> str:
    """A configuration in words: 4 workers, pin, non_blocking."""
    parts = [workers(one.num_workers), "pin" if one.pin_memory else "pin off"]
    if one.non_blocking == "mixed":
        parts.append("partly non_blocking")
    elif one.non_blocking is not None and (one.non_blocking or one.pin_memory):
        parts.append("non_blocking" if one.non_blocking else "blocking")
    if one.num_workers and one.prefetch_factor not in (None, 2):
        parts.append(f"prefetch {one.prefetch_factor}")
    if one.persistent_workers:
        parts.append("persistent")
    if with_batch and one.batch_size is not None:
        parts.append(f"batch {one.batch_size}")
    return ", ".join(parts)


def trial(one: Trial, *, with_batch: bool = False) -> str:
    """A trial in words: its configuration, its ablation or its tweak."""
    own = one.configuration
    if one.tweak is not None:
        return f"{configuration(own)}; {TWEAK_WORDS[one.tweak]}"
    if one.ablation is None:
        return configuration(own, with_batch=with_batch)
    if one.ablation == "compute_only":
        return "step alone, replaying batches that are already there"
    if one.ablation == "loader_only":
        return f"loader alone, {workers(own.num_workers)}, {'pin' if own.pin_memory else 'pin off'}"
    asked = "" if own.non_blocking is None else ", non_blocking" if own.non_blocking else ", blocking"
    return f"copy and step, replaying {'pinned' if own.pin_memory else 'pageable'} batches{asked}"


def labels(trials: Sequence[Trial]) -> dict[str, str]:
    """Words of each trial; the batch size only where it is not that of the first, the script as written."""
    own = trials[0].configuration.batch_size if trials else None
    return {one.id: trial(one, with_batch=one.configuration.batch_size != own) for one in trials}


_NOT_RUN, _PREDICTED = "not run", "predicted at most"
_RATE = re.compile(r"\b\d{4,} samples/s")
"""A rate as a record says it: whole, and hard to read."""


def without_figures(one: Trial) -> str | None:
    """Why a trial has no throughput, and what was predicted of it; None where it has one."""
    if one.samples_per_second is not None:
        return None
    word = _NOT_RUN if one.status in ("skipped", "predicted") else one.status
    reason, most = (one.reason or "").removeprefix(f"{_NOT_RUN}: "), one.predicted_samples_per_second
    reason = _RATE.sub(lambda written: figures.rate(float(written[0].partition(" ")[0])), reason)
    predicted = "" if most is None or _PREDICTED in reason else f"{_PREDICTED} {figures.rate(most)}"
    said = "; ".join(part for part in (reason, predicted) if part)
    return f"{word}: {said}" if said else word


def words(name: str) -> str:
    """A fact's name as words, without its unit: worker fetch. What holds code or a trial's id stays as it is."""
    if not name.replace("_", "").isalnum():
        return name
    parts = [_ACRONYMS.get(part, part) for part in _UNIT.sub("", name).split("_")]
    return " ".join(parts)


def spoken_stage(finding: Finding | None) -> str:
    """The stage of the step that a finding speaks of; waiting where it names none."""
    if finding is None:
        return "wait"
    return "transfer" if finding.cause in TRANSFER_CAUSES else "script" if finding.cause == "compute_bound" else "wait"


def primary_finding(report: Report) -> Finding | None:
    """The finding that the verdict speaks of."""
    wanted = report.verdict.primary_cause
    return next((one for one in report.findings if one.cause == wanted), None)


def tweak_of(fix: Fix) -> Tweak | None:
    """The tweak that a fix writes into the script; None where it changes arguments."""
    return next((tweak for tweak in TWEAK_WORDS if tweak in fix.changes), None)


def finding_of(report: Report, tweak: Tweak) -> Finding | None:
    """What the rule about a tweak's cause says."""
    return next((one for one in report.findings if one.cause == TWEAK_CAUSES[tweak]), None)


def makes(fix: Fix, wanted: Configuration) -> bool:
    """Whether what a fix changes of the loader is so in a configuration."""
    return all(getattr(wanted, name, value) == value for name, value in fix.changes.items())


def listing(words: Sequence[str]) -> str:
    """Words as people list them: a, b and c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}" if words else ""
