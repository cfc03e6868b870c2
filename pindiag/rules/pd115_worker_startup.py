"""PD115 worker_startup."""

from __future__ import annotations

from pindiag import figures
from pindiag.epoch_start import WORTH_A_TRY, start_share
from pindiag.rules.inputs import Experiment, Facts, Missing
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD115",
    "worker_startup",
    title="Every epoch starts its workers anew before it trains",
    limit="Starting workers in each epoch",
    options={"epoch_share": WORTH_A_TRY},
    yields_to=("dataset_pickled_per_worker", "loader_rebuilt"),
)
def worker_startup(facts: Facts, options: Options) -> Ruling:
    """Workers end with the epoch and are started again for the next one, which waits for them and for what they load.

    What it means:
        Without `persistent_workers=True` every `for batch in loader` starts new processes. They import modules, copy
        the dataset, open files and read indexes before their first batch, and whatever they cached is gone. Of a long
        epoch this is nothing; of one that lasts seconds it may be most.

    How it is decided:
        From asking for an iterator to its first batch, less the time that a worker takes for any batch, makes up at
        least `epoch_share` of an epoch of natural length (0.05: below, workers that live on could bring less than
        1.05 ×). Blocks of steps leave starts out. So it is confirmed only where fresh launches over whole epochs were
        faster with `persistent_workers=True` alone, ruled out where they exclude a gain of 5 %, and suspected at most
        otherwise. A sweep makes these launches where nothing else leads its race, no `--grid` says what to try, and
        two epochs or more fit a launch's share of the budget: four where they do, since the first one pays the start
        either way, so over more epochs the gain is larger.

    Example:
        before: epochs of 16 steps whose two workers read an index of 400 000 entries each: 0.3 s before 0.3 s of
        training.
        after: `DataLoader(..., num_workers=2, persistent_workers=True)`: 0.3 s once.

    Fix:
        `DataLoader(..., persistent_workers=True)`, with the loader made once, before the loop over epochs; less to
        import, read or copy in a worker.

    When to ignore:
        When epochs will be much longer than in this trial, or the workers' memory is needed between epochs.

    References:
        open-mmlab/mmpretrain#196, Lightning-AI/pytorch-lightning#18862, boreshkinai/delta-interpolator#3.
    """
    own = facts.configuration
    require(own.num_workers > 0, "The script as written has no workers.")
    require(not own.persistent_workers, "Workers are started once: `persistent_workers=True`.")
    require(facts.get("loader_rebuilt") != 1, "The loader is made anew for every epoch, so its workers cannot persist.")
    epoch_s = facts.baseline.epoch_s
    if not epoch_s:
        raise Missing("How long an epoch takes is not known.")
    batch_s = sum(facts.get(name) or 0.0 for name in ("worker_fetch_ms", "worker_collate_ms")) / 1e3
    share = start_share(facts.number("startup_s"), batch_s, epoch_s)
    return Ruling(
        points=share >= options["epoch_share"],
        explanation=f"Starting {own.num_workers} worker{'s' * (own.num_workers > 1)} takes "
        f"{figures.duration(share * epoch_s)} of each epoch of {figures.duration(epoch_s)} ({figures.share(share)}), "
        "beside the making of the first batch.",
        evidence=facts.evidence("startup_s", "worker_start_ms", "batches_per_epoch", "loader_startup_share"),
        experiments=over_whole_epochs(facts),
        settled_by="fresh launches over whole epochs with `persistent_workers=True`",
        bound=at_most(share),
        remedy={"persistent_workers": True},
        advice="Make the loader once, before the loop over epochs, with `persistent_workers=True`.",
        location=facts.inputs.loader.chosen if facts.inputs.loader else None,
    )


def over_whole_epochs(facts: Facts) -> list[Experiment]:
    """Workers that live on, and nothing else, where whole epochs were compared: blocks of steps do not see starts.

    Nor does a single epoch, which pays the start of its workers either way.
    """
    verified = facts.inputs.verification
    whole = verified is not None and (verified.epochs or 0) > 1
    return [each for each in facts.alone(persistent_workers=True) if whole and each.gain.verified]
