"""Runs rules over facts: statuses, severities, consequences, the primary cause.

A rule is a function from facts to a `Ruling` (a cause of slowness, settled by experiments) or a `Statement` (what
stands by its own fact). It says what points to its cause and which trials remove it; only the engine says
`confirmed`, and of a cause of slowness only where such a trial was faster.

What confirms, and what stands first. A changed argument or a tweak that was faster confirms a cause and is its fix.
An ablation confirms too: with the stage taken away the script was faster. But it takes away more than one cause, and
nobody can train that way, so its ratio only bounds what a fix can bring. Of two causes, one shown by a change that
brought `a` and one shown by a ceiling `b`, the latter holds training back more where what is left of it after the
former is mended, `b / a`, still exceeds `a`. So a cause shown by its ceiling alone ranks by the square root of that
ceiling: it never displaces a measured fix merely because ceilings are larger numbers. Where the intervals of the first
few effects overlap, none of them is shown to be the largest, and the stage that alone is as slow as training goes
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from pindiag import figures
from pindiag.model import Effect, Evidence, Finding, Fix, Safety, Severity, Status, Trial
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts, Gain, Inputs, Missing, changes
from pindiag.rules.trade_offs import trade_off

HIGH = 1.2
MEDIUM = 1.05
"""Effects that make a confirmed cause `high` and `medium` (DESIGN.md section 2)."""
SUSPECT = 1.1
"""A cause whose removal could bring less than this is not suspected without an experiment: the whole of it would
hardly be told from noise. One that was tried and is not settled stands behind what keeps up."""
ROUNDS_TO_CLAIM = 6
"""Rounds below which a gain is provisional (DESIGN.md section 6)."""
OPEN: frozenset[Status] = frozenset({"suspected", "not_settled"})

Options = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What a rule about a cause of slowness found."""

    points: bool
    """Whether the facts of the script as written point to this cause."""
    explanation: str
    """What was measured, true whichever way it points."""
    evidence: list[Evidence]
    experiments: Sequence[Experiment] = ()
    """Measured trials that remove this cause and nothing else."""
    settled_by: str
    """The experiment that would settle it."""
    bound: float | None = None
    """The ratio that removing it could give at most."""
    remedy: Mapping[str, bool | int | None] = field(default_factory=dict)
    """What to change while no experiment has shown a change to help."""
    against: list[Evidence] = field(default_factory=list)
    suspected_at_most: bool = False
    """No trial of a sweep takes this cause away."""
    irremovable: str | None = None
    """Why these experiments could not remove the cause here, though it may be there."""
    ceiling: Experiment | None = None
    """An ablation that removes this cause with its whole stage; only where other facts say that of this stage it is
    this cause that costs the time."""
    at_limit: bool = False
    """Its stage alone is as slow as training."""
    weightless: bool = False
    """Nothing but the experiment says what the cause costs: until that ran it is never the primary one."""
    advice: str = ""
    """What to do, where it is no argument of the loader."""
    location: str | None = None
    """Where to do it, file:line."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a rule found that rests on its own fact and claims no gain."""

    status: Status
    explanation: str
    evidence: list[Evidence]
    severity: Severity | None = None
    remedy: Mapping[str, bool | int | None] = field(default_factory=dict)
    remedy_summary: str = ""
    settled_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A root cause and how it is told."""

    code: str
    name: str
    title: str
    """One clause that states the cause as true."""
    limit: str
    """The stage or resource, as a headline's subject."""
    options: Options
    yields_to: tuple[str, ...]
    """Causes that own what both would claim."""
    check: Callable[[Facts, Options], Ruling | Statement]

    @property
    def doc(self) -> str:
        """The documentation that `pindiag explain` prints."""
        return self.check.__doc__ or ""

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return self.doc.strip().partition("\n")[0]


@dataclass(frozen=True)
class Judged:
    """A finding with what its rank and consequences are decided from."""

    finding: Finding
    rule: Rule
    best: Experiment | None = None
    bound: float | None = None
    at_limit: bool = False

    @property
    def effect(self) -> float:
        """What removing the cause gave, or could give, as far as ranks go; 1 where nobody knows."""
        if self.best and self.finding.status == "confirmed":
            return math.sqrt(self.best.effect) if self.best.trial.kind == "ablation" else self.best.effect
        return 1.0 if self.bound is None else self.bound

    @property
    def slight(self) -> bool:
        """Whether removing it could bring next to nothing."""
        return self.bound is not None and self.bound < SUSPECT


