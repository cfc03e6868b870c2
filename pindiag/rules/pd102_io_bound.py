"""PD102 io_bound."""

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
    "PD102",
    "io_bound",
    title="Reading the data limits training",
    limit="Reading the data",
    options={"wait_share": 0.05, "busy_share": 0.5, "cpu_share": 0.5},
)
def io_bound(facts: Facts, options: Options) -> Ruling:
    """The training loop waits because samples arrive slowly from a disk, a network, or whatever else is slow to answer.

    What it means:
        Each step waits for its batch, and those who make it wait themselves: they are fetching, but not on a CPU.

    How it is decided:
        The script as written waits for at least `wait_share` of each step (0.05: below, a free loader would bring
        less than 1.05 ×), the makers of batches are fetching at least `busy_share` of the time (0.5), and less than
        `cpu_share` of that (0.5: what takes more than half decides) is on a CPU or queueing for one. Confirmed when
        more workers alone were faster: waits overlap, whatever they are for; or when training on ready batches was,
        while the workers alone (where there are any) are as slow as training and fewer of them were no faster. Ruled
        out where the workers alone deliver clearly more than training takes.

    Example:
        before: `num_workers=2` over a server that answers after 6 ms: 16 answers a batch, two at a time, 57 of a step's
        66 ms.
        after: `num_workers=8`: eight answers at a time; or the files on a local disk before training starts.

    Fix:
        More workers, so that waits overlap; data on a local disk; few large files in place of many small ones.

    When to ignore:
        When the first epoch was measured and later ones read from the page cache.

    References:
        horovod/horovod#824, nianticlabs/monodepth2#157, MIC-DKFZ/nnUNet#239.
    """
    wait = facts.number("wait_share")
    made = supply(facts)
    return Ruling(
        points=wait >= options["wait_share"]
        and made.busy_share >= options["busy_share"]
        and made.cpu_share < options["cpu_share"]
        and not outpaced(facts),
        explanation=(
            f"The loop waits {figures.share(wait)} of each step for its batch; {made.who} {made.verb} fetching "
            f"{figures.share(made.busy_share)} of the time, {figures.share(made.cpu_share)} of it on a CPU."
            f"{alone_in_words(facts)}"
        ),
        evidence=facts.evidence(
            "wait_share", "gpu_starved_share", *made.names, "read_bytes_per_s", "major_faults_per_s", "psi_io_share"
        ),
        experiments=more_workers(facts),
        settled_by="a run with more workers, or with the data on a faster disk,",
        bound=at_most(wait),
        accounted=at_most(wait * made.busy_share * (1 - made.cpu_share)),
        ceiling=ceilings.perfect_loader(facts),
        ceiling_shows=makers_are_the_limit(facts),
        at_limit=ceilings.as_slow_as_training(ceilings.workers_alone(facts)),
        advice="Bring the data nearer: a local disk, few large files in place of many small ones.",
        remedy=more_workers_remedy(facts),
    )
