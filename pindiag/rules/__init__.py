"""From facts to findings: what is wrong, how sure that is, and what to say about it.

Rules are pure functions of facts, one file each, listed in `registry`.
"""

from __future__ import annotations

from pindiag.model import Finding, Fix
from pindiag.rules import engine
from pindiag.rules.catalogue import catalogue, explain, markdown_table
from pindiag.rules.factors import factors
from pindiag.rules.inputs import Facts, Inputs
from pindiag.rules.ranking import primary
from pindiag.rules.registry import RULES
from pindiag.rules.remedies import recommended
from pindiag.rules.verdict import verdict

__all__ = [
    "Inputs",
    "catalogue",
    "explain",
    "factors",
    "judge",
    "markdown_table",
    "primary",
    "recommended_fix",
    "verdict",
]


def judge(inputs: Inputs) -> list[Finding]:
    """What every rule says about a run, the most important finding first."""
    return engine.judge(inputs, RULES)


def recommended_fix(inputs: Inputs) -> Fix | None:
    """The change to the recommended configuration, whether or not its cause is known; None where it gains nothing."""
    return recommended(Facts(inputs))
