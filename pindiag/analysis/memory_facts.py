"""How the memory of workers grows while they serve, and what of their dataset is made of Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Literal

from pindiag.analysis.evidence import NO_LOADER, RunEvidence, TrialEvidence
from pindiag.analysis.fact import fact
from pindiag.model import Block, Fact, HandlesOpen, LoaderChosen, MemoryRead

Phase = Literal["settling", "counted"]

NOT_LOOKED_FOR = "recorded before it was looked for"
NOT_READ = "the workers' memory was not read at both ends of a block"


def of_dataset(run: RunEvidence) -> Iterator[Fact]:
    """Facts of the whole run: what workers share until they read it, and where batches are put together."""
    seen = _seen(run)
    held = None if seen is None else seen.objects
    most = max(held, key=lambda each: each.items) if held else None
    source = "the dataset" if most is None else f"{most.place}, a {most.kind} of {most.of}"
    reason = NO_LOADER if run.found is None else NOT_LOOKED_FOR
    yield fact("dataset_objects", None if held is None else sum(each.items for each in held), "objects", source, reason)
    place = None if seen is None else seen.collate_place
    reason = reason if held is None else "it is not the script's own"
    yield fact("collate_place", place, None, "the loader's collate_fn", reason)


def _seen(run: RunEvidence) -> HandlesOpen | None:
    """Of the training loader, in the first launch that tells."""
    for launch in run.journal.launches:
        chosen = launch.first(LoaderChosen)
        for seen in launch.all(HandlesOpen):
            if chosen is not None and seen.loader == chosen.loader:
                return seen
    return None


def of_growth(trial: TrialEvidence) -> Fact:
    """By how much the memory of all workers together grew with each batch, batches in shared memory left out.

    The median over blocks, from the begin of settling to the end of the block. A page that two processes share counts
    half in either of them, so one that a worker copies to itself counts where it was not.
    """
    read = {(each.launch, each.block, each.phase): each for launch in trial.launches for each in launch.all(MemoryRead)}
    grown = [
        bytes_
        for block in trial.blocks
        if (bytes_ := _grown(block, read.get(_at(block, "settling")), read.get(_at(block, "counted")))) is not None
    ]
    value = median(grown) if grown and trial.without_workers is None else None
    source = f"memory of workers at both ends of {trial.source}"
    reason = trial.without_workers or NOT_READ
    return fact("worker_growth_bytes_per_batch", value, "B", source, reason, trial=trial.id)


def _at(block: Block, phase: Phase) -> tuple[int, int, Phase]:
    return block.launch, block.block, phase


def _grown(block: Block, first: MemoryRead | None, last: MemoryRead | None) -> float | None:
    before, after = _own_bytes(first), _own_bytes(last)
    batches = block.settle_steps + block.steps
    return (after - before) / batches if before is not None and after is not None and batches else None


def _own_bytes(read: MemoryRead | None) -> int | None:
    """Without shared memory, which holds the batches; None where no worker was there yet."""
    if read is None or not read.worker_pss_bytes or read.shm_bytes is None:
        return None
    return read.worker_pss_bytes - read.shm_bytes
