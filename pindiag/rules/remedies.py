"""Fixes: the configuration or the line of code that removes a cause, and what it brought or could bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from pindiag import figures
from pindiag.model import Effect, Fix, Safety, Trial
from pindiag.rules import tweaks
from pindiag.rules.differences import changes
from pindiag.rules.inputs import Experiment, Facts, Gain
from pindiag.rules.rule import Ruling
from pindiag.rules.trade_offs import trade_off

ROUNDS_TO_CLAIM = 6
"""Rounds below which a gain is provisional (DESIGN.md section 6)."""
UNCHECKED = Safety(
    status="not_checked", reason="Batches under this change were not compared with those of the script as written."
)


def fixes(ruling: Ruling, best: Experiment | None, facts: Facts) -> list[Fix]:
    """What comes first where it removes the cause, then the experiment's own change."""
    if best and best.faster and best.trial.tweak is not None:
        alike = [one for one in (leading_tweak(facts), best.trial) if one and one.tweak == best.trial.tweak]
        return [measured_fix(one, facts) for one in {one.id: one for one in alike}.values()]
    trials = []
    recommended = recommended_trial(facts)
    if recommended and any(_removes(recommended, each) for each in ruling.experiments if each.faster):
        trials.append(recommended)
    if best and best.faster and best.trial.kind == "configuration" and best.trial not in trials:
        trials.append(best.trial)
    if trials:
        made = [measured_fix(trial, facts) for trial in trials]
        return [fix for fix in made if not is_unsafe(fix)] or made
    remedy = _untried(ruling.remedy, facts)
    return [_predicted_fix(ruling, remedy, facts)] if remedy or ruling.advice else []


def is_unsafe(fix: Fix) -> bool:
    """Whether a change failed the safety gate: it is shown with the reason, and never recommended."""
    return fix.safety.status == "failed"


def recommended_trial(facts: Facts) -> Trial | None:
    """The recommended trial, where it is another than the baseline and was shown to be faster."""
    recommendation = facts.inputs.recommendation
    trial = facts.trial(recommendation.trial) if recommendation else None
    if trial is None or trial.id == facts.inputs.baseline:
        return None
    gain = facts.gain(trial)
    return trial if gain and gain.significant else None


def leading_tweak(facts: Facts) -> Trial | None:
    """The tweak that comes before the recommended configuration."""
    recommendation = facts.inputs.recommendation
    trial = facts.trial(recommendation.tweak or "") if recommendation else None
    gain = facts.gain(trial) if trial else None
    return trial if gain and gain.significant else None


def recommended(facts: Facts) -> Fix | None:
    """The change that comes first; as it was carried out in the user's files, where it was."""
    recommendation, trial = facts.inputs.recommendation, leading_tweak(facts) or recommended_trial(facts)
    if recommendation is None or trial is None:
        return None
    return recommendation.fix or measured_fix(trial, facts)


def _removes(trial: Trial, experiment: Experiment) -> bool:
    chosen, tried = trial.configuration, experiment.trial.configuration
    return all(getattr(chosen, key) == getattr(tried, key) for key in experiment.keys)


def measured_fix(trial: Trial, facts: Facts) -> Fix:
    """The change to a trial that was measured, with its effect over the script as written."""
    gain = facts.gain(trial)
    effect = Effect(kind=_firmness(trial, gain, facts), ratio=gain.ratio, ci95=gain.interval) if gain else None
    arguments = changes(facts.configuration, trial.configuration)
    if trial.tweak is None:
        return _fix(arguments, effect, facts, trial)
    made = _fix({**arguments, **tweaks.changes(trial.tweak, facts)}, effect, facts, None)
    return msgspec.structs.replace(
        made,
        summary=tweaks.summary(trial.tweak, arguments, facts),
        location=tweaks.place(trial.tweak, facts),
        safety=_beside(arguments, trial, facts),
    )


def _beside(arguments: Mapping[str, bool | int | None], trial: Trial, facts: Facts) -> Safety:
    """A tweak changes no batch, so what holds of its configuration holds of both."""
    if not arguments:
        return Safety(status="passed", reason="It changes no batch, so none had to be compared.")
    alone = facts.trial(trial.configuration.id)
    own = (alone.safety if alone else None) or UNCHECKED
    return msgspec.structs.replace(
        own, reason=f"Of `{figures.arguments(arguments)}`: {own.reason.rstrip('.')}. The line of code changes no batch."
    )


def _firmness(trial: Trial, gain: Gain, facts: Facts) -> Literal["verified", "measured", "provisional"]:
    if gain.verified:
        return "verified"
    recommendation = facts.inputs.recommendation
    if recommendation and recommendation.trial == trial.id:
        return recommendation.firmness
    return "measured" if gain.rounds >= ROUNDS_TO_CLAIM else "provisional"


def _predicted_fix(ruling: Ruling, remedy: Mapping[str, bool | int | None], facts: Facts) -> Fix:
    effect = Effect(kind="predicted", ratio=ruling.most, ci95=None) if ruling.most else None
    made = _fix(dict(remedy), effect, facts, None)
    if not ruling.advice:
        return made
    choice = f"{made.summary} Or {ruling.advice[:1].lower()}{ruling.advice[1:]}"
    summary = choice if remedy and not ruling.weightless else ruling.advice
    return msgspec.structs.replace(made, summary=summary, location=ruling.location)


def _untried(remedy: Mapping[str, bool | int | None], facts: Facts) -> Mapping[str, bool | int | None]:
    """A remedy, unless just that was tried: had it helped, it would be the fix already."""
    tried = [changes(facts.configuration, trial.configuration) for trial in facts.measured()]
    return {} if remedy in tried else remedy


def _fix(changed: dict[str, bool | int | None], effect: Effect | None, facts: Facts, trial: Trial | None) -> Fix:
    return Fix(
        summary=f"Set `{figures.arguments(changed)}`.",
        changes=changed,
        location=None,
        patch=None,
        snippet=None,
        effect=effect,
        trade_off=trade_off(changed, facts, trial),
        safety=(trial.safety if trial else None) or UNCHECKED,
    )
