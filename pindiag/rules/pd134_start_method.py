"""PD134 start_method."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Statement, rule

SINCE = (3, 14)
"""Python's version whose default on Linux is a fork server; it was a fork before."""
PICKLABLE = (
    "Define what workers get (dataset, collate_fn, worker_init_fn) at the top of a module; or pass "
    "multiprocessing_context='fork' where there is one."
)
CHEAPER = "Pass multiprocessing_context='fork' where no library forbids it, or persistent_workers=True."


@rule(
    "PD134",
    "start_method",
    title="Workers are not forked, which costs time whenever they start, or keeps them from starting",
    limit="How workers start",
    options={"epoch_share": 0.05},
    of_fact=True,
)
def start_method(facts: Facts, options: Options) -> Statement:
    """Workers are spawned, or come from a fork server: they import everything anew, and all they get is pickled.

    What it means:
        On Linux workers were forked until Python 3.14, which takes a fork server by default; macOS and Windows spawn
        them. Either way a worker imports the script's modules again, and dataset and functions have to be picklable.

    How it is decided:
        By its fact: how workers started. Confirmed where they could not be pickled (`high` where the script as written
        failed for it, `medium` where only a treatment did, which can then not be measured), or where starting them
        takes at least `epoch_share` of an epoch (0.05: below, another way could not bring 1.05 ×): `medium`. Also
        where the default of this Python and platform is not a fork, so that the same script starts otherwise
        elsewhere: `low`. It claims no gain.

    Example:
        before: `collate_fn=lambda samples: ...` within `main()` on Python 3.14: "Can't get local object
        'main.<locals>.<lambda>'".
        after: `def collate(samples): ...` at the top of the module, and `collate_fn=collate`.

    Fix:
        Functions at the top of a module; `multiprocessing_context='fork'`; `persistent_workers=True`.

    When to ignore:
        When the start method was chosen on purpose, for CUDA in workers or threads that a fork does not survive.

    References:
        pytorch/pytorch#169252, pytorch/pytorch#167387, metatensor/metatrain#1243.
    """
    broken = facts.text("unpicklable")
    method = facts.text("start_method")
    if method is None and broken is None:
        raise Missing("No workers were started.")
    evidence = facts.evidence("start_method", "unpicklable", "python_version", "platform", "worker_start_ms")
    how = _how(method, facts)
    if broken is not None:
        failed = facts.inputs.target.status == "failed" and facts.text("target_failure") == "unpicklable"
        return Statement(
            status="confirmed",
            severity="high" if failed else "medium",
            explanation=f"{how} What a worker is to get could not be pickled: {broken.rstrip('.')}.",
            evidence=evidence,
            remedy_summary=PICKLABLE,
        )
    share = _share(facts)
    cost = "" if share is None else f" Starting them takes {figures.share(share)} of an epoch."
    dear = share is not None and share >= options["epoch_share"]
    if method == "fork" or not (dear or method == _default(facts)):
        return Statement(status="ruled_out", explanation=f"{how}{cost}", evidence=evidence)
    return Statement(
        status="confirmed",
        severity="medium" if dear else "low",
        explanation=f"{how}{cost}",
        evidence=evidence,
        remedy_summary=CHEAPER,
    )


def _how(method: str | None, facts: Facts) -> str:
    if method is None:
        return "Workers are not forked here."
    default = _default(facts)
    words = {"fork": "forked", "spawn": "spawned", "forkserver": "started by a fork server"}
    origin = ""
    if method == default and method != "fork":
        origin = f", Python's default here (Python {facts.text('python_version')})"
    elif default is not None and method != default:
        origin = ", which the script asks for"
    return f"Workers are {words.get(method, method)}{origin}."


def _default(facts: Facts) -> str | None:
    """What this Python starts by where nobody asks for anything; None where that is not known."""
    python, platform = facts.text("python_version"), facts.text("platform")
    if python is None or platform is None:
        return None
    if not platform.startswith("Linux"):
        return "spawn"
    major, minor = (int(part) for part in python.split(".")[:2])
    return "forkserver" if (major, minor) >= SINCE else "fork"


def _share(facts: Facts) -> float | None:
    """Part of an epoch in which workers are started; None where they are not started in each."""
    try:
        own, epoch_s = facts.configuration, facts.baseline.epoch_s
    except Missing:
        return None
    start_s = facts.get("startup_s")
    if own.num_workers == 0 or own.persistent_workers or not epoch_s or start_s is None:
        return None
    return min(start_s / epoch_s, 1.0)
