"""Verification: the script as written and what comes first, live and fresh side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pindiag import figures
from pindiag.model import BlockFigures, Fix, Isolation, PatchVerification, Ratio, Report, Verification
from pindiag.report import about, names
from pindiag.report.rows import counts, isolation_of


@dataclasses.dataclass(frozen=True)
class Side:
    """One way of running both: in one process, or in fresh ones."""

    words: str
    baseline: float | None
    """Median samples/s, as `recommended`."""
    recommended: float | None
    ratio: Ratio


@dataclasses.dataclass(frozen=True)
class Verified:
    """The section's content."""

    sides: list[Side]
    pairs: list[tuple[float, float]]
    """Samples/s of the baseline and of what was verified."""
    trial: str
    what: str
    """That trial in words."""
    agreement: str
    covers: str
    """What each launch of a pair covered."""


def verified(report: Report) -> Verified | None:
    """What the pairs say; None where none ran."""
    made = report.verification
    if made is None:
        return None
    chosen = about.verified(report)
    sides = [*_chosen_by(report, made, chosen), _fresh(made)]
    pairs = list(zip(made.baseline_samples_per_second, made.recommended_samples_per_second, strict=False))
    return Verified(sides, pairs, chosen or "", _what(report, chosen), _agreement(made), covers(made))


def _what(report: Report, chosen: str | None) -> str:
    trial = about.trial(report, chosen)
    if trial is not None and trial.tweak is not None:
        return f"of the change that comes first ({names.trial(trial)})"
    return "of the recommended configuration"


def _chosen_by(report: Report, made: Verification, chosen: str | None) -> list[Side]:
    """What the rounds that chose it gave: the live ones, where there were any."""
    if made.live_ratio is not None:
        ratio = Ratio(ratio=made.live_ratio, ci95=made.live_ci95, rounds=_rounds(report, chosen, "live"))
        return [_side("live, in one process", report, chosen, "live", ratio)]
    trial = about.trial(report, chosen)
    if trial is None or trial.versus_baseline is None or not _blocks(report, chosen, "fresh"):
        return []
    return [_side("fresh, the rounds that chose it", report, chosen, "fresh", trial.versus_baseline)]


def _side(words: str, report: Report, chosen: str | None, isolation: Isolation, ratio: Ratio) -> Side:
    return Side(words, _rate(report, report.baseline, isolation), _rate(report, chosen, isolation), ratio)


def _fresh(made: Verification) -> Side:
    return Side(
        "fresh pairs",
        _median(made.baseline_samples_per_second),
        _median(made.recommended_samples_per_second),
        Ratio(ratio=made.ratio, ci95=made.ci95, rounds=made.pairs),
    )


def _blocks(report: Report, trial: str | None, isolation: Isolation) -> list[BlockFigures]:
    how = isolation_of(report)
    return [
        block
        for block in report.blocks
        if block.trial == trial and block.purpose != "verify" and counts(block) and how.get(block.id) == isolation
    ]


def _rate(report: Report, trial: str | None, isolation: Isolation) -> float | None:
    """Its own median where these rounds judged it; else that of the blocks that they had."""
    made = about.trial(report, trial)
    if made is not None and made.isolation == isolation and made.samples_per_second is not None:
        return made.samples_per_second.median
    return _median([block.samples / block.seconds for block in _blocks(report, trial, isolation)])


def _rounds(report: Report, trial: str | None, isolation: Isolation) -> int:
    return len({block.round for block in _blocks(report, trial, isolation)})


def _median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return None
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def patched_pairs(made: PatchVerification) -> list[tuple[float, float]]:
    """Samples/s without and with the patch."""
    return list(zip(made.original_samples_per_second, made.patched_samples_per_second, strict=True))


def of_patch(made: PatchVerification, fix: Fix | None) -> list[str]:
    """What its launches covered, what was set beside the patch, and what the report states beside the result."""
    covered = covers(made) if made.pairs else ""
    return [each for each in (covered, by_hand(made), against_stated(made, fix)) if each]


def by_hand(made: PatchVerification) -> str:
    """What the patch leaves to the user; "" where it leaves nothing."""
    left = names.listing([f"`{name}={value}`" for name, value in made.by_hand.items()])
    return f"The patch leaves {left} to you; pindiag set it in the launches with the patch." if left else ""


def against_stated(made: PatchVerification, fix: Fix | None) -> str:
    """Whether the gain stated for the change lies in what the patch gave; "" where it cannot be told."""
    if fix is None or fix.effect is None or fix.summary != made.summary or made.ci95 is None:
        return ""
    low, high = made.ci95
    stated = figures.ratio(fix.effect.ratio)
    if low <= fix.effect.ratio <= high:
        return f"The gain of {stated} that this report states for the change lies in that interval."
    return f"This report states a gain of {stated} for the change, which lies outside that interval: the patch decides."


def covers(made: Verification | PatchVerification) -> str:
    """What each launch of a pair counted."""
    if made.epochs is None:
        return "Each launch counted one block of steps."
    return (
        f"Each launch counted {about.plural(made.epochs, 'whole epoch')} as the script runs it: the start of workers "
        "and whatever it does between its epochs and beside its steps included, its very first step left out."
    )


def _agreement(made: Verification) -> str:
    if made.agrees_with_live is None:
        short = made.epochs is not None and made.steady_ratio is None
        missing = "its epochs are hardly longer than its queue" if short else "rounds or pairs give no interval"
        missing = "there was no live ratio" if made.live_ratio is None else missing
        return f"Whether live and fresh agree was not measured: {missing}."
    fresh = "the fresh one"
    if made.epochs is not None and made.steady_ratio is not None:
        over = figures.ratio_with_interval(made.steady_ratio, made.steady_ci95)
        fresh += f" over the same part of the epochs ({over})"
    if made.agrees_with_live:
        return f"Live and fresh agree: the live ratio differs from {fresh} by no more than their intervals explain."
    return f"The live ratio differs from {fresh} by more than their intervals explain; fresh decides."
