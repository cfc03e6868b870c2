"""PD139 known_bad_version."""

from __future__ import annotations

from pindiag.model import Severity
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.known_versions import Concern, Entry, entries_of
from pindiag.rules.rule import Options, Statement, rule

SETTING = "pinned_max_round_threshold_mb"
GRAVITY: dict[Concern, Severity] = {"round_threshold": "high", "newly_pinned": "low"}


@rule(
    "PD139",
    "known_bad_version",
    title="This version of torch is known to do something wrong that this script meets",
    limit="A fault of this version",
    of_fact=True,
)
def known_bad_version(facts: Facts, _options: Options) -> Statement:
    """The installed torch has a known fault, and this script, or the change that is recommended, runs into it.

    What it means:
        Some versions handle pinned memory wrongly, or turn a batch into something else when it is pinned. Most scripts
        meet none of it; `pindiag doctor` lists all that is known of a version.

    How it is decided:
        By its fact: the version, and what makes its fault matter here. `high`: the environment sets
        `pinned_max_round_threshold_mb` on a version that can then overflow a buffer. `low`: the script as written does
        not pin, the recommended configuration does, and this version changes the type of some batches when it pins. It
        claims no gain.

    Example:
        before: `PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:1 python train.py` with torch 2.13.0.
        after: `python train.py`.

    Fix:
        The setting left out, or another version; each fault names its own.

    When to ignore:
        When batches are plain tensors: their type does not change.

    References:
        pytorch/pytorch#192722, pytorch/pytorch#32150.
    """
    torch, python = str(facts.value("torch_version")), str(facts.value("python_version"))
    met = [entry for entry in entries_of(torch, python) if _concerns(entry, facts)]
    evidence = facts.evidence("torch_version", "python_version", "allocator_settings")
    if not met:
        said = f"Nothing that is known of torch {torch} and Python {python} concerns this run."
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    return Statement(
        status="confirmed",
        severity=GRAVITY.get(met[0].concerns, "low"),
        explanation=" ".join(f"{entry.fault.versions}: {entry.fault.what}" for entry in met),
        evidence=evidence,
        remedy_summary=" ".join(dict.fromkeys(entry.fault.do for entry in met)),
    )


def _concerns(entry: Entry, facts: Facts) -> bool:
    if entry.concerns == "round_threshold":
        return SETTING in _settings(facts)
    return entry.concerns == "newly_pinned" and _is_newly_pinned(facts)


def _settings(facts: Facts) -> str:
    try:
        return str(facts.value("allocator_settings"))
    except Missing:
        return ""


def _is_newly_pinned(facts: Facts) -> bool:
    recommendation = facts.inputs.recommendation
    try:
        own = facts.configuration
    except Missing:
        return False
    return recommendation is not None and recommendation.configuration.pin_memory and not own.pin_memory
