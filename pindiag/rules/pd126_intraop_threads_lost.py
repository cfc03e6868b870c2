"""PD126 intraop_threads_lost."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import tweaks
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, require, rule


@rule(
    "PD126",
    "intraop_threads_lost",
    title="The pin thread leaves the training process with fewer threads for its own CPU work",
    limit="CPU work on too few threads",
)
def intraop_threads_lost(facts: Facts, _options: Options) -> Ruling:
    """Setting `pin_memory=True` with workers leaves the training process computing on one CPU thread.

    What it means:
        torch spreads CPU operations (a matrix product, `exp`, `torch.stack`) over threads, one a core. A thread takes
        the number of them over when it first runs such an operation. The pin thread sets that number to 1 for itself,
        and torch keeps it for the whole process: where the pin thread comes before the training process has run its
        first parallel operation (matrix products do not count), the training process keeps 1 from then on, without a
        warning. Whatever it computes on the CPU in each step (an encoder, augmentation, collating without workers, a
        metric) then takes several times as long. Setting the number before the loop does not help, since the pin
        thread sets it again afterwards; asking for it before does.

    How it is decided:
        By two facts and an experiment. A fresh process of this script has fewer threads after its first step with a
        pin thread than without (read from the OpenMP library; asking torch itself would mend the fault). Confirmed
        when the same configuration was faster with the number given back after its first batch, and nothing else
        changed; ruled out when that brings less than 5 %, which is so for most scripts: their work is on the GPU.
        Where the loop as written has no pin thread it loses nothing: then it is confirmed only where pinning with the
        number given back is faster than the script as written, and otherwise says why pinning slows it down. Without
        the experiment it is never the primary cause.

    Example:
        before: a frozen encoder on the CPU behind `DataLoader(..., num_workers=2, pin_memory=True)`, 16 cores: 51.7 ms
        a step, 12.6 ms without pinning.
        after: `torch.set_num_threads(torch.get_num_threads())` before the loop: 10.4 ms.

    Fix:
        `torch.set_num_threads(torch.get_num_threads())` once before the loop over the loader starts. Asking for the
        number makes the training process take it over while it is still right.

    When to ignore:
        When it is ruled out, and the training process will not come to compute on the CPU.

    References:
        pytorch/pytorch#60469.
    """
    require(facts.accelerator, "There is no accelerator, so no pin thread.")
    left = facts.number("intraop_threads_pin_thread")
    whole = facts.number("intraop_threads_no_pin_thread")
    tried = facts.tweaked("intraop_threads")
    elsewhere = _only_where_it_pins(facts, tried)
    return Ruling(
        points=left < whole and not elsewhere,
        explanation=f"{_explained(left, whole)}{tweaks.together('intraop_threads', facts)}"
        if left < whole
        else f"With a pin thread and without one it has {_threads(whole)}.",
        evidence=facts.evidence(
            "intraop_threads_pin_thread",
            "intraop_threads_no_pin_thread",
            "intraop_threads",
            "main_cpu_share",
            "step_ms",
        ),
        experiments=[tried] if tried else [],
        settled_by="a live run with the number given back (intraop_threads)",
        against_it=elsewhere or "This speaks against it.",
        weightless=True,
        remedy=tweaks.changes("intraop_threads", facts),
        advice=tweaks.advice("intraop_threads", facts),
    )


def _explained(left: float, whole: float) -> str:
    return (
        "The pin thread sets torch's number of intra-op threads to 1 for itself, and a training process that has run "
        f"no parallel operation of torch's own before takes it over: this one then computes on {_threads(left)} of "
        f"the CPU, where without a pin thread it has {_threads(whole)}."
    )


def _only_where_it_pins(facts: Facts, tried: Experiment | None) -> str:
    """What there is to say where the script as written has no pin thread, and loses nothing; else ""."""
    own = facts.configuration
    if (own.pin_memory and own.num_workers > 0) or (tried and tried.faster):
        return ""
    said = "As written there is no pin thread, so it loses nothing."
    pinned = facts.gain(tried.over) if tried else None
    if tried is None or pinned is None or not tried.step.worth:
        return said
    return (
        f"{said} But this is why pinning slows it down: {tried.over.id} runs {figures.ratio(pinned.ratio)} as fast as "
        f"written, and {figures.ratio(tried.gain.ratio)} with the number given back."
    )


def _threads(number: float) -> str:
    return f"{figures.count(number)} thread{'' if number == 1 else 's'}"