def rule(
    code: str,
    name: str,
    *,
    title: str,
    limit: str,
    options: Options | None = None,
    yields_to: tuple[str, ...] = (),
) -> Callable[[Callable[[Facts, Options], Ruling | Statement]], Rule]:
    """Make a rule of a function; its docstring is what `pindiag explain` prints."""

    def make(check: Callable[[Facts, Options], Ruling | Statement]) -> Rule:
        return Rule(
            code=code, name=name, title=title, limit=limit, options=options or {}, yields_to=yields_to, check=check
        )

    return make


def require(condition: bool, reason: str) -> None:
    """Leave a rule that has nothing to judge here.

    Raises:
        Missing: with the reason, unless the condition holds.
    """
    if not condition:
        raise Missing(reason)


def at_most(share: float) -> float:
    """The speed-up that is left when a share of the step is taken away entirely (at most a factor of 100)."""
    return 1 / (1 - min(max(share, 0.0), 0.99))


def judge(inputs: Inputs, rules: Sequence[Rule]) -> list[Finding]:
    """What every rule says, the most important finding first."""
    facts = Facts(inputs)
    judged = _yield_to_healthy([_judge(each, facts) for each in rules])
    judged = sorted(_consequences(judged), key=_rank)
    return [each.finding for each in _limit_first(judged)]


def primary(findings: Sequence[Finding]) -> Finding | None:
    """The one finding that the verdict speaks of, from findings as `judge` orders them.

    None only where nothing could be judged at all.
    """
    for finding in findings:
        if _counts(finding):
            return finding
    left = {finding.cause: finding for finding in findings if finding.status not in ("not_applicable", "error")}
    return left.get("no_difference") or left.get("compute_bound")


def _counts(finding: Finding) -> bool:
    if finding.consequence_of is not None:
        return False
    if finding.status == "confirmed":
        return True
    return finding.status in OPEN and (finding.severity is not None or finding.cause == "compute_bound")


def _judge(each: Rule, facts: Facts) -> Judged:
    try:
        ruling = each.check(facts, each.options)
        if isinstance(ruling, Statement):
            return Judged(_state(each, ruling), each)
        return _settle(each, ruling, facts)
    except Missing as missing:
        return Judged(_finding(each, "not_applicable", reason=str(missing)), each)
    except Exception as error:  # a rule that breaks must not cost the others
        return Judged(_finding(each, "error", reason=f"The rule failed: {type(error).__name__}: {error}"), each)


def _finding(each: Rule, status: Status, *, explanation: str = "", reason: str | None = None) -> Finding:
    return Finding(
        rule=each.code,
        cause=each.name,
        status=status,
        severity=None,
        title=each.title,
        explanation=explanation,
        reason=reason,
    )


def _state(each: Rule, said: Statement) -> Finding:
    against = said.status == "ruled_out"
    fix = Fix(
        summary=said.remedy_summary,
        changes=dict(said.remedy),
        location=None,
        patch=None,
        snippet=None,
        effect=None,
        trade_off=None,
        safety=UNCHECKED,
    )
    return msgspec.structs.replace(
        _finding(each, said.status, explanation=said.explanation),
        severity=said.severity,
        evidence=[] if against else said.evidence,
        counter_evidence=said.evidence if against else [],
        fixes=[fix] if said.remedy else [],
        experiment=said.settled_by,
    )


# ------------------------------------------------------------------------------------------ causes of slowness


def _settle(each: Rule, ruling: Ruling, facts: Facts) -> Judged:
    status, best, how = _status(ruling, facts)
    faster = status != "ruled_out" and best is not None and best.faster
    shown = [_as_evidence(best, facts)] if best else []
    evidence, against = list(ruling.evidence), list(ruling.against)
    if not ruling.points:
        evidence, against = [], evidence + against
    if faster or status == "not_settled":
        evidence += shown
    else:
        against += shown
    bound = _room(best, ruling.bound) if status == "not_settled" else ruling.bound
    finding = msgspec.structs.replace(
        _finding(each, status, explanation=f"{ruling.explanation} {how}".strip()),
        severity=None if ruling.weightless and status in OPEN else _severity(status, best, bound),
        evidence=evidence,
        counter_evidence=against,
        fixes=_fixes(ruling, best, facts) if status in ("confirmed", "suspected") else [],
        experiment=ruling.settled_by if status in OPEN else None,
    )
    return Judged(finding, each, best if faster else None, bound, ruling.at_limit)


def _room(best: Experiment | None, bound: float | None) -> float | None:
    """What removing the cause could give at most, after an experiment that did not settle it.

    Where it ran slower the interval is not stretched in the cause's favour: what ran slower is no suspect.
    """
    if best is None:
        return bound
    left = best.effect if best.step.interval is None or best.effect <= 1 else best.step.interval[1]
    return left if bound is None else min(left, bound)


