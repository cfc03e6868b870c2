"""What ceilings say: how fast the script would be if a stage cost nothing, and which stage alone is as slow.

Every function gives an `Experiment`, so each ratio has its interval, and names the two trials that it comes from;
None where they were not measured.
"""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Trial
from pindiag.rules.inputs import Experiment, Facts, Gain, Missing

AS_SLOW = 1.25
"""A loader that delivers at most this much more than training takes is what limits it: drained with nothing beside it,
any loader is somewhat faster."""

WORDS = {
    "compute_only": "batches that are on the device already",
    "loader_only": "no training step",
    "intraop_threads": "its intra-op threads given back",
    "lazy_sync": "no call that waits for the device",
    "worker_threads": "one native thread in each worker",
    "fewer_intraop_threads": "half as many threads in the training process",
    "worker_affinity": "all CPUs open to the workers",
}


def compute(facts: Facts) -> Experiment | None:
    """Batches that lie on the device already, over the script as written: no loader and no copy."""
    return _over(facts, facts.trial(facts.inputs.ceilings.compute_only or ""), facts.baseline)


def perfect_loader(facts: Facts, trial: Trial | None = None) -> Experiment | None:
    """Host batches that are ready, copied as a trial (the script as written unless one is named) copies its own.

    Without an accelerator nothing is copied, and `compute_only` says the same.
    """
    trained = trial or facts.baseline
    replayed = _ready_for(facts, trained)
    if replayed is None and facts.get("accelerator_present") == 0:
        return compute(facts)
    return _over(facts, replayed, trained)


def perfect_copies(facts: Facts) -> Experiment | None:
    """Batches on the device over the same batches copied as the script does it: what copies cost without a loader."""
    return _over(facts, facts.trial(facts.inputs.ceilings.compute_only or ""), _ready_for(facts, facts.baseline))


def pinned_copies(facts: Facts, *, non_blocking: bool) -> Experiment | None:
    """Pinned host batches over pageable ones, both copied the same way."""
    pinned = _host_batch(facts, pin_memory=True, non_blocking=non_blocking)
    pageable = _host_batch(facts, pin_memory=False, non_blocking=non_blocking)
    return _over(facts, pinned, pageable)


def unblocked_copies(facts: Facts) -> Experiment | None:
    """Pinned host batches copied without waiting, over the same ones with a wait for each copy."""
    free = _host_batch(facts, pin_memory=True, non_blocking=True)
    return _over(facts, free, _host_batch(facts, pin_memory=True, non_blocking=False))


def loader_alone(facts: Facts, trial: Trial | None = None) -> Experiment | None:
    """The loader of a trial, the script's own unless one is named, drained without a training step, over that trial."""
    trained = trial or facts.baseline
    wanted = trained.configuration
    return _over(facts, _drained(facts, wanted.num_workers, wanted.pin_memory), trained)


def pin_thread_cost(facts: Facts) -> Experiment | None:
    """The drained loader with a pin thread over the same one without: below 1, the thread holds it back."""
    workers = facts.configuration.num_workers
    return _over(facts, _drained(facts, workers, True), _drained(facts, workers, False))


def workers_alone(facts: Facts) -> Experiment | None:
    """What those who make batches deliver, over the script as written.

    It is the loader drained without a pin thread, where that was done.
    """
    workers = facts.configuration.num_workers
    drained = _drained(facts, workers, False) or _drained(facts, workers, facts.configuration.pin_memory)
    return _over(facts, drained, facts.baseline)


def as_slow_as_training(alone: Experiment | None) -> bool:
    """Whether a drained loader is hardly faster than the training that it feeds."""
    return alone is not None and alone.effect <= AS_SLOW


def outpaces(alone: Experiment | None) -> bool:
    """Whether a drained loader is shown to deliver clearly more than the training that it feeds takes."""
    return alone is not None and alone.step.interval is not None and alone.step.interval[0] > AS_SLOW


def keeps_up(facts: Facts, trial: Trial | None = None) -> bool:
    """Whether a perfect loader is shown to bring nothing worth having, so that what is left is copies and the step."""
    perfect = perfect_loader(facts, trial)
    return perfect is not None and perfect.excluded


def title(trial: Trial) -> str:
    """What a trial that is no configuration runs, as the subject of "with ..."."""
    if trial.ablation == "host_batch":
        return f"batches that are ready in {'pinned' if trial.configuration.pin_memory else 'ordinary'} memory"
    return WORDS.get(trial.ablation or trial.tweak or "", trial.id)


def in_words(facts: Facts) -> str:
    """What is possible, for a reader who never heard of ceilings; "" where no ceiling was measured."""
    try:
        loader, copies, both = perfect_loader(facts), perfect_copies(facts), compute(facts)
    except Missing:
        return ""
    if loader is None:
        return f"With a perfect loader and perfect copies this script would run {_faster(both.step)}." if both else ""
    more = f"; with perfect copies as well, {_faster(copies.step)} than that" if copies else ""
    return f"With a perfect loader this script would run {_faster(loader.step)}{more}."


def _faster(gain: Gain) -> str:
    shown = figures.ratio(gain.ratio)
    return f"{shown} faster" if gain.ratio > 1 and shown != figures.ratio(1) else f"no faster ({shown})"


def _over(facts: Facts, trial: Trial | None, over: Trial | None) -> Experiment | None:
    return facts.experiment(trial, over) if trial and over else None


def _ready_for(facts: Facts, trained: Trial) -> Trial | None:
    own = trained.configuration
    return _host_batch(facts, pin_memory=own.pin_memory, non_blocking=own.non_blocking is True)


def _host_batch(facts: Facts, *, pin_memory: bool, non_blocking: bool) -> Trial | None:
    return _ablation(facts, facts.inputs.ceilings.host_batch, pin_memory=pin_memory, non_blocking=non_blocking)


def _drained(facts: Facts, workers: int, pin_memory: bool) -> Trial | None:
    return _ablation(facts, facts.inputs.ceilings.loader_only, num_workers=workers, pin_memory=pin_memory)


def _ablation(facts: Facts, names: list[str], **wanted: bool | int) -> Trial | None:
    trials = [trial for name in names if (trial := facts.trial(name)) and trial.status == "measured"]
    return next(
        (one for one in trials if all(getattr(one.configuration, key) == value for key, value in wanted.items())), None
    )
