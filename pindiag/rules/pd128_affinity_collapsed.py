"""PD128 affinity_collapsed."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import tweaks
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, require, rule


@rule(
    "PD128",
    "affinity_collapsed",
    title="The script's processes are bound to fewer CPUs than they were given",
    limit="A narrow CPU affinity",
    options={"main_cpus": 1},
)
def affinity_collapsed(facts: Facts, options: Options) -> Ruling:
    """Workers, or the training process, may run on a few of the CPUs only, though the script was given more.

    What it means:
        An OpenMP runtime that is told to bind its threads (`KMP_AFFINITY`, `OMP_PROC_BIND`, `GOMP_CPU_AFFINITY`; some
        builds do it unasked) binds the main thread to one core when torch is imported. Workers are forked from that
        thread and inherit the binding, so that all of them share one core while the others are idle. A script's own
        `os.sched_setaffinity` may do the same.

    How it is decided:
        By the kernel's own list, read beside the blocks of the script as written. It points to this cause where the
        CPUs on which some worker may run are fewer than the workers, and fewer than the script was given at its start;
        without workers, where the training process may run on no more than `main_cpus` (1: a process that is bound to
        some of many CPUs, such as those of a NUMA node, is meant to be) of several. Confirmed when it was faster with
        the workers on all CPUs that the script was given, and nothing else changed. Without the experiment it is never
        the primary cause.

    Example:
        before: 16 workers that use 100 % of one CPU between them.
        after: `os.sched_setaffinity(0, range(os.cpu_count()))` in `worker_init_fn`: ten times as many samples a second.

    Fix:
        Unset the variables that bind threads, or reset the binding in `worker_init_fn`.

    When to ignore:
        When processes are bound on purpose, such as by a scheduler for several jobs on one machine.

    References:
        pytorch/pytorch#101850, pytorch/pytorch#99625, pytorch/pytorch#136307, pytorch/pytorch#49971.
    """
    given, workers = facts.number("affinity_cpus"), facts.configuration.num_workers
    require(given > 1, "The script was given one CPU.")
    bound = facts.number("worker_allowed_cpus" if workers else "main_allowed_cpus")
    tried = facts.tweaked("worker_affinity")
    who = f"The {workers} workers" if workers > 1 else "The worker" if workers else "The training process"
    return Ruling(
        points=bound < min(given, workers) if workers else bound <= options["main_cpus"],
        explanation=(
            f"{who} may run on {figures.count(bound)} of the {figures.count(given)} CPUs that the script was given."
            f"{tweaks.together('worker_affinity', facts)}"
        ),
        evidence=facts.evidence(
            "worker_allowed_cpus", "main_allowed_cpus", "affinity_cpus", "run_delay_share", "worker_cpu_share"
        ),
        experiments=[tried] if tried else [],
        settled_by="a live run with workers on all CPUs (worker_affinity)" if workers else "a run without the binding",
        weightless=True,
        remedy=tweaks.changes("worker_affinity", facts) if workers else {},
        advice=(
            tweaks.advice("worker_affinity", facts)
            if workers
            else "Unset the variables that bind OpenMP's threads, or `os.sched_setaffinity(0, range(os.cpu_count()))` "
            "after torch was imported."
        ),
    )
