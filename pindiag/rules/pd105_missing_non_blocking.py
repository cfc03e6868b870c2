"""PD105 missing_non_blocking."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules import ceilings
from pindiag.rules.inputs import Facts
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD105",
    "missing_non_blocking",
    title="The script waits for copies of pinned batches that could run by themselves",
    limit="The wait for each copy",
    options={"transfer_share": 0.03},
    yields_to=("pageable_copy",),
)
def missing_non_blocking(facts: Facts, options: Options) -> Ruling:
    """Batches are pinned, but `.to(device)` without `non_blocking=True` still waits for each copy.

    What it means:
        A blocking copy ends with a synchronisation: the script cannot prepare or launch anything until the copy,
        and all work queued before it, is done.

    How it is decided:
        The loader pins, copies block, and at least `transfer_share` of each step goes into the calls (0.03: a
        synchronisation costs more than the time it takes itself, because work queued behind it starts late).
        Confirmed when `non_blocking=True` alone was faster; or when ready pinned batches were trained on
        faster without the wait than with it, and the script's own loader keeps up with those. From pageable
        memory no copy overlaps: then `pageable_copy` is the cause to mend first.

    Example:
        before: `images = images.to(device)` behind `DataLoader(..., pin_memory=True)`: the host waits for the copy to
        end.
        after: `images = images.to(device, non_blocking=True)`: it goes on, and launches the work that the copy is for.

    Fix:
        `images = images.to(device, non_blocking=True)`.

    When to ignore:
        When the host batch is changed right after the copy was asked for.

    References:
        pytorch.org, "A guide on good usage of non_blocking and pin_memory()".
    """
    require(facts.accelerator, "There is no accelerator, so nothing is copied to one.")
    own = facts.configuration
    require(own.non_blocking is not None, "No call that copies to the device was seen.")
    require(own.non_blocking is not True, "All copies are non_blocking as written.")
    require(own.pin_memory, "Batches are pageable as written; a copy overlaps only from pinned memory.")
    share = facts.number("transfer_share")
    return Ruling(
        points=share >= options["transfer_share"],
        explanation=f"Blocking copies of pinned batches take {figures.share(share)} of each step.",
        evidence=facts.evidence("transfer_share", "transfer_ms", "transfer_non_blocking_share", "gpu_overlap_share"),
        experiments=facts.alone(non_blocking=True),
        settled_by="a run with non_blocking=True",
        bound=at_most(share),
        ceiling=ceilings.unblocked_copies(facts),
        ceiling_shows=ceilings.keeps_up(facts),
        remedy={"non_blocking": True},
    )
