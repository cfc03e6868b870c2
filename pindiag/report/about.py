"""The run in words: its target, its machine, its commands, how far it came."""

from __future__ import annotations

import os

from pindiag.model import PatchVerification, Report, RunSpec, Trial, Verification

ASKED_ROUNDS = 6
"""Rounds below which a gain is provisional."""

WORTH = 1.05
"""Ratio from which a change is worth writing."""


def target_name(spec: RunSpec) -> str:
    """The script's file name, or the module's name."""
    return spec.target if spec.module else os.path.basename(spec.target)


def command(spec: RunSpec, *options: str) -> str:
    """A command that continues this run; the script's own arguments are not repeated, they may hold secrets."""
    target = ["-m", target_name(spec)] if spec.module else [target_name(spec)]
    return " ".join(["pindiag run", *target, *options])


def machine(report: Report, spec: RunSpec) -> str:
    """GPU and CPU cores in words."""
    cores = f"{spec.usable_cpus} CPU core{'s' * (spec.usable_cpus != 1)}"
    seen = has_gpu(report)
    gpu = "no GPU" if seen is False else gpu_name(report) or ("a GPU" if seen else "")
    return f"{gpu}, {cores}" if gpu else cores


def has_gpu(report: Report) -> bool | None:
    """Whether torch has an accelerator here; None where it was not seen."""
    known = next((fact.value for fact in report.facts if fact.name == "accelerator_present"), None)
    return bool(known) if known is not None else (True if gpu_name(report) else None)


def gpu_name(report: Report) -> str | None:
    """The GPU's name."""
    name = report.environment.get("gpu")
    return name if isinstance(name, str) else None


def rounds(report: Report) -> int:
    """How many rounds configurations were compared in.

    The block that found the loader (round 0) is none, nor are those in which `compute_only` ran at a launch's end.
    """
    others = {one.id for one in report.trials if competes(report, one) and one.id != report.baseline}
    turns: dict[str, set[int]] = {}
    for block in report.blocks:
        if block.purpose != "verify" and block.round:
            turns.setdefault(block.trial, set()).add(block.round)
    compared = [seen for trial, seen in turns.items() if trial in others]
    return max((len(seen) for seen in compared or turns.values()), default=0)


def no_difference(report: Report) -> bool:
    """Whether it is shown that no configuration is faster."""
    return any(one.cause == "no_difference" and one.status == "confirmed" for one in report.findings)


def trial(report: Report, wanted: str | None) -> Trial | None:
    """A trial by its id."""
    return next((one for one in report.trials if one.id == wanted), None)


def leading(report: Report) -> str | None:
    """The trial of the change that comes first: a tweak's, or the recommended configuration."""
    recommended = report.recommendation
    return (recommended.tweak or recommended.trial) if recommended else None


def verified(report: Report) -> str | None:
    """The trial that fresh pairs verified."""
    made = report.verification
    if made is None or made.trial is not None:
        return made.trial if made else None
    return report.recommendation.trial if report.recommendation else None


def competes(report: Report, one: Trial) -> bool:
    """Whether it is a configuration that could be recommended: another batch size changes training itself."""
    baseline = trial(report, report.baseline)
    own = one.configuration.batch_size if baseline is None else baseline.configuration.batch_size
    return one.kind == "configuration" and one.configuration.batch_size == own


def reason(report: Report, *keys: str) -> str:
    """Why the first of these keys of report.json that has a reason is null; "" where none has."""
    reasons = {gap.key: gap.reason for gap in report.not_measured}
    return next((reasons[key] for key in keys if key in reasons), "")


def pairs(verified: Verification | PatchVerification) -> str:
    """How many launches verified, and what each of them covered."""
    said = plural(verified.pairs, "fresh pair")
    return said if verified.epochs is None else f"{said} of {plural(verified.epochs, 'whole epoch')} each"


def plural(count: int, word: str) -> str:
    """A count with its word: 1 block, 3 blocks."""
    return f"{count} {word}{'es' if word.endswith(('nch', 'tch')) else 's'}" if count != 1 else f"1 {word}"
