"""Any two trials compared: paired in the rounds that both ran in."""

from __future__ import annotations

from collections.abc import Callable

from pindiag.analysis.trials import ratio_of
from pindiag.model import Analysis, Ratio
from pindiag.stats import Rate, geometric_mean, paired_ratios


def between(analysis: Analysis) -> Callable[[str, str], Ratio | None]:
    """A function that gives one trial's throughput over another's, None where they share no round.

    Only blocks of the race count; the p is that of this one comparison.
    """
    raced = {block for trial in analysis.trials for block in trial.blocks}
    rates = [
        Rate(block.round, block.trial, block.samples / block.seconds)
        for block in analysis.blocks
        if block.id in raced and block.purpose != "verify" and block.samples > 0 and block.seconds > 0
    ]

    def compare(trial: str, over: str) -> Ratio | None:
        ratios = paired_ratios([rate for rate in rates if rate.trial in (trial, over)], over).get(trial)
        return ratio_of(geometric_mean(ratios)) if ratios else None

    return compare