def _status(ruling: Ruling, facts: Facts) -> tuple[Status, Experiment | None, str]:
    """The status, the experiment that decides it, and how it does, in words."""
    best, ceiling = _best(ruling.experiments), ruling.ceiling
    if not ruling.points:
        return "ruled_out", None, "This speaks against it."
    if best and best.faster and not ruling.suspected_at_most:
        return "confirmed", best, f"{_ran(best, facts)}."
    if ceiling and ceiling.excluded:
        return "ruled_out", ceiling, f"{_ran(ceiling, facts)}: no gain of 5 %, so this is not what holds it back."
    if ceiling and ceiling.step.worth:
        return "confirmed", ceiling, _by_ceiling(ceiling, best, facts)
    if best is None and ruling.bound is not None and ruling.bound < SUSPECT:
        return "ruled_out", None, f"Without it at most {figures.ratio(ruling.bound)}: too little to matter."
    if best is None:
        return "suspected", None, f"No experiment has shown it yet; {ruling.settled_by} would settle it."
    if best.faster:
        return "suspected", best, f"{_ran(best, facts)}; that alone does not show this cause."
    if all(each.excluded for each in ruling.experiments):
        if ruling.irremovable:
            return "suspected", best, f"{_ran(best, facts)}. {ruling.irremovable}"
        return "ruled_out", best, f"{_ran(best, facts)}: no gain of 5 %, so this is not what holds it back."
    if best.step.interval is None:
        return "not_settled", best, f"{_ran(best, facts)}: too few rounds for an interval."
    return "not_settled", best, f"{_ran(best, facts)}: too wide an interval, or too close to the noise, to tell."


def _by_ceiling(ceiling: Experiment, best: Experiment | None, facts: Facts) -> str:
    tried = f" {_ran(best, facts)}: no argument that was tried takes it away." if best else ""
    return f"{_ran(ceiling, facts)}.{tried}"


def _best(experiments: Sequence[Experiment]) -> Experiment | None:
    """The clearest success; without one, the experiment that leaves most room for it."""
    return max(experiments, key=lambda each: (each.faster, not each.excluded, each.effect), default=None)


def _ran(tried: Experiment, facts: Facts) -> str:
    """What was taken away, and how fast it ran then."""
    start = "written" if tried.over.id == facts.inputs.baseline else _named(tried.over)
    shown = figures.ratio_with_interval(tried.effect, tried.step.interval)
    return f"With {_differs(tried)} it ran {shown} as fast as {start}"


def _differs(tried: Experiment) -> str:
    if tried.trial.kind != "configuration":
        return ceilings.title(tried.trial)
    return f"`{figures.arguments(changes(tried.over.configuration, tried.trial.configuration))}` alone"


def _named(over: Trial) -> str:
    return over.id if over.kind == "configuration" else f"with {ceilings.title(over)}"


def _as_evidence(best: Experiment, facts: Facts) -> Evidence:
    verification = facts.inputs.verification
    if best.gain.verified and verification:
        source = f"{verification.pairs} pairs of fresh launches {_listed(verification.launches)}"
    else:
        source = f"blocks {_listed(best.trial.blocks)} against {_listed(best.over.blocks)}"
    if best.step.interval:
        source += f"; 95 % interval {figures.interval(best.step.interval)}"
    return Evidence(name=f"{best.trial.id} over {best.over.id}", value=best.effect, unit="×", source=source)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers) or "none"


def _severity(status: Status, best: Experiment | None, bound: float | None) -> Severity | None:
    if status == "confirmed" and best is not None:
        return "high" if best.effect >= HIGH else "medium" if best.effect >= MEDIUM else "low"
    if status == "not_settled" and bound is not None and bound < SUSPECT:
        return None
    if status in OPEN:
        return "medium" if bound is not None and bound >= HIGH else "low"
    return None


# ----------------------------------------------------------------------------------------------------- remedies

UNCHECKED = Safety(
    status="not_checked", reason="Batches under this change were not compared with those of the script as written."
)


def _fixes(ruling: Ruling, best: Experiment | None, facts: Facts) -> list[Fix]:
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
        return [measured_fix(trial, facts) for trial in trials]
    return [_predicted_fix(ruling, facts)] if ruling.remedy or ruling.advice else []


def _tweak_fix(ruling: Ruling, best: Experiment, facts: Facts) -> Fix:
    """The change of code that a tweak stands for, with what the tweak gave over the same configuration without it."""
    kind: Literal["measured", "provisional"] = "measured" if best.step.rounds >= ROUNDS_TO_CLAIM else "provisional"
    effect = Effect(kind=kind, ratio=best.effect, ci95=best.step.interval)
    made = _fix(dict(ruling.remedy), effect, facts, None)
    return msgspec.structs.replace(made, summary=ruling.advice, location=ruling.location)


