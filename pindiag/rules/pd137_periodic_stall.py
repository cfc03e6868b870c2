"""PD137 periodic_stall."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD137",
    "periodic_stall",
    title="One step in so many takes much longer than the others",
    limit="What recurs every so many steps",
    options={"in_wait_share": 0.5},
    yields_to=("cpu_bound", "io_bound", "worker_contention", "worker_ipc_bound"),
)
def periodic_stall(facts: Facts, options: Options) -> Ruling:
    """Every N-th step is slow: something is done once in so many batches, and training waits for it.

    What it means:
        Most steps are quick, and one in N takes much longer. With as many workers as N it says only that the loader is
        slower than training: each worker hands over one batch, and then all of them are late together. Any other
        distance comes from something that is done once in so many batches: a shard of the dataset is opened, a log is
        written, a checkpoint is saved, a metric is read from the device, Python collects its garbage.

    How it is decided:
        By the lengths of the counted steps, in most blocks of the script as written: nearly all slow steps (1.25 times
        the median) recur at one distance, and nearly all steps at that distance are slow. Where at least
        `in_wait_share` of the extra time is spent waiting for the batch (0.5: the larger part), it lies in the loader;
        else in the step, and a call that waits for the device as often as that is named. The distance that equals the
        number of workers is left to the causes of a slow loader. No trial of a sweep takes it away, so it stays
        suspected; a change of the loader that makes it faster owns it. Below 10 % of the time it is ruled out.

    Example:
        before: a dataset unpacks a shard of ten batches when its first record is asked for, in the training process.
        after: `num_workers=1`: the next shard is unpacked while training still uses the last one.

    Fix:
        In the loader: let workers do it ahead, spread it over the batches, or make the unit smaller. In the step: do
        it more rarely, or in a thread of its own; keep logged values on the device.

    When to ignore:
        When what recurs is wanted as often as it is, and its share is what it is worth.

    References:
        pytorch/vision#81, pytorch/pytorch#19836, pytorch/pytorch#20687.
    """
    every, stall_ms = facts.number("stall_period_steps"), facts.number("stall_ms")
    share, in_wait = facts.number("stall_share"), facts.number("stall_wait_share")
    workers = facts.configuration.num_workers
    require(every > 1, "Every step is alike.")
    waits = in_wait >= options["in_wait_share"]
    by_workers = waits and every == workers
    place = _site(facts) if not waits else None
    period = figures.count(every)
    where = "waiting for its batch" if waits else f"in the step itself{f', at {place}' if place else ''}"
    return Ruling(
        points=not by_workers,
        explanation=(
            f"Every {period} steps one takes {figures.significant(stall_ms)} ms longer than the others, {where}: "
            f"{figures.share(share)} of the time."
        ),
        evidence=facts.evidence(
            "stall_period_steps", "stall_ms", "stall_share", "stall_wait_share", "stall_site", "step_ms"
        ),
        bound=at_most(share),
        settled_by=f"a run without what is done every {period} steps",
        suspected_at_most=True,
        against_it=f"There are {workers} workers, so that this says only that the loader is slower than training.",
        advice=(
            "Let workers prepare ahead what the dataset does once in so many batches, or spread it over all of them."
            if waits
            else "Do it more rarely, or beside training."
        ),
        location=place,
    )


def _site(facts: Facts) -> str | None:
    try:
        return str(facts.value("stall_site"))
    except Missing:
        return None
