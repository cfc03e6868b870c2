"""What a change costs, in one sentence each, with figures where they were measured."""

from __future__ import annotations

from collections.abc import Mapping

from pindiag import figures
from pindiag.model import Trial
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts, Missing


def trade_off(changed: Mapping[str, bool | int | None], facts: Facts, trial: Trial | None) -> str | None:
    """What the user pays for these changes; None where nothing is known to be paid."""
    said = [
        _workers(changed, facts, trial),
        _pinning(changed, facts, trial),
        _asynchronous(changed),
        _kept(changed),
        _given_back(changed, facts),
        _read_late(changed),
    ]
    return " ".join(sentence for sentence in said if sentence) or None


def _workers(changed: Mapping[str, bool | int | None], facts: Facts, trial: Trial | None) -> str | None:
    workers = changed.get("num_workers")
    if workers is None:
        return None
    if workers == 0:
        return "Samples are fetched in the training process, so a slower dataset later holds up each step."
    try:
        before = facts.configuration.num_workers
    except Missing:
        return None
    if workers < before:
        return None
    each = facts.get("worker_rss_bytes", trial) if trial else None
    size = f", up to {figures.byte_size(each)} each" if each else ""
    return f"{workers} worker processes{size}, started at each epoch unless persistent_workers is set."


def _pinning(changed: Mapping[str, bool | int | None], facts: Facts, trial: Trial | None) -> str | None:
    if not changed.get("pin_memory"):
        return None
    locked = facts.get("pinned_reckoned_bytes", trial) if trial else None
    size = f" (about {figures.byte_size(locked)})" if locked else ""
    through = "" if trial else _pin_thread(changed, facts)
    return f"Pinned memory{size} cannot be swapped out or used by other processes.{through}{_threads(changed, facts)}"


def _pin_thread(changed: Mapping[str, bool | int | None], facts: Facts) -> str:
    """What a pin thread lets through where that is less than the workers deliver."""
    cost = ceilings.pin_thread_cost(facts) if "num_workers" not in changed else None
    through = cost.trial.samples_per_second if cost and cost.step.slower else None
    return f" The pin thread delivers at most {figures.rate(through.median)}." if through else ""


def _threads(changed: Mapping[str, bool | int | None], facts: Facts) -> str:
    """What the pin thread that comes with it takes from the training process, unless that was shown to cost nothing."""
    if "intraop_threads" in changed:
        return ""
    left, whole = facts.get("intraop_threads_pin_thread"), facts.get("intraop_threads_no_pin_thread")
    tried = facts.tweaked("intraop_threads")
    workers = changed.get("num_workers", facts.configuration.num_workers)
    if left is None or whole is None or left >= whole or not workers or (tried and tried.excluded):
        return ""
    return (
        f" The pin thread leaves the training process {figures.count(left)} of {figures.count(whole)} intra-op threads "
        "for work of its own on the CPU (PD126)."
    )


def _asynchronous(changed: Mapping[str, bool | int | None]) -> str | None:
    if not changed.get("non_blocking"):
        return None
    return "A host batch must not be changed after its copy was asked for."


def _kept(changed: Mapping[str, bool | int | None]) -> str | None:
    if not changed.get("persistent_workers"):
        return None
    return "Workers stay alive between epochs, with the copy of the dataset that they started with."


def _given_back(changed: Mapping[str, bool | int | None], facts: Facts) -> str | None:
    threads, cpus = changed.get("intraop_threads"), facts.get("usable_cpus")
    if threads is None:
        return None
    share = f" for {figures.count(cpus)} CPUs" if cpus else ""
    return f"{threads} threads of the training process compete with the workers{share}, as they do without pinning."


def _read_late(changed: Mapping[str, bool | int | None]) -> str | None:
    if not changed.get("lazy_sync"):
        return None
    return "Values are seen some steps late: a NaN is noticed later, and early stopping stops later."
