"""PD104 small_batch."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, require, rule


@rule(
    "PD104",
    "small_batch",
    title="A step's fixed costs outweigh the few bytes of its batch",
    limit="The small batch",
    options={"batch_bytes": 131_072, "step_ms": 20.0, "gpu_busy_share": 0.5},
)
def small_batch(facts: Facts, options: Options) -> Ruling:
    """Batches are so small that what each step costs whatever its size (calls, launches, hand-offs) decides.

    What it means:
        A step with twice the samples would take hardly longer, because its time is spent per batch, not per byte.

    How it is decided:
        A batch holds at most `batch_bytes` (131 072: memory at 10 GB/s moves that in 13 µs, far below any step), a
        step takes at most `step_ms` (20: longer ones do real work) and, on an accelerator, kernels run less than
        `gpu_busy_share` of the time (0.5). A larger batch changes training itself, so it is not tried unless
        asked, and this cause is at most suspected.

    Example:
        before: `DataLoader(rows, batch_size=32)` with rows of 30 floats: what a step and a batch cost at least is paid
        for 4 kB.
        after: `DataLoader(rows, batch_size=2048)`, with the learning rate that suits it.

    Fix:
        A larger `batch_size` (with the learning rate that suits it), or whole batches fetched by `__getitems__`.

    When to ignore:
        When the batch size is part of the method.

    References:
        ray-project/ray#52948, keon/deep-q-learning#28.
    """
    size = facts.number("batch_bytes")
    step = facts.number("step_ms")
    require(size > 0, "The batch holds no tensors.")
    busy = facts.get("gpu_busy_share") if facts.accelerator else None
    batch = facts.configuration.batch_size
    return Ruling(
        points=size <= options["batch_bytes"]
        and step <= options["step_ms"]
        and (busy is None or busy < options["gpu_busy_share"]),
        explanation=f"A batch holds {figures.byte_size(size)}, and a step takes {figures.milliseconds(step)} ms.",
        evidence=facts.evidence("batch_bytes", "batch_samples", "step_ms", "gpu_busy_share"),
        experiments=facts.alone(batch_size=lambda samples: bool(batch) and samples > (batch or 0)),
        settled_by="a run with a larger batch_size, which changes training itself,",
        suspected_at_most=True,
    )