def recommended_trial(facts: Facts) -> Trial | None:
    """The recommended trial, where it is another than the baseline and was shown to be faster."""
    recommendation = facts.inputs.recommendation
    trial = facts.trial(recommendation.trial) if recommendation else None
    if trial is None or trial.id == facts.inputs.baseline:
        return None
    gain = facts.gain(trial)
    return trial if gain and gain.significant else None


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


def _predicted_fix(ruling: Ruling, facts: Facts) -> Fix:
    effect = Effect(kind="predicted", ratio=ruling.bound, ci95=None) if ruling.bound else None
    made = _fix(dict(ruling.remedy), effect, facts, None)
    if not ruling.advice:
        return made
    summary = f"{made.summary} {ruling.advice}" if ruling.remedy and not ruling.weightless else ruling.advice
    return msgspec.structs.replace(made, summary=summary, location=ruling.location)


def _fix(changed: dict[str, bool | int | None], effect: Effect | None, facts: Facts, trial: Trial | None) -> Fix:
    return Fix(
        summary=f"Set `{figures.arguments(changed)}`.",
        changes=changed,
        location=None,
        patch=None,
        snippet=None,
        effect=effect,
        trade_off=trade_off(changed, facts, trial),
        safety=UNCHECKED,
    )


# ------------------------------------------------------------------------------------------------ among findings


def _yield_to_healthy(judged: list[Judged]) -> list[Judged]:
    """`no_difference` says nothing while a cause is confirmed or suspected."""
    standing = [each for each in judged if is_cause(each.rule.name) and _stands(each.finding)]
    if not standing:
        return judged
    names = ", ".join(each.rule.name for each in standing)
    reason = f"A cause is confirmed or suspected: {names}."
    return [
        replace(each, finding=_finding(each.rule, "not_applicable", reason=reason))
        if each.rule.name == "no_difference" and each.finding.status == "confirmed"
        else each
        for each in judged
    ]


def _stands(finding: Finding) -> bool:
    return finding.status == "confirmed" or (finding.status == "suspected" and finding.severity is not None)


def is_cause(name: str) -> bool:
    """Whether it is a cause of slowness, not a finding of fact or of health."""
    return name not in ("script_error", "pin_without_accelerator", "compute_bound", "no_difference")


def _consequences(judged: list[Judged]) -> list[Judged]:
    """Hang a finding under the confirmed cause that owns it, so that one change confirms one cause only."""
    owners: list[Judged] = []
    settled = []
    for each in sorted(judged, key=lambda one: (one.finding.status != "confirmed", len(one.rule.yields_to))):
        owner = next((one for one in owners if _owns(one, each)), None)
        if owner:
            finding = msgspec.structs.replace(each.finding, consequence_of=owner.rule.name)
            settled.append(replace(each, finding=finding))
            continue
        settled.append(each)
        owners += [each] if each.best and each.finding.status == "confirmed" else []
    return settled


def _owns(owner: Judged, each: Judged) -> bool:
    if each.finding.status == "confirmed" and each.best and owner.best:
        return each.best.trial.id == owner.best.trial.id and each.best.keys == owner.best.keys
    return each.finding.status in OPEN and owner.rule.name in each.rule.yields_to


def _rank(each: Judged) -> tuple[int, float, str]:
    finding = each.finding
    if finding.consequence_of is not None:
        place = 7
    elif finding.status == "confirmed":
        order = {"script_error": 0, "pin_without_accelerator": 2, "compute_bound": 4, "no_difference": 4}
        place = order.get(each.rule.name, 1)
    elif finding.status in OPEN:
        behind = each.slight or finding.severity is None
        place = {"compute_bound": 5, "no_difference": 8}.get(each.rule.name, 6 if behind else 3)
    else:
        place = {"ruled_out": 9, "not_applicable": 10, "error": 11}[finding.status]
    return place, -each.effect, each.rule.code


def _limit_first(ranked: list[Judged]) -> list[Judged]:
    """Among the first causes whose effects cannot be told apart, the one whose stage alone is as slow as training."""
    leader = ranked[0].best if ranked else None
    if leader is None or leader.step.interval is None:
        return ranked
    low = leader.step.interval[0]
    near = [each for each in ranked if each.best and each.finding.consequence_of is None and _reaches(each.best, low)]
    first = next((each for each in near if each.at_limit and each.finding.status == "confirmed"), None)
    return ranked if first is None else [first, *(each for each in ranked if each is not first)]


def _reaches(best: Experiment, low: float) -> bool:
    return best.trial.kind != "ablation" and best.step.interval is not None and best.step.interval[1] >= low
