"""PD108 pin_thread_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.engine import Options, Ruling, at_most, require, rule
from pindiag.rules.inputs import Facts


@rule(
    "PD108",
    "pin_thread_bound",
    title="The one pin thread limits what all workers together deliver",
    limit="The pin thread",
    options={"busy_share": 0.7, "wait_share": 0.05},
    yields_to=("pinned_alloc",),
)
def pin_thread_bound(facts: Facts, options: Options) -> Ruling:
    """Every batch of every worker passes one thread that copies it into pinned memory, and that thread is busy.

    What it means:
        With workers and `pin_memory=True`, one thread of the training process receives each batch and copies it.
        It does not become faster with more workers, and it competes with the training loop for Python's lock.

    How it is decided:
        The loader pins and has workers, the pin thread is receiving or copying at least `busy_share` of the time
        (0.7: queues are short, so a stage is felt before it is busy all the time), and the loop waits at least
        `wait_share` of each step (0.05: below, there is nothing to gain from a faster loader). Confirmed when the
        same script without pinning, or without workers, was faster. Where the loop as written does not pin, this
        thread does not run and is not blamed.

    Example:
        Batches of 38 MB: the pin thread needs 11 ms for each, whatever the number of workers.

    Fix:
        `num_workers=0` where fetching is cheap, `pin_memory=False` where copies are small; otherwise a batch
        class whose own `pin_memory()` copies with several threads.

    When to ignore:
        Never where it is confirmed.

    References:
        pytorch/pytorch#77139, pytorch/pytorch#25010.
    """
    own = facts.configuration
    require(own.pin_memory, "As written the loader does not pin, so no pin thread runs.")
    require(own.num_workers > 0, "Without workers there is no pin thread.")
    busy = facts.number("pin_busy_share")
    wait = facts.number("wait_share")
    return Ruling(
        points=busy >= options["busy_share"] and wait >= options["wait_share"],
        explanation=(
            f"The pin thread is at work {figures.share(busy)} of the time, and the loop waits {figures.share(wait)} "
            "of each step."
        ),
        evidence=facts.evidence("pin_busy_share", "pin_receive_ms", "pin_pin_ms", "pin_idle_ms", "wait_share"),
        experiments=[
            *facts.alone(pin_memory=False),
            *facts.alone(num_workers=0),
            *facts.alone(num_workers=0, pin_memory=False),
        ],
        settled_by="a run without workers, or without pinning,",
        bound=at_most(wait),
    )
