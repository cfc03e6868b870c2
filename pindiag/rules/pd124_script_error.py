"""PD124 script_error."""

from __future__ import annotations

from pindiag.model import Evidence
from pindiag.rules.inputs import Facts
from pindiag.rules.pd125_worker_crash import crashed
from pindiag.rules.rule import Options, Statement, require, rule

LESS_PINNED = (
    "Pin less: fewer batches in flight (num_workers × prefetch_factor), smaller ones, or pin_memory=False. Free memory "
    "of the GPU does not help."
)


@rule(
    "PD124",
    "script_error",
    title="The script fails under its own configuration",
    limit="The script's own error",
    of_fact=True,
)
def script_error(facts: Facts, _options: Options) -> Statement:
    """The script stopped with an error of its own, before or while it was measured.

    What it means:
        The error comes from the script as written, not from a configuration that pindiag tried. Speed is the
        second question.

    How it is decided:
        By its fact: a launch of the script as written ended with an exception or a status that is not 0. Where memory
        ran out in the call that pins a batch, it was memory of the host: CUDA's error reads as if it were the GPU's.

    Example:
        `RuntimeError: expected scalar type Float but found Double` at step 30.

    Fix:
        Mend what the traceback names; it is shown as Python printed it.

    When to ignore:
        Never.

    References:
        microsoft/WSL#8447.
    """
    require(not crashed(facts), "A worker of the loader died: `worker_crash` tells of it.")
    target = facts.inputs.target
    failed = target.status == "failed"
    pinning = facts.text("failed_while_pinning") is not None
    return Statement(
        status="confirmed" if failed else "ruled_out",
        severity="high" if failed else None,
        explanation=f"The script as written ended: {target.exit}.{_of_pinning(facts) if pinning else ''}",
        evidence=[
            Evidence(name="exit", value=target.exit, unit=None, source="the launch of the script as written"),
            *facts.evidence("failed_while_pinning", "pinned_memory_capped_by", "memory_available_min_bytes"),
        ],
        remedy_summary=LESS_PINNED if pinning else "",
    )


def _of_pinning(facts: Facts) -> str:
    """What an error of CUDA's means that pinning a batch raised."""
    capped = facts.text("pinned_memory_capped_by")
    why = f", which {capped} caps below what is free" if capped else ""
    return f" Memory ran out while a batch was pinned: that is memory of the host{why}, not of the GPU."
