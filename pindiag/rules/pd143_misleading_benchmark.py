"""PD143 misleading_benchmark."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Statement, rule


@rule(
    "PD143",
    "misleading_benchmark",
    title="The script's own clock leaves out part of the step, or changes it",
    limit="The script's own clock",
    options={"left_out_share": 0.1, "synchronisations": 0.5},
    of_fact=True,
)
def misleading_benchmark(facts: Facts, options: Options) -> Statement:
    """What the script times and prints is not what a step takes.

    What it means:
        A clock that is started once the batch is there does not see the loader at all, neither its workers nor its
        pinning. One that is read while the GPU still works sees the launching of that work; who waits for it later,
        `loss.item()` or a copy, pays outside the clock. And one that waits for the GPU in each step measures another
        program: one in which nothing overlaps.

    How it is decided:
        By its fact: the source of the training loop has a clock that is started and read around the step within one
        pass, and of the measured step at least `left_out_share` lies outside these lines (0.1: who compares settings
        by a figure that lacks a tenth may choose the wrong one): the wait for the batch, unless another clock times
        it, copies, and calls that wait for the GPU. Or the loop with such a clock calls `torch.cuda.synchronize()` or
        the like at least `synchronisations` times a step (0.5: every step, or nearly). Without an accelerator no call
        waits, so only the wait for the batch counts. It is always `low` and claims no gain.

    Example:
        before: `for x, y in loader: start = time.time(); ...; print(time.time() - start)`: 9 of the 20 ms of a step
        come before the clock starts.
        after: `torch.cuda.synchronize(); start = time.time()` before the loop, `torch.cuda.synchronize()` after it, and
        the time between them over the number of samples.

    Fix:
        One clock before the loop and one after it, `torch.cuda.synchronize()` before each of both, and samples divided
        by the time between them.

    When to ignore:
        When the clock is meant to time that part of the step alone.

    References:
        pytorch.org, "A guide on good usage of non_blocking and pin_memory()".
    """
    place, share = str(facts.value("clock_place")), facts.number("clock_left_out_share")
    evidence = facts.evidence(
        "clock_place",
        "clock_left_out_share",
        "clock_left_out_wait_ms",
        "clock_left_out_elsewhere_ms",
        "clock_synchronisations_per_step",
        "step_ms",
    )
    leaves_out = share >= options["left_out_share"]
    changes = (facts.get("clock_synchronisations_per_step") or 0.0) >= options["synchronisations"]
    found = [_left_out(facts, share)] if leaves_out or not changes else []
    if changes:
        found.append(f"The loop waits for the GPU in each step, at {_synchronised_at(facts)}, so nothing overlaps.")
    return Statement(
        status="confirmed" if leaves_out or changes else "ruled_out",
        severity="low" if leaves_out or changes else None,
        explanation=f"The clock that is started at {place}: {' '.join(found)}",
        evidence=evidence,
        location=place,
        remedy_summary="Time many steps at once: synchronise, read the clock, train, synchronise, read it again.",
    )


def _left_out(facts: Facts, share: float) -> str:
    """What lies outside its lines."""
    parts = [("the wait for the batch", facts.get("clock_left_out_wait_ms"))]
    parts.append(("copies and waiting for the GPU in other lines", facts.get("clock_left_out_elsewhere_ms")))
    named = [f"{name} ({figures.milliseconds(ms)} ms)" for name, ms in parts if ms]
    step = figures.milliseconds(facts.number("step_ms"))
    return f"it leaves out {figures.share(share)} of a step of {step} ms{': ' if named else ''}{', '.join(named)}."


def _synchronised_at(facts: Facts) -> str:
    return facts.fact("clock_synchronisations_per_step").source
