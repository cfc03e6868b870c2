"""What a fix makes of the script as written: its trial, and how long an epoch takes with it."""

from __future__ import annotations

import statistics

from pindiag import figures
from pindiag.model import Fix, Trial
from pindiag.rules import tweaks
from pindiag.rules.differences import changes
from pindiag.rules.inputs import Facts


def epoch_in_words(fix: Fix, facts: Facts) -> str:
    """An epoch with it and without, with a comma behind; "" where either is not known."""
    times = _verified_s(fix, facts) or _reckoned_s(fix, facts)
    if times is None:
        return ""
    before, after = times
    return f"an epoch in {figures.duration(after)} instead of {figures.duration(before)}, "


def _verified_s(fix: Fix, facts: Facts) -> tuple[float, float] | None:
    """An epoch before and after, where the launches that verified the change covered whole ones."""
    verified, loader = facts.inputs.verification, facts.inputs.loader
    batch, batches = facts.get("batch_samples"), loader.batches_per_epoch if loader else None
    if verified is None or verified.epochs is None or batch is None or batches is None:
        return None
    if fix.effect is None or fix.effect.kind != "verified":
        return None
    samples = batch * batches
    before, after = verified.baseline_samples_per_second, verified.recommended_samples_per_second
    return samples / statistics.median(before), samples / statistics.median(after)


def _reckoned_s(fix: Fix, facts: Facts) -> tuple[float, float] | None:
    trial = trial_of(fix, facts)
    before, after = facts.baseline.epoch_s, trial.epoch_s if trial else None
    return None if before is None or after is None else (before, after)


def trial_of(fix: Fix, facts: Facts) -> Trial | None:
    """The trial that a fix makes of the script as written."""
    tweak = tweaks.of(fix)
    wanted = {name: value for name, value in fix.changes.items() if name != tweak}
    tried = [*facts.tweaks(), *facts.measured()]
    return next(
        (one for one in tried if one.tweak == tweak and changes(facts.configuration, one.configuration) == wanted), None
    )
