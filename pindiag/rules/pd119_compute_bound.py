"""PD119 compute_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Status, Trial
from pindiag.rules import ceilings
from pindiag.rules.inputs import WORTH, Experiment, Facts
from pindiag.rules.rule import Options, Statement, at_most, rule
from pindiag.rules.settle import as_evidence


@rule(
    "PD119",
    "compute_bound",
    title="The training step itself is the limit; its input keeps up",
    limit="The training step itself",
    of_fact=True,
    options={"input_share": 0.15, "step_share": 0.5},
)
def compute_bound(facts: Facts, options: Options) -> Statement:
    """The step computes nearly all the time, so no DataLoader argument can make it much faster.

    What it means:
        Batches are there when they are wanted, and copies take hardly any time. What remains is the model, the
        optimizer and the rest of the script.

    How it is decided:
        Confirmed when replaying a batch that is already on the device (`compute_only`) leaves no room for a gain of
        5 %, and not settled where that is shown to be slower than training, which only a disturbance explains. Without
        that experiment: suspected when waiting and copying together take less than `input_share` of each step (0.15:
        taking them away entirely would bring less than 1.18 ×), and ruled out when they take more or when any
        configuration was shown to be faster. Ruled out also where that experiment settles nothing, but the step, as far
        as it tells, takes less than `step_share` of the time (0.5: what takes less than half does not decide): workers
        that take its CPUs make a step long without letting it wait.

    Example:
        A large convolutional network behind a loader with enough workers.

    Fix:
        None in the loader: a smaller or compiled model, lower precision, a larger GPU.

    When to ignore:
        Never; it is good news for the loader.

    References:
        None.
    """
    ceiling = ceilings.compute(facts)
    elsewhere = ceiling is not None and ceiling.effect * options["step_share"] > 1
    if ceiling and ceiling.step.interval:
        return _by_ceiling(ceiling, ceiling.step.interval, facts, elsewhere=elsewhere)
    share = facts.number("wait_share") + (facts.get("transfer_share") or 0.0)
    faster = [trial.id for trial in facts.measured() if _significant(facts, trial)]
    small = share < options["input_share"] and not faster and not elsewhere
    shown = f"{', '.join(faster)} ran faster all the same. " if faster else ""
    shown += f"{_alone(ceiling)}, in too few rounds for an interval." if ceiling else ""
    return Statement(
        status="suspected" if small else "ruled_out",
        explanation=(
            f"Waiting for batches and copying them take {figures.share(share)} of each step: without both, "
            f"{figures.ratio(at_most(share))} at most. {shown}"
        ).strip(),
        evidence=facts.evidence(
            "wait_share", "gpu_starved_share", "transfer_share", "gpu_busy_share", "main_cpu_share"
        ),
        settled_by="replaying a batch that is already on the device" if small else None,
    )


def _by_ceiling(ceiling: Experiment, interval: tuple[float, float], facts: Facts, *, elsewhere: bool) -> Statement:
    open_status: Status = "ruled_out" if elsewhere or interval[0] > WORTH else "not_settled"
    return Statement(
        status="confirmed" if ceiling.excluded else open_status,
        explanation=f"{_alone(ceiling)}.",
        evidence=[
            as_evidence(ceiling, facts),
            *facts.evidence("gpu_busy_share", "gpu_starved_share", "main_cpu_share"),
        ],
    )


def _alone(ceiling: Experiment) -> str:
    shown = figures.ratio_with_interval(ceiling.effect, ceiling.step.interval)
    return f"With input that costs nothing the script runs at {shown} of what it does as written"


def _significant(facts: Facts, trial: Trial) -> bool:
    gain = facts.gain(trial)
    return gain is not None and gain.significant
