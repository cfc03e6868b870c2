"""Who makes the batches, how busy they are, and how much of that is on a CPU: shared by the loader's rules."""

from __future__ import annotations

from dataclasses import dataclass

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts

AT_WORK = 0.5
"""Workers that make batches for less than this share of the time are not what a drained loader waits for most."""


@dataclass(frozen=True)
class Supply:
    """The makers of batches in the script as written; shares of their own time."""

    who: str
    verb: str
    busy_share: float
    """Fetching and collating, of all time they had."""
    cpu_share: float
    """On a CPU, or queueing for one, of the busy time."""
    names: tuple[str, ...]
    """The facts it was read from."""


def supply(facts: Facts) -> Supply:
    """Read it from the rings of the workers or, without workers, from the wait of the main thread.

    Raises:
        Missing: the facts were not measured.
    """
    if facts.configuration.num_workers == 0:
        return Supply("the training process", "is", 1.0, _wanted(facts, "wait_cpu_share"), ("wait_cpu_share",))
    names = ("worker_busy_share", "worker_fetch_cpu_share", "run_delay_share")
    return Supply("the workers", "are", facts.number(names[0]), _wanted(facts, names[1]), names)


def more_workers(facts: Facts) -> list[Experiment]:
    """Trials with more workers, and nothing else."""
    own = facts.configuration.num_workers
    return facts.alone(num_workers=lambda workers: workers > own)


def fewer_workers(facts: Facts) -> list[Experiment]:
    """Trials with fewer workers, but some, and nothing else."""
    own = facts.configuration.num_workers
    return facts.alone(num_workers=lambda workers: 0 < workers < own)


def more_workers_remedy(facts: Facts) -> dict[str, bool | int | None]:
    """One worker a usable CPU that the training process leaves, where the script has fewer and more were not tried."""
    workers = int(facts.get("usable_cpus") or 0) - 1
    untried = workers > facts.configuration.num_workers and not more_workers(facts)
    return {"num_workers": workers} if untried else {}


def makers_are_the_limit(facts: Facts) -> bool:
    """Whether what a perfect loader takes away is the making of batches, and hardly anything else.

    With workers, these alone (no pin thread) have to be as slow as training, and at work while they are: otherwise it
    is what comes between that costs. And where the same was faster with fewer workers or none, those who make batches
    are not too few.
    """
    if any(each.faster for each in [*fewer_workers(facts), *facts.steps(num_workers=0)]):
        return False
    return facts.configuration.num_workers == 0 or _at_their_limit(facts, at_work=True)


def hand_off_is_the_limit(facts: Facts) -> bool:
    """Whether the workers alone (no pin thread) are as slow as training, although they make batches for little of it.

    Then it is neither the making of batches nor what training does beside it.
    """
    return facts.configuration.num_workers > 0 and _at_their_limit(facts, at_work=False)


def _at_their_limit(facts: Facts, *, at_work: bool) -> bool:
    alone = ceilings.workers_alone(facts)
    busy = facts.get("worker_busy_share", alone.trial) if alone else None
    return ceilings.as_slow_as_training(alone) and busy is not None and (busy >= AT_WORK) == at_work


def outpaced(facts: Facts) -> bool:
    """Whether the workers, drained with nothing beside them, deliver clearly more than training takes."""
    return facts.configuration.num_workers > 0 and ceilings.outpaces(ceilings.workers_alone(facts))


def alone_in_words(facts: Facts) -> str:
    """What the workers alone deliver; "" where there are none, or they were not drained."""
    alone = ceilings.workers_alone(facts) if facts.configuration.num_workers > 0 else None
    if alone is None:
        return ""
    shown = figures.ratio_with_interval(alone.effect, alone.step.interval)
    return f" Drained alone, the workers deliver {shown} what training takes."


def contended_share(facts: Facts) -> float:
    """Share of the wanted CPU time that the processes of the target spent queueing for a CPU; 0 where not known."""
    return min(max(facts.get("run_delay_share") or 0.0, 0.0), 1.0)


def _wanted(facts: Facts, name: str) -> float:
    """A CPU share as it would be if nobody had queued for a CPU: a queue is not an idle disk."""
    running = 1 - min(contended_share(facts), 0.95)
    return min(facts.number(name) / running, 1.0)
