"""How much of a step copies to the device take: what findings of fact about them weigh."""

from __future__ import annotations

from pindiag.model import Severity
from pindiag.rules.inputs import Facts


def share_of_step(facts: Facts) -> float | None:
    """The larger of the time that the script spends asking for copies, and that the device spends making them."""
    step, copying = facts.get("step_ms"), facts.get("gpu_copy_ms")
    asked = facts.get("transfer_share")
    made = copying / step if step and copying is not None else None
    return max((share for share in (asked, made) if share is not None), default=None)


def severity(facts: Facts, least_share: float) -> Severity:
    """`medium` where copies take at least this share of each step, so that a run feels what is wrong with them."""
    share = share_of_step(facts)
    return "medium" if share is not None and share >= least_share else "low"
