"""PD103 worker_contention."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule
from pindiag.rules.supply import fewer_workers


@rule(
    "PD103",
    "worker_contention",
    title="The workers take CPUs from each other and from training",
    limit="Competition for the CPUs",
    options={"run_delay_share": 0.15, "own_share": 0.5, "full_share": 0.9},
)
def worker_contention(facts: Facts, options: Options) -> Ruling:
    """There are more workers than the CPUs can run, so that they and the training process wait for each other.

    What it means:
        More processes want to run than there are usable CPUs. Each switch costs, caches are lost, and the training
        process itself is kept from launching its work.

    How it is decided:
        The processes of the target spend at least `run_delay_share` of the CPU time they want queueing for it
        (0.15: on machines with CPUs to spare it stays below 0.05) while they use at least `own_share` of the usable
        CPUs themselves (0.5: below, it is other programs that they queue behind); or they use at least `full_share`
        of them (0.9). Confirmed when fewer workers alone (at least one) were faster; where none were tried, when
        training on ready batches, which need no workers, gave more than all the waiting for batches takes: then the
        step itself was slower beside them. Ruled out where training on ready batches was no faster.

    Example:
        before: `num_workers=16` in a container that may use 4 CPUs: whoever runs takes the CPU of one who could.
        after: `num_workers=3`: one CPU is left for the training process.

    Fix:
        Fewer workers: usable CPUs minus one is where to start, measured is better.

    When to ignore:
        When something else ran on the machine only while it was measured.

    References:
        vqdang/hover_net#204, MIC-DKFZ/nnUNet#2965, pytorch/pytorch#46867.
    """
    workers = facts.configuration.num_workers
    require(workers > 0, "The script as written has no workers.")
    require(workers > 1, "One worker does not contend with others.")
    delay = facts.number("run_delay_share")
    used = facts.number("target_cpu_share")
    usable = int(facts.get("usable_cpus") or 0)
    left = max(usable - 1, 1)
    fewer, ready = fewer_workers(facts), ceilings.perfect_loader(facts)
    return Ruling(
        points=(delay >= options["run_delay_share"] and used >= options["own_share"]) or used >= options["full_share"],
        explanation=(
            f"With {workers} workers the processes of the script spend {figures.share(delay)} of the CPU time they "
            f"want queueing for it, and use {figures.share(used)} of the CPUs."
        ),
        evidence=facts.evidence(
            "run_delay_share", "target_cpu_share", "involuntary_switches_per_s", "psi_cpu_share", "usable_cpus"
        ),
        experiments=fewer,
        ceiling=ready,
        ceiling_shows=not fewer and _more_than_waiting(ready, facts.get("wait_share")),
        settled_by="a run with fewer workers",
        remedy={"num_workers": left} if usable and left < workers else {},
        advice="Start fewer workers, or give each process fewer threads of its own.",
    )


def _more_than_waiting(ready: Experiment | None, wait: float | None) -> bool:
    """Whether ready batches give more than taking all waits away could."""
    if ready is None or ready.step.interval is None or wait is None:
        return False
    return ready.step.interval[0] > at_most(wait)
