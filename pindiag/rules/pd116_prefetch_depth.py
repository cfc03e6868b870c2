"""PD116 prefetch_depth."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule

UNEVEN = "wait_longest_tenth_share"


@rule(
    "PD116",
    "prefetch_depth",
    title="The queue of batches is too short to bridge those that take long",
    limit="The length of the queue",
    options={"wait_share": 0.05, "longest_tenth_share": 0.5, "busy_share": 0.9},
    yields_to=("periodic_stall",),
)
def prefetch_depth(facts: Facts, options: Options) -> Ruling:
    """Batches take the workers unevenly long, and too few lie ready to bridge a slow one, so the loop waits for it.

    What it means:
        Batches are given in order. While a worker is at a slow one, the others may only fetch as far ahead as
        `prefetch_factor` lets them; then they stand idle, and once the slow batch has come nothing is in stock for the
        next. On average the workers are fast enough: what is missing is room.

    How it is decided:
        The loop waits at least `wait_share` of each step (0.05: below, a free loader would bring less than 1.05 ×),
        `longest_tenth_share` of all that waiting lies in the tenth of the steps that waited longest (0.5: where all
        steps wait alike it is 0.1, with waits as random as those for a bus 0.33), and the workers are at work less than
        `busy_share` of the time (0.9: workers that never rest have no use for room). Confirmed when the same loader was
        faster with a larger `prefetch_factor` alone, whatever the other facts say; ruled out when that brings less than
        5 %, or when training on ready batches does. Until it was tried it is never the primary cause.

    Example:
        before: two workers with `prefetch_factor=1`, and a store that takes 90 ms instead of 4 for one batch in ten:
        the loop waits for each of them, though a mean batch is made in less time than a step.
        after: `prefetch_factor=4`: the queue lasts until the slow one is there.

    Fix:
        `prefetch_factor=4`, or more where memory allows: workers × prefetch_factor batches lie in it.

    When to ignore:
        When memory is short; then even the batches out, e.g. by putting samples of one length together.

    References:
        docs.pytorch.org, torch.utils.data: prefetch_factor.
    """
    own = facts.configuration
    require(own.num_workers > 0, "The script as written has no workers, and so no queue.")
    wait, uneven = facts.number("wait_share"), facts.number(UNEVEN)
    busy = facts.number("worker_busy_share")
    deeper = deeper_queues(facts)
    unlike = wait >= options["wait_share"] and uneven >= options["longest_tenth_share"] and busy < options["busy_share"]
    return Ruling(
        points=unlike or any(each.faster for each in deeper),
        explanation=f"The loop waits {figures.share(wait)} of each step, {figures.share(uneven)} of it in the tenth of "
        f"the steps that waited longest; the workers are at work {figures.share(busy)} of the time, and "
        f"{own.num_workers * _factor(facts)} batches lie ready at most.",
        evidence=facts.evidence("wait_share", UNEVEN, "worker_busy_share", "worker_idle_ms", "queue_batches"),
        experiments=deeper,
        settled_by="a run with a larger prefetch_factor",
        bound=at_most(wait),
        ceiling=ceilings.perfect_loader(facts),
        remedy={"prefetch_factor": max(4, 2 * _factor(facts))},
        weightless=True,
        location=facts.inputs.loader.chosen if facts.inputs.loader else None,
    )


def deeper_queues(facts: Facts) -> list[Experiment]:
    """Trials with a larger prefetch_factor, and nothing else."""
    own = _factor(facts)
    return facts.alone(prefetch_factor=lambda factor: factor > own)


def _factor(facts: Facts) -> int:
    return facts.configuration.prefetch_factor or 2
