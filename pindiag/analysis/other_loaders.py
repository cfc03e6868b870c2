"""Loaders of the script that do not train: their settings, waits, and what an epoch with them takes longer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from pindiag.analysis.evidence import RunEvidence
from pindiag.analysis.fact import fact
from pindiag.analysis.trials import epoch_s
from pindiag.model import Fact, LoaderMade, LoaderSeen, OtherLoader

NEVER_READ = "no batch of it was seen: the blocks ended before the script came to it"
BESIDE = "it gives its batches beside the training loader, so no time is its own"
NOT_WHOLE = "no pass through it was seen whole"
NO_EPOCH = "the time of an epoch of training is not known"
NOT_BESIDE = "none is read beside the training loader"
NO_OTHERS = "the script has no other loader"


def other_loaders(run: RunEvidence) -> list[OtherLoader]:
    """All of them, in the order in which they were made."""
    if run.found is None:
        return []
    made: dict[str, LoaderMade] = {}
    passages: dict[str, list[LoaderSeen]] = defaultdict(list)
    for launch in run.journal.launches:
        by_number = {one.loader: one for one in launch.all(LoaderMade) if one.key != run.found.key}
        seen = [one for one in launch.all(LoaderSeen) if one.loader in by_number and one.batches]
        for one in seen:
            passages[by_number[one.loader].key.location].append(one)
        elsewhere = [one for one in by_number.values() if one.key.location != run.found.key.location]
        for maker in [*elsewhere, *(by_number[one.loader] for one in seen)]:
            made.setdefault(maker.key.location, maker)
    baseline = run.baseline()
    training_s = None if baseline is None else epoch_s(baseline)
    return [_other(maker, passages[place], training_s) for place, maker in made.items()]


def _other(made: LoaderMade, seen: list[LoaderSeen], training_s: float | None) -> OtherLoader:
    batches = sum(one.batches for one in seen)
    whole = [one.seconds for one in seen if one.whole and not one.training_batches]
    pass_s = median(whole) if whole else None
    waited_s = sum(one.wait_ms for one in seen if one.whole and not one.training_batches) / 1e3
    meanwhile = sum(one.training_batches for one in seen)
    beside_ms = sum(one.wait_ms for one in seen if one.training_batches)
    share = pass_s / (pass_s + training_s) if pass_s is not None and training_s is not None else None
    return OtherLoader(
        location=made.key.location,
        dataset_class=made.dataset_class,
        configuration=made.configuration,
        batches=batches,
        wait_ms=sum(one.wait_ms for one in seen) / batches if batches else None,
        pass_s=pass_s,
        epoch_share=share,
        reason=_missing(seen, pass_s) if share is None else None,
        wait_share=min(waited_s / sum(whole), 1.0) if whole and sum(whole) > 0 else None,
        step_wait_ms=beside_ms / meanwhile if meanwhile else None,
    )


def _missing(seen: list[LoaderSeen], pass_s: float | None) -> str:
    if not seen:
        return NEVER_READ
    if pass_s is not None:
        return NO_EPOCH
    return BESIDE if any(one.training_batches for one in seen) else NOT_WHOLE


def of_other_loaders(run: RunEvidence) -> Iterator[Fact]:
    """The one that takes most of an epoch, and the one that is waited for longest."""
    found = other_loaders(run)
    reasons = "; ".join(dict.fromkeys(one.reason for one in found if one.reason is not None)) or NO_OTHERS
    longest = max(found, key=lambda one: one.epoch_share or 0.0, default=None)
    share = None if longest is None else longest.epoch_share
    source = "no pass" if longest is None or share is None else f"whole passes through {longest.location}"
    yield fact("other_loader_epoch_share", share, "1", source, reasons)
    yield from _waits(run, found, reasons)
    slowest = max(found, key=lambda one: one.wait_ms or 0.0, default=None)
    wait_ms = None if slowest is None else slowest.wait_ms
    source = "no batch" if slowest is None or wait_ms is None else f"batches of {slowest.location}"
    yield fact("other_loader_wait_ms", wait_ms, "ms", source, NEVER_READ if found else NO_OTHERS)


def _waits(run: RunEvidence, found: list[OtherLoader], reasons: str) -> Iterator[Fact]:
    """Waiting for the one that is waited for longest: part of an epoch, and of a step where it is read beside."""
    baseline = run.baseline()
    step_ms = None if baseline is None else baseline.totals.step_ms
    epochs = {
        one.location: one.epoch_share * one.wait_share
        for one in found
        if one.epoch_share is not None and one.wait_share is not None
    }
    steps = {one.location: one.step_wait_ms / step_ms for one in found if one.step_wait_ms is not None and step_ms}
    for name, shares, seen, unseen in (
        ("other_loader_epoch_wait_share", epochs, "whole passes", reasons),
        ("other_loader_step_wait_share", steps, "batches beside training", NOT_BESIDE),
    ):
        place = max(shares, key=lambda one: shares[one], default=None)
        value = None if place is None else min(shares[place], 1.0)
        source = "no batch of one" if place is None else f"{seen}: {place}"
        yield fact(name, value, "1", source, unseen)
