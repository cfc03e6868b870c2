"""PD130 too_many_tensors."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule
from pindiag.rules.supply import supply

HANDED = ("worker_hand_off_ms", "pin_receive_ms", "pin_pin_ms")
"""What is paid once a tensor: writing it in the worker, mapping it in the pin thread, pinning it."""


@rule(
    "PD130",
    "too_many_tensors",
    title="A batch is made of so many small tensors that handing them over is what costs",
    limit="Handing over many small tensors",
    options={"tensors": 32, "tensor_bytes": 65536, "wait_share": 0.05, "busy_share": 0.8},
    yields_to=("worker_ipc_bound", "pin_thread_bound"),
)
def too_many_tensors(facts: Facts, options: Options) -> Ruling:
    """Each tensor of a batch crosses from its worker by itself, and a batch has hundreds of them.

    What it means:
        A worker puts every tensor into shared memory of its own, with a file descriptor of its own; the training
        process, or its pin thread, opens, maps and pins each. That costs tens of microseconds a tensor, however few
        bytes it holds: lists of tensors, a dictionary with one for each column, graphs, boxes image by image.

    How it is decided:
        A batch from workers has at least `tensors` tensors (32: fewer take about a millisecond) of `tensor_bytes` or
        less on average (65536: copying more than 64 kB takes longer than sharing it), and the loop waits at least
        `wait_share` of each step (0.05: below, a faster loader brings nothing) although the workers are fetching less
        than `busy_share` of the time (0.8: workers that always fetch are the limit themselves). Ruled out where
        training on ready batches is no faster. No configuration packs tensors, so it is suspected at most: where no
        workers were faster, `worker_ipc_bound` is confirmed and this says why.

    Example:
        before: a batch that is a dictionary of 256 columns, 1 kB each: 31 ms to hand over what took 3 ms to make.
        after: one tensor of 256 columns, and `dict(zip(names, table.to(device).unbind(1)))` in the loop.

    Fix:
        One tensor for all columns of a type, cut apart (`unbind`, `split`) after the copy to the device; ragged parts
        as one tensor and their lengths; or fewer workers, none at the least.

    When to ignore:
        When the batch cannot be packed and the dataset will become expensive.

    References:
        pytorch/pytorch#123439, pytorch/pytorch#24984, metatensor/metatrain#1273.
    """
    require(facts.configuration.num_workers > 0, "The script as written has no workers: nothing is handed over.")
    tensors = facts.number("tensors_per_batch")
    require(tensors > 0, "A batch holds no tensors.")
    size = facts.number("batch_bytes") / tensors
    wait, made = facts.number("wait_share"), supply(facts)
    return Ruling(
        points=tensors >= options["tensors"]
        and size <= options["tensor_bytes"]
        and wait >= options["wait_share"]
        and made.busy_share < options["busy_share"],
        explanation=f"A batch has {figures.count(tensors)} tensors of {figures.byte_size(size)} on average; the loop "
        f"waits {figures.share(wait)} of each step for it.{_cost(facts, tensors)}",
        evidence=facts.evidence("tensors_per_batch", "batch_bytes", "wait_share", *made.names, *HANDED),
        experiments=_helped(facts),
        suspected_at_most=True,
        settled_by="a run whose collate_fn packs a batch's tensors into one",
        bound=at_most(wait),
        ceiling=ceilings.perfect_loader(facts),
        remedy={} if facts.steps(num_workers=0) else {"num_workers": 0},
        advice="Pack a batch's tensors into few large ones, and cut them apart after the copy to the device.",
    )


def _cost(facts: Facts, tensors: float) -> str:
    """What handing over takes of all who do it, a tensor."""
    known = [ms for name in HANDED if (ms := facts.get(name)) is not None]
    if not known:
        return ""
    return (
        f" Handing it over takes {figures.milliseconds(sum(known))} ms of the worker and the pin thread, "
        f"{figures.milliseconds(1000 * sum(known) / tensors)} µs a tensor."
    )


def _helped(facts: Facts) -> list[Experiment]:
    """No workers hand nothing over, but then the training process makes the batches: only a gain says anything."""
    return [each for each in facts.steps(num_workers=0) if each.faster]
