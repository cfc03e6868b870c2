"""The six factors by which people decide on pinned memory: the rule of thumb beside what was measured here."""

from __future__ import annotations

from collections.abc import Callable

from pindiag import figures
from pindiag.model import Factor, Scalar, Trial
from pindiag.rules import ceilings
from pindiag.rules.differences import difference
from pindiag.rules.inputs import Experiment, Facts, Inputs, Missing

Told = tuple[Scalar, str]


def factors(inputs: Inputs) -> list[Factor]:
    """The six factors in fixed order; what was not measured says so and why."""
    facts = Facts(inputs)
    return [
        _factor("batch size", "Small batches do not repay pinning.", _batch_size, facts),
        _factor("sample size", "Large samples gain most from pinning.", _sample_size, facts),
        _factor("GPU use", "An idle GPU asks for more workers.", _gpu_use, facts),
        _factor("memory", "Pin only where memory is plentiful.", _memory, facts),
        _factor("workers", "Several for each GPU, up to the number of cores.", _workers, facts),
        _factor("non_blocking", "Always together with pinning.", _non_blocking, facts),
    ]


def _factor(name: str, rule_of_thumb: str, tell: Callable[[Facts], Told], facts: Facts) -> Factor:
    try:
        value, measured = tell(facts)
    except Missing as missing:
        value, measured = None, f"not measured ({str(missing).rstrip('.')})"
    return Factor(name=name, value=value, rule_of_thumb=rule_of_thumb, measured=measured)


def _batch_size(facts: Facts) -> Told:
    samples = facts.number("batch_samples")
    size = figures.byte_size(facts.number("batch_bytes"))
    other = _gains(facts, "batch_size") or "Other sizes change training and are swept only when asked."
    return int(samples), f"{figures.count(samples)} samples, {size} a batch. {other}"


def _sample_size(facts: Facts) -> Told:
    size = facts.number("sample_bytes")
    pinning = _gains(facts, "pin_memory") or "Pinning alone was not tried."
    return int(size), f"{figures.byte_size(size)} a sample. {pinning}{_copies_alone(facts)}"


def _copies_alone(facts: Facts) -> str:
    own = facts.configuration.non_blocking is True
    replayed = ceilings.pinned_copies(facts, non_blocking=own) or ceilings.pinned_copies(facts, non_blocking=not own)
    return f" Copy and step alone, on ready batches: pinned {_shown(replayed)} over pageable." if replayed else ""


def _gpu_use(facts: Facts) -> Told:
    if not facts.accelerator:
        return None, "No accelerator here."
    name = "gpu_busy_share" if facts.get("gpu_busy_share") is not None else "nvml_utilization"
    busy = facts.number(name)
    workers = _gains(facts, "num_workers") or "Other numbers of workers were not tried."
    ceiling = ceilings.compute(facts)
    reached = (
        f" Training reaches {figures.share(min(1 / ceiling.effect, 1.0))} of its compute ceiling." if ceiling else ""
    )
    starved = facts.get("gpu_starved_share")
    idle = "" if starved is None else f" It is starved {figures.share(starved)} of the time while the script waits."
    return busy, f"Kernels run {figures.share(busy)} of the time.{idle}{reached} {workers}"


def _memory(facts: Facts) -> Told:
    total = facts.get("cgroup_memory_limit_bytes") or facts.number("memory_bytes")
    used = facts.get("pss_bytes")
    left = facts.get("memory_available_min_bytes")
    pinned = facts.get("pinned_reserved_bytes") or facts.get("pinned_reckoned_bytes")
    said = [f"{figures.byte_size(total)} in all"]
    said += [] if used is None else [f"{figures.byte_size(used)} used by the script as written"]
    said += [] if pinned is None else [f"{figures.byte_size(pinned)} of it pinned"]
    said += [] if left is None else [f"at the least {figures.byte_size(left)} left"]
    return int(total), ", ".join(said) + "."


def _workers(facts: Facts) -> Told:
    workers = facts.configuration.num_workers
    cores = facts.get("usable_cpus")
    usable = "" if cores is None else f", {figures.count(cores)} usable CPUs"
    tried = _gains(facts, "num_workers") or "Others were not tried."
    alone = ceilings.loader_alone(facts)
    drained = f" The loader alone delivers {_shown(alone)} what training takes." if alone else ""
    return workers, f"{workers} as written{usable}. {tried}{drained}"


def _non_blocking(facts: Facts) -> Told:
    value = facts.configuration.non_blocking
    if not facts.accelerator:
        return value, "No accelerator here, so nothing is copied to one."
    if value is None:
        return value, "No call that copies to the device was seen."
    tried = _gains(facts, "non_blocking") or "Its change alone was not tried."
    replayed = ceilings.unblocked_copies(facts)
    alone = f" Copy and step alone, on ready pinned batches: {_shown(replayed)} without the wait." if replayed else ""
    return value, f"{value} as written. {tried}{alone}"


def _shown(ceiling: Experiment) -> str:
    return figures.ratio_with_interval(ceiling.effect, ceiling.step.interval)


def _gains(facts: Facts, key: str) -> str:
    """What changing this one argument gave, for each trial that did nothing else."""
    own = facts.configuration
    alone = [trial for trial in [*facts.measured(), *facts.resized()] if difference(own, trial.configuration) == {key}]
    told = [text for trial in sorted(alone, key=lambda one: _size(one, key)) if (text := _gain(facts, trial, key))]
    return f"Over the script as written: {'; '.join(told)}." if told else ""


def _size(trial: Trial, key: str) -> int:
    value = getattr(trial.configuration, key)
    return value if isinstance(value, int) else 0


def _gain(facts: Facts, trial: Trial, key: str) -> str | None:
    gain = facts.gain(trial)
    if gain is None:
        return None
    shown = figures.ratio_with_interval(gain.ratio, gain.interval)
    return f"{key}={getattr(trial.configuration, key)!r} {shown}"
