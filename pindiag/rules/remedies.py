"""Fixes: the configuration or the line of code that removes a cause, and what it brought or could bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from pindiag import figures
from pindiag.model import Effect, Fix, Safety, Trial
from pindiag.rules.inputs import Experiment, Facts, Gain, changes
from pindiag.rules.rule import Ruling
from pindiag.rules.trade_offs import trade_off

ROUNDS_TO_CLAIM = 6
"""Rounds below which a gain is provisional (DESIGN.md section 6)."""
UNCHECKED = Safety(
    status="not_checked", reason="Batches under this change were not compared with those of the script as written."
)


def fixes(ruling: Ruling, best: Experiment | None, facts: Facts) -> list[Fix]:
    """The recommended configuration where it removes the cause, then the experiment's own change."""
    if best and best.faster and best.trial.kind == "tweak":
        return [_tweak_fix(ruling, best, facts)]
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


def _tweak_fix(ruling: Ruling, best: Experiment, facts: Facts) -> Fix:
    """The line of code that a tweak stands for, with the arguments it was tried with; over the script as written."""
    kind: Literal["measured", "provisional"] = "measured" if best.gain.rounds >= ROUNDS_TO_CLAIM else "provisional"
    effect = Effect(kind=kind, ratio=best.gain.ratio, ci95=best.gain.interval)
    arguments = changes(facts.configuration, best.over.configuration)
    made = _fix({**arguments, **ruling.remedy}, effect, facts, None)
    before = f"Set `{figures.arguments(arguments)}`. " if arguments else ""
    return msgspec.structs.replace(made, summary=f"{before}{ruling.advice}", location=ruling.location)


def recommended_trial(facts: Facts) -> Trial | None:
    """The recommended trial, where it is another than the baseline and was shown to be faster."""
    recommendation = facts.inputs.recommendation
    trial = facts.trial(recommendation.trial) if recommendation else None
    if trial is None or trial.id == facts.inputs.baseline:
        return None
    gain = facts.gain(trial)
    return trial if gain and gain.significant else None


def recommended(facts: Facts) -> Fix | None:
    """The change to the recommended trial; as it was carried out in the user's files, where it was."""
    recommendation, trial = facts.inputs.recommendation, recommended_trial(facts)
    if recommendation is None or trial is None:
        return None
    return recommendation.fix or measured_fix(trial, facts)


def _removes(trial: Trial, experiment: Experiment) -> bool:
    chosen, tried = trial.configuration, experiment.trial.configuration
    return all(getattr(chosen, key) == getattr(tried, key) for key in experiment.keys)


def measured_fix(trial: Trial, facts: Facts) -> Fix:
    """The change to a trial that was measured, with its effect."""
    gain = facts.gain(trial)
    effect = Effect(kind=_firmness(trial, gain, facts), ratio=gain.ratio, ci95=gain.interval) if gain else None
    return _fix(changes(facts.configuration, trial.configuration), effect, facts, trial)


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
