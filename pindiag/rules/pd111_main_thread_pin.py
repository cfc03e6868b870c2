"""PD111 main_thread_pin."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Trial
from pindiag.rules.inputs import Experiment, Facts, Missing
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD111",
    "main_thread_pin",
    title="The training loop pins batches itself, and launches nothing meanwhile",
    limit="Pinning in the training loop",
    options={"pin_share": 0.05, "fell_to": 0.5},
    yields_to=("pinned_alloc",),
)
def main_thread_pin(facts: Facts, options: Options) -> Ruling:
    """Batches are copied into pinned memory by the very thread that trains, in the way of each step.

    What it means:
        Pinning a batch is a copy within the host's memory. A loader with workers and `pin_memory=True` leaves it to a
        thread of its own, beside the step. `batch.pin_memory()` in the loop, or a loader that pins without workers,
        makes the loop do it: the GPU is given nothing new until it is done.

    How it is decided:
        Pinning in the main thread (the script's own calls, and the loader's where it has no workers) takes at least
        `pin_share` of each step (0.05: below, free pinning would bring less than 1.05 ×). The script's own calls are
        confirmed as the cause when a loader that has workers was faster with `pin_memory=True` than without, and the
        time in these calls fell to at most `fell_to` of what it was (0.5: a batch that is pinned already is not copied
        again, so most of it goes). A loader that pins without workers is confirmed when it was faster without pinning;
        that workers are faster says nothing here, since they take over the fetching too.

    Example:
        before: `images = images.pin_memory().to(device, non_blocking=True)`: 9 ms a step for batches of 38 MB.
        after: `DataLoader(..., num_workers=4, pin_memory=True)` and `images.to(device, non_blocking=True)`: another
        thread pins the next batch beside the step.

    Fix:
        `DataLoader(..., num_workers=4, pin_memory=True)` and no `.pin_memory()` in the loop.

    When to ignore:
        When it is ruled out: for large batches pinning here is cheaper than workers that hand them over.

    References:
        pytorch.org, "A guide on good usage of non_blocking and pin_memory()".
    """
    require(facts.accelerator, "There is no accelerator, so nothing is pinned.")
    by_hand, by_loader = _by_hand_ms(facts), _by_loader_ms(facts)
    require(by_hand + by_loader > 0, "Nothing is pinned in the main thread.")
    step = facts.number("step_ms")
    require(step > 0, "A step takes no time.")
    share = (by_hand + by_loader) / step
    place = _place(facts) if by_hand else None
    workers = facts.configuration.num_workers
    return Ruling(
        points=share >= options["pin_share"],
        explanation=f"Pinning in the main thread takes {figures.milliseconds(by_hand + by_loader)} ms, "
        f"{figures.share(share)} of each step{f', at {place}' if place else ''}.",
        evidence=facts.evidence(
            "hand_pin_ms_per_step", "hand_pins_per_step", "hand_pin_bytes_per_step", "pin_pin_ms", "step_ms"
        ),
        experiments=_by_the_pin_thread(facts, options["fell_to"]) if by_hand else _without_pinning(facts),
        settled_by="a run whose loader pins with workers" if by_hand else "a run without pinning",
        bound=at_most(share),
        remedy={"pin_memory": True} if by_hand and workers else {},
        advice="" if by_hand and workers else "Let a loader with workers pin (`pin_memory=True`), not the loop.",
        location=place,
    )


def _by_hand_ms(facts: Facts, trial: Trial | None = None) -> float:
    return facts.get("hand_pin_ms_per_step", trial) or 0.0


def _by_loader_ms(facts: Facts) -> float:
    """A loader without workers pins where it is asked for a batch."""
    return (facts.get("pin_pin_ms") or 0.0) if facts.get("pin_in_main_thread") else 0.0


def _by_the_pin_thread(facts: Facts, fell_to: float) -> list[Experiment]:
    """The loader's pin thread in place of the script's calls; a gain counts only where these became cheap."""
    tried = [each for each in facts.steps(pin_memory=True) if each.trial.configuration.num_workers > 0]
    return [each for each in tried if not each.faster or _fell(facts, each, fell_to)]


def _fell(facts: Facts, each: Experiment, fell_to: float) -> bool:
    return _by_hand_ms(facts, each.trial) <= fell_to * _by_hand_ms(facts, each.over)


def _without_pinning(facts: Facts) -> list[Experiment]:
    """No pinning; workers only where they brought nothing, since they would take over more than the pinning."""
    moved = facts.alone(num_workers=lambda number: number > 0)
    return facts.alone(pin_memory=False) + [each for each in moved if not each.faster]


def _place(facts: Facts) -> str | None:
    """Where the script pins most: the source of the fact begins with it."""
    try:
        place = facts.fact("hand_pin_ms_per_step").source.partition("; ")[0].partition(", ")[0]
    except Missing:
        return None
    return place if place.rpartition(":")[2].isdigit() else None
