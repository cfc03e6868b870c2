"""PD127 native_threads_in_workers."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Tweak
from pindiag.rules import tweaks
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, require, rule

OF_THREADS: tuple[Tweak, ...] = ("worker_threads", "fewer_intraop_threads")


@rule(
    "PD127",
    "native_threads_in_workers",
    title="The threads of native libraries take CPUs from each other",
    limit="A surplus of native threads",
    options={"plain_threads": 3, "queued_share": 0.05},
)
def native_threads_in_workers(facts: Facts, options: Options) -> Ruling:
    """BLAS, OpenMP or OpenCV start threads in every worker, or in a training process on the CPU: together, too many.

    What it means:
        NumPy's matrix products, OpenCV and OpenMP spread their work over as many threads as there are CPUs, in each
        process anew. Torch sets its own number to 1 in workers; it does not reach the other libraries. Eight workers
        on 16 CPUs then want 128 CPUs. Their threads wait for each other in loops that use up CPU time, so that a
        product may take many times as long as on one thread. Where training itself is on the CPU, the threads of the
        training process compete with the workers in the same way.

    How it is decided:
        By what the sampler counts and by an experiment. It points to this cause where the processes spend at least
        `queued_share` of the CPU time they want queueing for it (0.05: with CPUs to spare it stays near 0.01), and
        their threads are more than the usable CPUs: in a worker those beyond `plain_threads` (3: one fetches, one
        hands over, one gives out the descriptors of shared memory), in the training process its intra-op threads where
        there is no accelerator. Confirmed when the script as written was faster with one native thread in each worker,
        or with half as many threads in the training process, and nothing else changed. Without the experiment it is
        never the primary cause.

    Example:
        before: `image @ matrix` in `__getitem__`, two workers on two cores: 5.9 s an epoch.
        after: the same with `OPENBLAS_NUM_THREADS=1`: 1.6 s.

    Fix:
        `threadpoolctl.threadpool_limits(1)` in `worker_init_fn`; `cv2.setNumThreads(1)` for OpenCV; or
        `OPENBLAS_NUM_THREADS=1`, `MKL_NUM_THREADS=1`, `OMP_NUM_THREADS=1` in the environment (the last one holds for
        the training process too). On the CPU, `torch.set_num_threads` of the usable CPUs minus the workers.

    When to ignore:
        When there are few workers and many CPUs: then it is ruled out.

    References:
        pytorch/pytorch#30220, pytorch/pytorch#19825, transferable-samplers/transferable-samplers#12,
        pytorch/pytorch#45198.
    """
    workers = facts.configuration.num_workers
    require(workers > 0, "The script as written has no workers.")
    delay, usable = facts.number("run_delay_share"), facts.number("usable_cpus")
    native = max((facts.get("worker_threads") or 0) - options["plain_threads"], 0)
    main = 1.0 if facts.accelerator else max(facts.get("intraop_threads") or 1, 1)
    wanted = workers * (1 + native) + main
    experiments = [tried for tweak in OF_THREADS if (tried := facts.tweaked(tweak))]
    best = max(experiments, key=lambda tried: (tried.faster, tried.effect), default=None)
    untried: Tweak = "worker_threads" if native else "fewer_intraop_threads"
    made = (best.trial.tweak if best else None) or untried
    return Ruling(
        points=wanted > usable and delay >= options["queued_share"] and (native > 0 or main > 1),
        explanation=(
            f"Beside its own threads each of {workers} workers has {figures.count(native)} of native libraries, and "
            f"the training process computes with {figures.count(main)} on the CPU: {figures.count(wanted)} in all for "
            f"{figures.count(usable)} usable CPUs. Of the CPU time that they want they spend {figures.share(delay)} "
            f"queueing.{tweaks.together(made, facts)}"
        ),
        evidence=facts.evidence(
            "worker_threads",
            "worker_other_threads_cpus",
            "intraop_threads",
            "run_delay_share",
            "involuntary_switches_per_s",
            "psi_cpu_share",
            "usable_cpus",
        ),
        experiments=experiments,
        settled_by="a live run with one native thread in each worker (worker_threads)",
        weightless=True,
        remedy=tweaks.changes(made, facts),
        advice=tweaks.advice(made, facts),
    )
