"""PD107 sync_defeats_overlap."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import tweaks
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, require, rule


@rule(
    "PD107",
    "sync_defeats_overlap",
    title="The script waits for the GPU in every step, so that neither can work ahead",
    limit="Waiting for the GPU",
    options={"syncs_per_step": 1.0, "answered_share": 0.9},
)
def sync_defeats_overlap(facts: Facts, options: Options) -> Ruling:
    """A call such as `.item()` waits in each step until the GPU is done, and only then is the next batch asked for.

    What it means:
        The GPU works through a queue that the script fills ahead of it. A call that needs a value from the GPU
        empties this queue: the GPU then idles until new work has been launched, and copies overlap with nothing.

    How it is decided:
        By taking it away: confirmed when the same script was faster with those calls giving what they gave before,
        without waiting. There have to be at least `syncs_per_step` of them a step (1: fewer cannot hold up every
        step). The share of the step that they take says nothing about their price: they took 66 % of a step where
        removing them gave 4 %, and elsewhere removing them gave 1.32 × (one H200). An experiment that brought nothing
        rules it out only where it answered at least `answered_share` of the calls (0.9: the first at each place has to
        wait). Without the experiment this cause is never the primary one.

    Example:
        before: `running_loss += loss.item()` in each step of a small network: the GPU idles until new work is launched.
        after: `running_loss += loss.detach()` in each step, and `running_loss.item()` once at the end of the epoch.

    Fix:
        Add up on the device (`running_loss += loss.detach()`) and read the value once in a while.

    When to ignore:
        When the value decides what the next step does.

    References:
        rosinality/style-based-gan-pytorch#50, Nerogar/OneTrainer#1608.
    """
    require(facts.accelerator, "There is no accelerator to wait for.")
    calls = facts.number("syncs_per_step")
    lazy = facts.tweaked("lazy_sync")
    return Ruling(
        points=calls >= options["syncs_per_step"],
        explanation=(
            f"The script waits for the GPU {figures.significant(calls, 2)} times a step{_most(facts)}."
            f"{tweaks.together('lazy_sync', facts)}"
        ),
        evidence=facts.evidence("syncs_per_step", "sync_ms_per_step", "synchronise_share", "gpu_overlap_share"),
        experiments=facts.tweaked_each("lazy_sync"),
        irremovable=_left_waiting(facts, lazy, options["answered_share"]) if lazy else None,
        settled_by="a live run with these calls giving what they gave before (lazy_sync)",
        weightless=True,
        remedy=tweaks.changes("lazy_sync", facts),
        advice=tweaks.advice("lazy_sync", facts),
        location=tweaks.place("lazy_sync", facts),
    )


def _left_waiting(facts: Facts, lazy: Experiment, share: float) -> str | None:
    """Why the experiment may have taken too little away."""
    calls, answered = facts.get("syncs_per_step", lazy.trial), facts.get("lazy_syncs_per_step", lazy.trial)
    if calls is None or answered is None or answered >= share * calls:
        return None
    told, of = figures.significant(answered, 2), figures.significant(calls, 2)
    return f"But only {told} of {of} calls a step could be answered without waiting."


def _most(facts: Facts) -> str:
    place = tweaks.place("lazy_sync", facts)
    return f", longest at {place}" if place else ""
