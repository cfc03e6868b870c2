"""PD103 worker_contention."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.engine import Options, Ruling, require, rule
from pindiag.rules.inputs import Facts
from pindiag.rules.supply import contended_share, fewer_workers


@rule(
    "PD103",
    "worker_contention",
    title="The workers take CPUs from each other and from training",
    limit="Competition for the CPUs",
    options={"run_delay_share": 0.15, "full_share": 0.9},
)
def worker_contention(facts: Facts, options: Options) -> Ruling:
    """There are more workers than the CPUs can run, so that they and the training process wait for each other.

    What it means:
        More processes want to run than there are usable CPUs. Each switch costs, caches are lost, and the training
        process itself is kept from launching its work.

    How it is decided:
        The processes of the target spend at least `run_delay_share` of the CPU time they want queueing for it
        (0.15: on machines with CPUs to spare it stays below 0.05), or use at least `full_share` of all usable CPUs
        (0.9). Confirmed when fewer workers alone (at least one) were faster.

    Example:
        `num_workers=16` in a container that may use 4 CPUs.

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
    used = facts.get("target_cpu_share")
    usable = int(facts.get("usable_cpus") or 0)
    fewer = max(usable - 1, 1)
    return Ruling(
        points=contended_share(facts) >= options["run_delay_share"] or (used or 0.0) >= options["full_share"],
        explanation=(
            f"With {workers} workers the processes of the script spend {figures.share(delay)} of the CPU time they "
            "want queueing for it."
        ),
        evidence=facts.evidence(
            "run_delay_share", "target_cpu_share", "involuntary_switches_per_s", "psi_cpu_share", "usable_cpus"
        ),
        experiments=fewer_workers(facts),
        settled_by="a run with fewer workers",
        remedy={"num_workers": fewer} if usable and fewer < workers else {},
    )
