"""What fresh launches with the patch in the files gave, beside those of the script as it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pindiag.journal import PATCHED_TRIAL, Journal, Launch
from pindiag.model import AnyRecord, PatchedSources, PatchVerification
from pindiag.stats import geometric_mean, paired_ratios


def patch_verification(patch: PatchedSources, records: Sequence[AnyRecord]) -> PatchVerification:
    """The pairs, or the reason why there is none."""
    journal = Journal(records)
    baseline = journal.baseline_id or ""
    rates = journal.verify_rates()
    ratios = paired_ratios(rates, baseline).get(PATCHED_TRIAL, [])
    mean = geometric_mean(ratios) if ratios else None
    sides = [{rate.round: rate.value for rate in rates if rate.trial == name} for name in (baseline, PATCHED_TRIAL)]
    original, patched = sides
    paired = sorted(original.keys() & patched.keys())
    return PatchVerification(
        summary=patch.summary,
        files=sorted(patch.after),
        pairs=len(paired),
        launches=[launch.id for launch in journal.launches if launch.purpose == "verify" and launch.measured],
        original_samples_per_second=[original[number] for number in paired],
        patched_samples_per_second=[patched[number] for number in paired],
        ratio=None if mean is None else mean.value,
        ci95=None if mean is None else mean.ci95,
        epochs=journal.verified_epochs,
        reason=_reason(journal) if mean is None else None,
        status=_status(journal, measured=mean is not None),
        by_hand=patch.by_hand,
    )


def _status(journal: Journal, *, measured: bool) -> Literal["measured", "not_measured", "failed", "interrupted"]:
    if journal.ended is not None and journal.ended.status == "interrupted":
        return "interrupted"
    if measured:
        return "measured"
    return "failed" if _failed(journal) else "not_measured"


def _failed(journal: Journal) -> list[Launch]:
    return [launch for launch in journal.launches if launch.ended and launch.ended.status == "failed"]


def _reason(journal: Journal) -> str:
    """Why no pair is complete."""
    failed = _failed(journal)
    if failed and failed[-1].ended:
        patched = failed[-1].order is not None and failed[-1].order.patched
        what = "with the patch" if patched else "as it was measured"
        return f"the script {what} failed: {failed[-1].ended.reason or failed[-1].ended.exit}"
    if journal.ended is not None and journal.ended.status == "interrupted":
        return "it was interrupted before a pair was complete"
    return "no training step was seen" if journal.baseline is None else "the budget left no time for a pair"
