"""Runs rules over facts. It, not the rule, deals with missing facts and exceptions."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag.model import Finding
from pindiag.rules.inputs import Facts, Inputs, Missing
from pindiag.rules.ranking import consequences, ranked, yield_to_healthy
from pindiag.rules.rule import Judged, Rule, Statement
from pindiag.rules.settle import finding_of, settle, state


def judge(inputs: Inputs, rules: Sequence[Rule]) -> list[Finding]:
    """What every rule says, the most important finding first."""
    facts = Facts(inputs)
    judged = consequences(yield_to_healthy([_judge(each, facts) for each in rules]))
    return [each.finding for each in ranked(judged)]


def _judge(each: Rule, facts: Facts) -> Judged:
    try:
        ruling = each.check(facts, each.options)
        if isinstance(ruling, Statement):
            return Judged(state(each, ruling), each)
        return settle(each, ruling, facts)
    except Missing as missing:
        return Judged(finding_of(each, "not_applicable", reason=str(missing)), each)
    except Exception as error:  # a rule that breaks must not cost the others
        return Judged(finding_of(each, "error", reason=f"The rule failed: {type(error).__name__}: {error}"), each)
