"""Descriptors of the main process: how many it holds, and how many more with each step."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pindiag.analysis.evidence import RunEvidence, TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.analysis.samplers import Window
from pindiag.model import Fact, Sample

NOT_SAMPLED = "the platform does not tell it, or it was not sampled then"
FEW_BLOCKS = 2
"""Batches in the queue hold descriptors too, and come and go: growth in a single block may be theirs."""


def of_open_files(run: RunEvidence) -> Iterator[Fact]:
    """Over the whole run: the limit as the script left it, and how many of it the main process held."""
    held = [sample.open_files for sample in run.samples if sample.open_files is not None]
    limits = [sample.open_files_limit for sample in run.samples if sample.open_files_limit is not None]
    source = "sampler, main process, whole run"
    for name, value in (
        ("open_files_most", max(held, default=None)),
        ("open_files_least", min(held, default=None)),
        ("open_files_own_limit", limits[-1] if limits else None),
    ):
        yield fact(name, value, "files", source, NOT_SAMPLED)


def growth(trial: TrialEvidence) -> Fact:
    """Descriptors more with each step: median of the trial's blocks, the least where they did not grow in all."""
    windows = [
        (Window(launch.all(Sample), block), block.ended_ns - block.started_ns, block.steps)
        for launch in trial.launches
        for block in launch.counted
        if block in trial.blocks
    ]
    grown = [_per_step(window, ns / 1e9, steps) for window, ns, steps in windows if window.enough and steps and ns > 0]
    known = [each for each in grown if each is not None]
    enough = len(known) >= FEW_BLOCKS
    value = None if not enough else median(known) if min(known) > 0 else min(known)
    reason = f"fewer than {FEW_BLOCKS} of its blocks were sampled" if known else NOT_SAMPLED
    return fact("open_files_per_step", value, "files", f"sampler, {trial.source}", reason, trial=trial.id)


def _per_step(window: Window, seconds: float, steps: int) -> float | None:
    """The window may be a little longer than the counted part."""
    rate = window.machine_rate(lambda sample: sample.open_files)
    return None if rate is None else rate * seconds / steps
