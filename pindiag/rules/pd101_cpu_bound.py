"""PD101 cpu_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, rule
from pindiag.rules.supply import (
    alone_in_words,
    makers_are_the_limit,
    more_workers,
    more_workers_remedy,
    outpaced,
    supply,
)


@rule(
    "PD101",
    "cpu_bound",
    title="Preparing batches on the CPU limits training",
    limit="Preparing batches on the CPU",
    options={"wait_share": 0.05, "busy_share": 0.5, "cpu_share": 0.5, "full_share": 0.9},
    yields_to=("per_item_overhead",),
)
def cpu_bound(facts: Facts, options: Options) -> Ruling:
    """The training loop waits because decoding and transforming samples needs more CPU time than the workers have.

    What it means:
        Each step waits for its batch while those who make it (the workers, or the training process itself with
        `num_workers=0`) compute all the time.

    How it is decided:
        The script as written waits for at least `wait_share` of each step (0.05: below, a free loader would bring
        less than 1.05 ×), the makers of batches are at work at least `busy_share` of the time (0.5: idle workers
        are not what is missing), and at least `cpu_share` of that work is on a CPU or queueing for one (0.5: what
        takes more than half of the time decides). Confirmed when more workers alone were faster; or when training on
        ready batches was, while the workers alone (where there are any) are as slow as training and fewer of them
        were no faster. Ruled out where the workers alone deliver clearly more than training takes. Where all processes
        together use `full_share` of the CPUs (0.9) neither shows anything, since they compete: then it stays suspected.

    Example:
        before: `DataLoader(dataset, batch_size=64)`: the training process decodes JPEGs itself, and the GPU waits for
        each.
        after: `DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)`: four are decoded at a time,
        beside the step.

    Fix:
        More workers, as long as CPUs are left; then cheaper work: smaller images, a faster decoder, transforms on
        the GPU, results cached on disk.

    When to ignore:
        When the machine that trains later has more CPUs than the one that was measured.

    References:
        pytorch/vision#81, mapbox/robosat#180.
    """
    wait = facts.number("wait_share")
    made = supply(facts)
    full = (facts.get("target_cpu_share") or 0.0) >= options["full_share"]
    alone = ceilings.workers_alone(facts)
    return Ruling(
        points=wait >= options["wait_share"]
        and made.busy_share >= options["busy_share"]
        and made.cpu_share >= options["cpu_share"]
        and (full or not outpaced(facts)),
        explanation=(
            f"The loop waits {figures.share(wait)} of each step for its batch; {made.who} "
            f"{made.verb} at work {figures.share(made.busy_share)} of the time, "
            f"{figures.share(made.cpu_share)} of it on a CPU.{alone_in_words(facts)}"
        ),
        evidence=facts.evidence("wait_share", "gpu_starved_share", *made.names, "target_cpu_share"),
        experiments=more_workers(facts),
        settled_by="a run with more workers, or on batches that are ready,",
        bound=at_most(wait),
        accounted=at_most(wait * made.busy_share * made.cpu_share),
        ceiling=ceilings.perfect_loader(facts),
        ceiling_shows=makers_are_the_limit(facts),
        at_limit=ceilings.as_slow_as_training(alone),
        advice="Make a sample cheaper: smaller images, a faster decoder, transforms on the GPU, results kept on disk.",
        remedy=more_workers_remedy(facts),
        irremovable=(
            "But the CPUs are all in use, so more workers could not show it; cheaper transforms would."
            if full
            else None
        ),
    )
