"""PD108 pin_thread_bound."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Trial
from pindiag.rules import ceilings
from pindiag.rules.inputs import Experiment, Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule
from pindiag.rules.settle import as_evidence


@rule(
    "PD108",
    "pin_thread_bound",
    title="The one pin thread limits what all workers together deliver",
    limit="The pin thread",
    options={"busy_share": 0.7, "wait_share": 0.05, "contend_share": 0.1},
    yields_to=("pinned_alloc", "intraop_threads_lost"),
)
def pin_thread_bound(facts: Facts, options: Options) -> Ruling:
    """Every batch of every worker passes one thread that copies it into pinned memory, and that thread is busy.

    What it means:
        With workers and `pin_memory=True`, one thread of the training process receives each batch and copies it.
        It does not become faster with more workers, and it competes with the training loop for Python's lock.

    How it is decided:
        By draining the loader without a training step: with the pin thread it delivers clearly less than without, and
        hardly more than training with that thread takes, though training on ready batches would be faster. Confirmed
        when what removes the thread (no workers, or no pinning) was faster than the same with it. Where the loop as
        written does not pin, this thread does not run and is not what holds it back: then this finding is about pinned
        configurations, and says why pinning with workers does not help. Where drained loaders do not tell:
        the loader pins and has workers, the pin thread is at work at least `busy_share` of the time (0.7: queues are
        short, so a stage is felt before it is busy all the time), and the loop waits at least `wait_share` of each
        step (0.05: below, a faster loader brings nothing). Where the thread keeps up and training was faster without
        pinning all the same, it is the thread's work beside the step that costs: it is at work at least
        `contend_share` of the time (0.1: it can take no more than that from the step), and holds Python's lock.

    Example:
        before: `num_workers=8, pin_memory=True` with batches of 38 MB, of which the pin thread needs 11 ms for each:
        the loader delivers 3 600 samples/s, 11 500 without that thread, and more workers change nothing.
        after: `num_workers=0, pin_memory=True`: no such thread; training runs at 4 810 samples/s, 3 660 before.

    Fix:
        `num_workers=0` where fetching is cheap, `pin_memory=False` where copies are small; otherwise a batch
        class whose own `pin_memory()` copies with several threads.

    When to ignore:
        Where it speaks of pinned configurations, and the script as written does not pin: it says why pinning would not
        help, and asks for nothing. Where it is confirmed of the script as written, never.

    References:
        pytorch/pytorch#77139, pytorch/pytorch#25010.
    """
    require(facts.configuration.num_workers > 0, "Without workers there is no pin thread.")
    cost = ceilings.pin_thread_cost(facts)
    if (cost is None or not cost.step.slower) and _contends(facts, options):
        return _by_contention(facts)
    if cost is None or not (cost.step.slower or cost.step.no_slower):
        return _by_busy_share(facts, options)
    trained = _pinned_training(facts)
    require(bool(trained), "As written the loader does not pin, so no pin thread runs; none that pins was tried.")
    return _by_ceiling(facts, cost, trained)


def _by_ceiling(facts: Facts, cost: Experiment, trained: list[Trial]) -> Ruling:
    alone = [each for trial in trained if (each := ceilings.loader_alone(facts, trial))]
    follows = [each for each in alone if ceilings.as_slow_as_training(each) and not ceilings.keeps_up(facts, each.over)]
    unpinned = (
        "" if facts.configuration.pin_memory else " As written the loop is unpinned, so no pin thread runs there."
    )
    tried = facts.planned(_without_the_thread(facts))
    useless = bool(unpinned and tried) and all(each.gain.excluded for each in tried)
    paced = f" Drained, it delivers {_times(follows[0])} what training with it takes." if follows else ""
    return Ruling(
        points=cost.step.slower and bool(follows) and not useless,
        explanation=(
            f"With the pin thread the loader alone delivers {_times(cost)} of what it does without.{paced}{unpinned}"
        ),
        evidence=[
            *(as_evidence(each, facts) for each in [cost, *follows]),
            *facts.evidence("pin_busy_share", "pin_receive_ms", "pin_pin_ms", "pin_idle_ms", "wait_share"),
        ],
        experiments=tried,
        against_it="Nothing that pins is faster than it." if useless else "This speaks against it.",
        settled_by="a run with pinning and without workers",
        ceiling=ceilings.perfect_loader(facts, follows[0].over) if follows else None,
        at_limit=True,
    )


def _by_busy_share(facts: Facts, options: Options) -> Ruling:
    require(facts.configuration.pin_memory, "As written the loader does not pin, so no pin thread runs.")
    busy = facts.number("pin_busy_share")
    wait = facts.number("wait_share")
    return Ruling(
        points=busy >= options["busy_share"] and wait >= options["wait_share"],
        explanation=(
            f"The pin thread is at work {figures.share(busy)} of the time, and the loop waits {figures.share(wait)} "
            "of each step."
        ),
        evidence=facts.evidence("pin_busy_share", "pin_receive_ms", "pin_pin_ms", "pin_idle_ms", "wait_share"),
        experiments=_without_the_thread(facts),
        settled_by="a run without workers, or without pinning,",
        bound=at_most(wait),
    )


def _contends(facts: Facts, options: Options) -> bool:
    """Whether the thread keeps up with training, and training was faster without it."""
    busy = facts.get("pin_busy_share")
    if not facts.configuration.pin_memory or busy is None:
        return False
    limits = busy >= options["busy_share"] and (facts.get("wait_share") or 0.0) >= options["wait_share"]
    unpinned = facts.alone(pin_memory=False)
    return not limits and busy >= options["contend_share"] and any(each.step.worth for each in unpinned)


def _by_contention(facts: Facts) -> Ruling:
    busy = facts.number("pin_busy_share")
    return Ruling(
        points=True,
        explanation=(
            f"The pin thread keeps up, yet training is faster without pinning. {figures.share(busy)} of the time that "
            "thread is at work in the training process, and where it holds Python's lock the step waits for it."
        ),
        evidence=facts.evidence("pin_busy_share", "pin_receive_ms", "pin_pin_ms", "pin_idle_ms", "wait_share"),
        experiments=facts.alone(pin_memory=False),
        settled_by="a run without pinning",
    )


def _pinned_training(facts: Facts) -> list[Trial]:
    """Trials that train through a pin thread with the script's workers, the script as written first."""
    workers = facts.configuration.num_workers
    every = [facts.baseline, *facts.measured()]
    return [one for one in every if one.configuration.pin_memory and one.configuration.num_workers == workers]


def _without_the_thread(facts: Facts) -> list[Experiment]:
    """No workers against the script's number of them, both pinned; and no pinning, where the script pins."""
    unworked = [each for each in facts.steps(num_workers=0) if each.over.configuration.pin_memory]
    if not facts.configuration.pin_memory:
        return unworked
    return [*facts.alone(pin_memory=False), *unworked, *facts.alone(num_workers=0, pin_memory=False)]


def _times(each: Experiment) -> str:
    return figures.ratio_with_interval(each.effect, each.step.interval)
