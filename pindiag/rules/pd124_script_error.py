"""PD124 script_error."""

from __future__ import annotations

from pindiag.model import Evidence
from pindiag.rules.inputs import Facts
from pindiag.rules.pd125_worker_crash import crashed
from pindiag.rules.rule import Options, Statement, require, rule


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
        By its fact: a launch of the script as written ended with an exception or a status that is not 0.

    Example:
        `RuntimeError: expected scalar type Float but found Double` at step 30.

    Fix:
        Mend what the traceback names; it is shown as Python printed it.

    When to ignore:
        Never.

    References:
        None.
    """
    require(not crashed(facts), "A worker of the loader died: `worker_crash` tells of it.")
    target = facts.inputs.target
    failed = target.status == "failed"
    return Statement(
        status="confirmed" if failed else "ruled_out",
        severity="high" if failed else None,
        explanation=f"The script as written ended: {target.exit}.",
        evidence=[Evidence(name="exit", value=target.exit, unit=None, source="the launch of the script as written")],
    )
