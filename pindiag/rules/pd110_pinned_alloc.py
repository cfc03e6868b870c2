"""PD110 pinned_alloc."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD110",
    "pinned_alloc",
    title="New pinned buffers are made again and again while training runs",
    limit="Making new pinned buffers",
    options={"alloc_share": 0.05},
)
def pinned_alloc(facts: Facts, options: Options) -> Ruling:
    """Pinned buffers are not reused, and making one is slow and holds a lock of the driver.

    What it means:
        torch keeps pinned buffers for reuse, sorted by sizes rounded up to powers of two. Batches whose sizes vary,
        or that the script keeps, miss that cache: a new buffer takes tens of milliseconds, and launches wait.

    How it is decided:
        The loader pins, and after settling the allocator still spends at least `alloc_share` of each step making
        host buffers (0.05: what is worth mending). Confirmed when the same script without pinning was faster.

    Example:
        before: `pad_sequence(texts)` as long as the longest of each batch: every new size is allocated and page-locked
        anew.
        after: the length rounded up to a multiple of 128: few sizes, which torch keeps and uses again.

    Fix:
        Pad to few fixed lengths; do not keep batches; or `pin_memory=False`.

    When to ignore:
        When only the first epoch meets new sizes.

    References:
        pytorch/pytorch#95823, pytorch/pytorch#150517.
    """
    require(facts.accelerator, "There is no accelerator, so nothing is pinned.")
    require(facts.configuration.pin_memory, "As written the loader does not pin.")
    spent = facts.number("host_alloc_ms_per_step")
    step = facts.number("step_ms")
    require(step > 0, "A step takes no time.")
    share = spent / step
    return Ruling(
        points=share >= options["alloc_share"],
        explanation=f"Making pinned buffers takes {figures.milliseconds(spent)} ms of time for each step of "
        f"{figures.milliseconds(step)} ms.",
        evidence=facts.evidence("host_alloc_ms_per_step", "host_allocations", "pinned_reserved_bytes", "step_ms"),
        experiments=facts.alone(pin_memory=False),
        settled_by="a run without pinning, or with batches of one size,",
        bound=at_most(share),
        remedy={"pin_memory": False},
    )
