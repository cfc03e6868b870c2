"""PD109 worker_ipc_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule
from pindiag.rules.supply import contended_share, fewer_workers, hand_off_is_the_limit, supply

STAGES = ("worker_fetch_ms", "worker_collate_ms", "worker_hand_off_ms")


@rule(
    "PD109",
    "worker_ipc_bound",
    title="Handing batches over from the workers costs more than fetching them",
    limit="The hand-off from the workers",
    options={"wait_share": 0.05, "busy_share": 0.8, "run_delay_share": 0.15},
    yields_to=("pin_thread_bound", "worker_contention"),
)
def worker_ipc_bound(facts: Facts, options: Options) -> Ruling:
    """Batches cost more to pass between processes than to make, so workers slow training down.

    What it means:
        A worker puts each batch into shared memory, the training process maps it, touches it for the first time
        and unpickles what holds it. Where fetching is cheap, that is more than the work the worker took over.

    How it is decided:
        The loop waits at least `wait_share` of each step (0.05: below, a faster loader brings nothing) although
        the workers are fetching less than `busy_share` of the time (0.8: workers that always fetch are the limit
        themselves). Confirmed when no workers were faster than the script as written, or than the same with
        pinning; or when fewer were, while processes queue for CPUs less than `run_delay_share` of what they want
        (0.15: above, `worker_contention` explains it); or when training on ready batches was, while the workers alone
        are as slow as training although they make batches for less than half of that time. Ruled out where training
        on ready batches is no faster.

    Example:
        before: `DataLoader(TensorDataset(x, y), batch_size=64, num_workers=4)`: a slice is there at once, its way
        through another process is not.
        after: `DataLoader(TensorDataset(x, y), batch_size=64)`.

    Fix:
        `num_workers=0`; fewer tensors a batch; whole batches fetched by `__getitems__`.

    When to ignore:
        When the dataset will become expensive later.

    References:
        Lightning-AI/pytorch-lightning#17410, pytorch/pytorch#123439, pytorch/pytorch#24984.
    """
    require(facts.configuration.num_workers > 0, "The script as written has no workers.")
    wait = facts.number("wait_share")
    made = supply(facts)
    calm = contended_share(facts) < options["run_delay_share"]
    return Ruling(
        points=wait >= options["wait_share"] and made.busy_share < options["busy_share"],
        explanation=(
            f"The loop waits {figures.share(wait)} of each step for its batch, yet the workers are fetching only "
            f"{figures.share(made.busy_share)} of the time.{_hand_off(facts)}"
        ),
        evidence=facts.evidence("wait_share", *made.names, *STAGES, "worker_sent_bytes", "batch_bytes"),
        experiments=[*_without_workers(facts), *(fewer_workers(facts) if calm else [])],
        settled_by="a run without workers",
        bound=at_most(wait),
        accounted=at_most(wait * (1 - made.busy_share)),
        ceiling=ceilings.perfect_loader(facts),
        ceiling_shows=hand_off_is_the_limit(facts),
        at_limit=hand_off_is_the_limit(facts),
        remedy={"num_workers": 0},
        advice="Hand over less: few large tensors a batch, and samples no larger than the step needs.",
    )


def _hand_off(facts: Facts) -> str:
    """What of it the workers' own records tell; the training process has its part after them."""
    fetch, collate, hand_off = (facts.get(name) for name in STAGES)
    if fetch is None or collate is None or hand_off is None:
        return ""
    return (
        f" Making a batch takes a worker {figures.milliseconds(fetch + collate)} ms, and handing it over "
        f"{figures.milliseconds(hand_off)} ms more, before the training process maps and reads it."
    )


def _without_workers(facts: Facts) -> list[Experiment]:
    """No workers against as many as the script has, with its own pinning or, where that was tried, with the other."""
    return facts.steps(num_workers=0)
