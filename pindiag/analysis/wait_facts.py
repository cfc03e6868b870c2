"""How evenly the script waited for its batches."""

from __future__ import annotations

from collections.abc import Iterator

from pindiag.analysis.evidence import TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.model import Fact

FEWEST_STEPS = 20
"""Below, a tenth of the steps is hardly one."""


def of_waits(trial: TrialEvidence) -> Iterator[Fact]:
    """Part of all waiting that lies in the tenth of the steps that waited longest."""
    waits = sorted(wait for block in trial.blocks for wait in block.step_wait_ms)
    enough = len(waits) >= FEWEST_STEPS
    total = sum(waits)
    share = sum(waits[-(len(waits) // 10) :]) / total if enough and total > 0 else None
    reason = "it did not wait" if enough else f"fewer than {FEWEST_STEPS} counted steps"
    source = f"{len(waits)} counted steps; {trial.source}"
    yield fact("wait_longest_tenth_share", share, "1", source, reason, trial=trial.id)
