"""The experiment that no block of steps makes: workers that live on from epoch to epoch, and nothing else."""

from __future__ import annotations

import statistics

from pindiag.epoch_start import WORTH_A_TRY, start_share
from pindiag.journal import Journal
from pindiag.model import TrainingLoop, Treatment
from pindiag.plan.treatments import treatment


def living_on(journal: Journal) -> Treatment | None:
    """The script as written with `persistent_workers=True`, where starting workers in each epoch is dear.

    None where its workers live on already, or cannot since the loader is made anew, or an epoch's length is unknown.
    """
    baseline = journal.baseline
    if baseline is None or baseline.num_workers == 0 or baseline.persistent_workers or _rebuilt(journal):
        return None
    share = _start_share(journal)
    return treatment(baseline, {"persistent_workers": True}) if share is not None and share >= WORTH_A_TRY else None


def _rebuilt(journal: Journal) -> bool:
    return any(loop.rebuilt for launch in journal.launches for loop in launch.all(TrainingLoop))


def _start_share(journal: Journal) -> float | None:
    found, trial = journal.chosen, journal.baseline_id or ""
    raced = [launch for launch in journal.launches if launch.purpose in ("discover", "round")]
    startup_s = journal.startup_s(raced, trial)
    rates = [rate.value for rate in journal.rates("discover", "round") if rate.trial == trial]
    if found is None or found.batches_per_epoch is None or startup_s is None or not rates:
        return None
    epoch_s = found.batches_per_epoch * found.batch_samples / statistics.median(rates) + startup_s
    return start_share(startup_s, _batch_s(journal), epoch_s)


def _batch_s(journal: Journal) -> float:
    """Making a batch, as the main process does without workers; 0 where no such block was counted."""
    made = journal.treatments
    own = [
        block.wait_ms / block.steps / 1e3
        for block in journal.blocks("discover", "round")
        if block.steps and (ran := made.get(block.trial)) and ran.competes and ran.configuration.num_workers == 0
    ]
    return statistics.median(own) if own else 0.0
