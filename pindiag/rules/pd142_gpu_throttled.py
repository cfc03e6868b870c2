"""PD142 gpu_throttled."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Severity
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Statement, require, rule


@rule(
    "PD142",
    "gpu_throttled",
    title="The GPU's clocks were held down while the script trained",
    limit="The GPU's clocks",
    options={"held_share": 0.25, "clock_share": 0.8},
    of_fact=True,
)
def gpu_throttled(facts: Facts, options: Options) -> Statement:
    """Heat, the power supply or a power limit made the GPU run slower than it can.

    What it means:
        The driver lowers the GPU's clocks to protect it: when it grows too hot, when the power supply asks for it, or
        to stay below a power limit. Whatever is measured then is measured on a slower GPU.

    How it is decided:
        By its fact. `medium`: in at least `held_share` of the samples (0.25: a single sample of a few is no state) NVML
        named heat, a hardware slowdown or the power brake, while the script as written trained. `low`: it named the
        power limit in so many, and the clock ran at no more than `clock_share` of its maximum on average (0.8: what
        works hardest meets the limit on many GPUs, and loses a few per cent). It claims no gain.

    Example:
        before: heat in 80 % of the samples: the clock at 900 MHz of 1 980.
        after: the fans' way is free again: none, and 1 980 MHz.

    Fix:
        Cooling: free the air's way, lower the room's temperature. For the power limit: `nvidia-smi -q -d POWER` shows
        it, `nvidia-smi -pl` sets it.

    When to ignore:
        When the power limit is set on purpose.

    References:
        NVIDIA's manual of NVML, clock event reasons.
    """
    require(facts.accelerator, "There is no accelerator.")
    held, slowed = facts.number("nvml_held_back_share"), facts.number("nvml_slowed_share")
    clock = facts.get("nvml_sm_clock_share")
    evidence = facts.evidence(
        "nvml_held_back_share", "nvml_slowed_share", "nvml_clock_reasons", "nvml_sm_clock_mhz", "nvml_power_w"
    )
    at = "" if clock is None else f" Its clock ran at {figures.share(clock)} of its maximum on average."
    capped = slowed >= options["held_share"] and clock is not None and clock <= options["clock_share"]
    from_outside = held >= options["held_share"]
    severity: Severity = "medium" if from_outside else "low"
    if not from_outside and not capped:
        said = f"Nothing held its clocks down for long.{at}"
        return Statement(status="ruled_out", explanation=said, evidence=evidence)
    return Statement(
        status="confirmed",
        severity=severity,
        explanation=f"What held its clocks down: {_reasons(facts)}.{at}",
        evidence=evidence,
        remedy_summary="See to its cooling and its power supply." if from_outside else "Raise its power limit.",
    )


def _reasons(facts: Facts) -> str:
    try:
        return str(facts.value("nvml_clock_reasons"))
    except Missing:
        return "not told in detail"
