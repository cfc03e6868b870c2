"""Tweaks as lines of the user's code: what to write, with which value, and where."""

from __future__ import annotations

import typing
from collections.abc import Mapping

from pindiag import figures
from pindiag.model import OF_WORKERS, Configuration, Fix, Tweak
from pindiag.rules import differences
from pindiag.rules.inputs import Experiment, Facts, Gain, Missing

TWEAKS: tuple[Tweak, ...] = typing.get_args(Tweak)


def of(fix: Fix) -> Tweak | None:
    """The tweak that a fix writes into the script; None where it changes arguments only."""
    return next((tweak for tweak in TWEAKS if tweak in fix.changes), None)


def changes(tweak: Tweak, facts: Facts) -> dict[str, bool | int | None]:
    """What it sets, and to what.

    Raises:
        Missing: a number of threads is not known.
    """
    if tweak == "intraop_threads":
        return {tweak: int(facts.number("intraop_threads_no_pin_thread"))}
    if tweak == "fewer_intraop_threads":
        return {tweak: _half(facts)}
    return {tweak: 1 if tweak == "worker_threads" else True}


def advice(tweak: Tweak, facts: Facts) -> str:
    """What to do, as a clause that a gain may follow."""
    if tweak == "fewer_intraop_threads":
        return f"Call `torch.set_num_threads({_half(facts)})` before training begins, which leaves CPUs to the workers."
    return _ADVICE[tweak]


def summary(tweak: Tweak, arguments: Mapping[str, bool | int | None], facts: Facts) -> str:
    """What to do, with the arguments that it was tried with."""
    said = advice(tweak, facts)
    return f"Set `{figures.arguments(arguments)}`, and {said[:1].lower()}{said[1:]}" if arguments else said


def place(tweak: Tweak, facts: Facts) -> str | None:
    """Where the script waits longest, of `lazy_sync`: the source of the fact begins with it; None for all others."""
    if tweak != "lazy_sync":
        return None
    try:
        found = facts.fact("sync_ms_per_step").source.partition(", ")[0]
    except Missing:
        return None
    return found if found.rpartition(":")[2].isdigit() else None


def applies(tweak: Tweak, made: Configuration) -> bool:
    """Whether a configuration has what it changes."""
    return made.num_workers > 0 or tweak not in OF_WORKERS


def combined(tweak: Tweak, facts: Facts) -> Experiment | None:
    """With other arguments too, where it was tried without them as well: with the recommended ones before others."""
    own, best = facts.inputs.baseline, facts.inputs.recommendation
    each = {made.over.id: made for made in facts.tweaked_each(tweak)}
    if own not in each:
        return None
    others = [made for name, made in each.items() if name != own]
    return max(others, key=lambda made: best is not None and made.over.id == best.trial, default=None)


def together(tweak: Tweak, facts: Facts) -> str:
    """What it gives alone, what other arguments give alone, and both together; "" where that was not tried."""
    alone, both = facts.tweaked(tweak), combined(tweak, facts)
    other = facts.gain(both.over) if both else None
    if alone is None or both is None or other is None:
        return ""
    arguments = figures.arguments(differences.changes(facts.configuration, both.over.configuration))
    return (
        f" `{arguments}` alone brings {_brought(other)}, the line of code alone {_brought(alone.gain)}, both together "
        f"{_brought(both.gain)}."
    )


def _brought(gain: Gain) -> str:
    return figures.ratio_with_interval(gain.ratio, gain.interval)


def _half(facts: Facts) -> int:
    return max(int(facts.get("intraop_threads") or 1) // 2, 1)


_ADVICE: Mapping[Tweak, str] = {
    "intraop_threads": "Add `torch.set_num_threads(torch.get_num_threads())` before the loader is first iterated.",
    "lazy_sync": "Add up on the device (`total += loss.detach()`) and read the value every hundredth step.",
    "worker_threads": (
        "Give the native libraries of each worker one thread, with `threadpoolctl.threadpool_limits(1)` in its "
        "`worker_init_fn` (for OpenCV `cv2.setNumThreads(1)`) or with `OPENBLAS_NUM_THREADS=1` and `OMP_NUM_THREADS=1` "
        "in the environment."
    ),
    "worker_affinity": (
        "Reset the binding with `os.sched_setaffinity(0, range(os.cpu_count()))` in `worker_init_fn`, or unset the "
        "variables that bind OpenMP's threads."
    ),
}
