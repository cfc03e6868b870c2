"""PD135 loader_rebuilt."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD135",
    "loader_rebuilt",
    title="The script makes its training loader anew for every epoch",
    limit="A new loader for each epoch",
    options={"startup_share": 0.05},
)
def loader_rebuilt(facts: Facts, options: Options) -> Ruling:
    """The DataLoader is constructed inside the epoch loop, so every epoch starts its workers and fills its queue again.

    What it means:
        Workers, and whatever they have cached, belong to a loader. One that is made anew for each epoch starts them
        anew, and the loop waits until the first batches are there; `persistent_workers=True` changes nothing, since the
        loader that it speaks of is gone by then.

    How it is decided:
        By the source of the script: one pass of the same loop makes the loader and goes through it once. And by what
        that costs: from asking for an iterator to its first batch, less the time that a worker takes for any batch,
        makes up at least `startup_share` of an epoch (0.05: below, one loader for all would bring less than 1.05 ×).
        Blocks hold no ends of epochs, and no treatment changes where a loader is made, so it is suspected at most,
        until the script is changed and run again.

    Example:
        before: `for epoch in range(90): loader = DataLoader(shard(epoch), num_workers=8, persistent_workers=True)`:
        half a second of each epoch of 4 s.
        after: `loader = DataLoader(dataset, sampler=sampler, num_workers=8, persistent_workers=True)` before the loop,
        and `sampler.set_epoch(epoch)` in it.

    Fix:
        One loader, made before the loop, with `persistent_workers=True`; what differs between epochs goes into a
        sampler with `set_epoch(epoch)`.

    When to ignore:
        When epochs are long, or each of them needs a dataset of its own that workers must be given.

    References:
        Lightning-AI/pytorch-lightning#18862, open-mmlab/mmpretrain#196.
    """
    known = facts.fact("loader_rebuilt")
    place = facts.inputs.loader.chosen if facts.inputs.loader else None
    made = f" at {place}" if place else ""
    require(bool(known.value), f"The loader{made} is not made anew for every epoch.")
    require(facts.configuration.num_workers > 0, "It has no workers that would be started.")
    share = facts.number("loader_startup_share")
    persists = facts.configuration.persistent_workers
    return Ruling(
        points=share >= options["startup_share"],
        explanation=f"The loader{made} is made anew in every pass of the loop around {known.source}; "
        f"starting its workers takes {figures.share(share)} of an epoch."
        f"{' `persistent_workers=True` has no effect on such a loader.' if persists else ''}",
        evidence=facts.evidence("loader_rebuilt", "loader_startup_share", "startup_s", "worker_start_ms"),
        settled_by="a run of the script with one loader, made before the loop over epochs, and persistent_workers=True",
        bound=at_most(share),
        suspected_at_most=True,
        advice="Make the loader once, before the loop over epochs, with `persistent_workers=True`; let a sampler with "
        "`set_epoch` say what each epoch reads.",
        location=place,
    )
