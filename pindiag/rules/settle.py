"""One cause: its status, the experiment that decides it, severity and evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from pindiag import figures
from pindiag.model import Evidence, Finding, Fix, Severity, Status, Trial
from pindiag.rules import ceilings
from pindiag.rules.differences import changes
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.remedies import UNCHECKED, fixes
from pindiag.rules.rule import SUSPECT, Judged, Rule, Ruling, Statement

HIGH = 1.2
MEDIUM = 1.05
"""Effects that make a confirmed cause `high` and `medium` (DESIGN.md section 2)."""
OPEN: frozenset[Status] = frozenset({"suspected", "not_settled"})


def finding_of(each: Rule, status: Status, *, explanation: str = "", reason: str | None = None) -> Finding:
    """A finding without evidence yet."""
    return Finding(
        rule=each.code,
        cause=each.name,
        status=status,
        severity=None,
        title=each.title,
        explanation=explanation,
        reason=reason,
    )


def state(each: Rule, said: Statement) -> Finding:
    """The finding of a fact, which needs no experiment."""
    against = said.status == "ruled_out"
    fix = Fix(
        summary=said.remedy_summary,
        changes=dict(said.remedy),
        location=said.location,
        patch=None,
        snippet=None,
        effect=None,
        trade_off=None,
        safety=UNCHECKED,
    )
    return msgspec.structs.replace(
        finding_of(each, said.status, explanation=said.explanation),
        severity=said.severity,
        evidence=[] if against else said.evidence,
        counter_evidence=said.evidence if against else [],
        fixes=[fix] if said.remedy_summary and not against else [],
        experiment=said.settled_by,
    )


def settle(each: Rule, ruling: Ruling, facts: Facts) -> Judged:
    """The finding of a cause of slowness: confirmed only by an experiment that was faster."""
    status, best, how = _status(ruling, facts)
    faster = status != "ruled_out" and best is not None and best.faster
    shown = [as_evidence(best, facts)] if best else []
    evidence, against = list(ruling.evidence), list(ruling.against)
    if not ruling.points:
        evidence, against = [], evidence + against
    if faster or status == "not_settled":
        evidence += shown
    else:
        against += shown
    bound = _room(best, ruling.most) if status == "not_settled" else ruling.most
    found = msgspec.structs.replace(
        finding_of(each, status, explanation=f"{ruling.explanation} {how}".strip()),
        severity=None if _weightless(ruling, status, best) else _severity(status, best, bound),
        evidence=evidence,
        counter_evidence=against,
        fixes=fixes(ruling, best, facts) if status in ("confirmed", "suspected") else [],
        experiment=ruling.settled_by.rstrip(",") if status in OPEN else None,
    )
    return Judged(
        found,
        each,
        best if faster else None,
        bound,
        ruling.at_limit,
        _effect(status, best, ruling.own, bound),
        slight=_slight(status, best, ruling.own, bound),
    )


def _weightless(ruling: Ruling, status: Status, best: Experiment | None) -> bool:
    """Whether an open cause never comes first: by its own facts, or by a gain that noise would give too."""
    gained = best is not None and best.effect >= HIGH and not _in_vain(best)
    return ruling.weightless and status in OPEN and not gained


def _slight(status: Status, best: Experiment | None, own: float | None, bound: float | None) -> bool:
    """Whether removing the cause could bring next to nothing, or nothing speaks for more: neither facts nor a trial."""
    unshown = status in OPEN and (best is None or _in_vain(best))
    return _is_small(bound, SUSPECT) or (unshown and _is_small(own, SUSPECT))


def _in_vain(tried: Experiment) -> bool:
    """Whether an experiment leaves open that it gave nothing."""
    return tried.step.interval is not None and tried.step.interval[0] <= 1


def _effect(status: Status, best: Experiment | None, own: float | None, bound: float | None) -> float:
    """What ranks the cause: what its experiment gave, else the middle of what it may give, on a log scale."""
    if best is not None and status in ("confirmed", "not_settled"):
        gave = math.sqrt(max(best.effect, 0.0)) if best.trial.kind == "ablation" else best.effect
        return gave if status == "confirmed" or bound is None else min(gave, bound)
    if status in OPEN:
        return 1.0 if own is None else math.sqrt(max(own, 1.0))
    return 1.0 if bound is None else bound


def _room(best: Experiment | None, bound: float | None) -> float | None:
    """What removing the cause could give at most, after an experiment that did not settle it.

    Where it ran slower the interval is not stretched in the cause's favour: what ran slower is no suspect.
    """
    if best is None:
        return bound
    left = best.effect if best.step.interval is None or best.effect <= 1 else best.step.interval[1]
    if best.trial.kind != "ablation" and best.gain.interval is not None:
        left = min(left, best.gain.interval[1])
    return left if bound is None else min(left, bound)


def _status(ruling: Ruling, facts: Facts) -> tuple[Status, Experiment | None, str]:
    """The status, the experiment that decides it, and how it does, in words."""
    best, ceiling, most = _best(ruling.experiments), ruling.ceiling, ruling.most
    if not ruling.points:
        return "ruled_out", None, ruling.against_it
    if best and best.faster and not ruling.suspected_at_most:
        return "confirmed", best, f"{_ran(best, facts)}."
    if ceiling and ceiling.excluded:
        return "ruled_out", ceiling, f"{_ran(ceiling, facts)}: no gain of 5 %, so this is not what holds it back."
    if ceiling and ceiling.step.worth and ruling.ceiling_shows:
        return "confirmed", ceiling, _by_ceiling(ceiling, best, facts)
    if best is None and most is not None and most < SUSPECT:
        return "ruled_out", None, f"Without it at most {figures.ratio(most)}: too little to matter."
    if best is None:
        return _untried(ruling, facts)
    if best.faster:
        return "suspected", best, f"{_ran(best, facts)}; that alone does not show this cause."
    if all(each.excluded for each in ruling.experiments):
        if ruling.irremovable:
            return "suspected", best, f"{_ran(best, facts)}. {ruling.irremovable}"
        return "ruled_out", best, f"{_ran(best, facts)}: no gain of 5 %, so this is not what holds it back."
    return "not_settled", best, f"{_ran(best, facts)}: {_unclear(best)}"


def _untried(ruling: Ruling, facts: Facts) -> tuple[Status, Experiment | None, str]:
    ceiling = ruling.ceiling
    if ceiling and ruling.ceiling_shows:
        return "not_settled", ceiling, f"{_ran(ceiling, facts)}: {_unclear(ceiling)}"
    if ceiling and ceiling.step.worth:
        return "suspected", None, f"{_ran(ceiling, facts)}; {ruling.settled_by} would show whether this is why."
    return "suspected", None, f"No experiment has shown it yet; {ruling.settled_by} would settle it."


def _unclear(tried: Experiment) -> str:
    if tried.step.interval is None:
        return "too few rounds for an interval."
    if tried.step.significant and tried.gain.interval and tried.gain.interval[0] <= 1:
        return "but that is not shown to be faster than the script as written."
    return "too wide an interval, or too close to the noise, to tell."


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


def as_evidence(best: Experiment, facts: Facts) -> Evidence:
    """What an experiment gave, with the blocks or launches that it comes from."""
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


def _is_small(ratio: float | None, least: float) -> bool:
    """Whether what removing a cause brings, at most or by its own experiment, is known and less than worth naming."""
    return ratio is not None and ratio < least


def _severity(status: Status, best: Experiment | None, bound: float | None) -> Severity | None:
    if status == "confirmed" and best is not None:
        return "high" if best.effect >= HIGH else "medium" if best.effect >= MEDIUM else "low"
    if status == "not_settled" and (_is_small(bound, SUSPECT) or _is_small(best.effect if best else None, MEDIUM)):
        return None
    if status in OPEN:
        return "medium" if bound is not None and bound >= HIGH else "low"
    return None
