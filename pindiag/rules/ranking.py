"""Among findings: which one hangs under another, and which stands first.

A changed argument or a tweak that was faster confirms a cause and is its fix.
An ablation confirms too: with the stage taken away the script was faster. But it takes away more than one cause, and
nobody can train that way, so its ratio only bounds what a fix can bring. Of two causes, one shown by a change that
brought `a` and one shown by a ceiling `b`, the latter holds training back more where what is left of it after the
former is mended, `b / a`, still exceeds `a`. So a cause shown by its ceiling alone ranks by the square root of that
ceiling: it never displaces a measured fix merely because ceilings are larger numbers.

Open causes rank likewise. One that was tried ranks by what that gave, though it does not settle it. Of one that was
not, all that is known is that it lies between nothing and what its own facts account for (of the wait, that part in
which those are at work whom the cause blames): it ranks by the middle of that on a log scale, the square root. So a
cause does not come first because nobody has tried it, and where its share of the evidence passes a threshold it comes
in with as little weight as it had before. Where those facts account for next to nothing and no trial gained, it stands
behind the step itself, `compute_bound`.

Where the intervals of the first few effects overlap, none of them is shown to be the largest, and the stage that alone
is as slow as training goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from pindiag.model import Finding
from pindiag.rules.inputs import Experiment
from pindiag.rules.registry import RULES
from pindiag.rules.rule import Judged
from pindiag.rules.settle import OPEN, finding_of

PLACES = {"script_error": 0, "worker_crash": 0, "pin_without_accelerator": 2, "compute_bound": 5, "no_difference": 5}
"""Of confirmed findings whose place their severity does not tell."""
OF_FACT = frozenset(each.name for each in RULES if each.of_fact)


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
        return not _is_aside(finding)
    return finding.status in OPEN and (finding.severity is not None or finding.cause == "compute_bound")


def _is_aside(finding: Finding) -> bool:
    """Whether it is a finding of fact that this run hardly feels: it stands beside the verdict, never as it."""
    return is_fact(finding.cause) and finding.severity == "low" and finding.cause != "pin_without_accelerator"


def yield_to_healthy(judged: list[Judged]) -> list[Judged]:
    """`no_difference` says nothing while a cause is confirmed or suspected."""
    standing = [each for each in judged if is_cause(each.rule.name) and _stands(each.finding)]
    if not standing:
        return judged
    names = ", ".join(each.rule.name for each in standing)
    reason = f"A cause is confirmed or suspected: {names}."
    return [
        replace(each, finding=finding_of(each.rule, "not_applicable", reason=reason))
        if each.rule.name == "no_difference" and each.finding.status == "confirmed"
        else each
        for each in judged
    ]


def _stands(finding: Finding) -> bool:
    return finding.status == "confirmed" or (finding.status == "suspected" and finding.severity is not None)


def is_cause(name: str) -> bool:
    """Whether it is a cause of slowness, not a finding of fact or of health."""
    return name not in OF_FACT


def is_fact(name: str) -> bool:
    """Whether it is a finding of fact, and not one of health."""
    return name in OF_FACT - {"compute_bound", "no_difference"}


def consequences(judged: list[Judged]) -> list[Judged]:
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
        alike = each.best.trial.id == owner.best.trial.id or _as_large(owner, each)
        return alike and each.best.keys == owner.best.keys
    return each.finding.status in OPEN and owner.rule.name in each.rule.yields_to


def _as_large(owner: Judged, each: Judged) -> bool:
    """Whether a cause that owns what the other claims too has an effect that may be as large."""
    if owner.rule.name not in each.rule.yields_to or owner.best is None or each.best is None:
        return False
    return each.best.step.interval is not None and _reaches(owner.best, each.best.step.interval[0])


def _rank(each: Judged) -> tuple[int, float, str]:
    finding = each.finding
    if finding.consequence_of is not None:
        place = 8
    elif finding.status == "confirmed":
        place = PLACES.get(each.rule.name, _place_of_fact(finding) if each.rule.of_fact else 1)
    elif finding.status in OPEN:
        behind = each.slight or finding.severity is None
        place = {"compute_bound": 6, "no_difference": 9}.get(each.rule.name, 7 if behind else 3)
    else:
        place = {"ruled_out": 10, "not_applicable": 11, "error": 12}[finding.status]
    return place, -each.effect, each.rule.code


def _place_of_fact(finding: Finding) -> int:
    """A grave one goes before what is only suspected, one that this run hardly feels behind what keeps up."""
    return {"high": 2, "medium": 4}.get(finding.severity or "low", 9)


def ranked(judged: Sequence[Judged]) -> list[Judged]:
    """The most important one first."""
    return _limit_first(sorted(judged, key=_rank))


def _limit_first(in_order: list[Judged]) -> list[Judged]:
    """Among the first causes whose effects cannot be told apart, the one whose stage alone is as slow as training."""
    leader = in_order[0].best if in_order else None
    if leader is None or leader.step.interval is None:
        return in_order
    low = leader.step.interval[0]
    near = [each for each in in_order if each.best and each.finding.consequence_of is None and _reaches(each.best, low)]
    first = next((each for each in near if each.at_limit and each.finding.status == "confirmed"), None)
    return in_order if first is None else [first, *(each for each in in_order if each is not first)]


def _reaches(best: Experiment, low: float) -> bool:
    """Whether the effect of a change that was made may be as large as this."""
    return best.trial.kind != "ablation" and best.step.interval is not None and best.step.interval[1] >= low
