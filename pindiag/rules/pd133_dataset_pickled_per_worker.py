"""PD133 dataset_pickled_per_worker."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.pd115_worker_startup import over_whole_epochs
from pindiag.rules.rule import Options, Ruling, at_most, require, rule


@rule(
    "PD133",
    "dataset_pickled_per_worker",
    title="The dataset is pickled for each worker, one after another, before an epoch begins",
    limit="Pickling the dataset for the workers",
    options={"epoch_share": 0.05, "worker_mb": 1},
)
def dataset_pickled_per_worker(facts: Facts, options: Options) -> Ruling:
    """Each spawned worker gets a pickled copy of the dataset, and the next one is not started before it has it.

    What it means:
        A worker that is forked shares the dataset's memory. One that is spawned, or comes from a fork server, gets it
        through a pipe: it is pickled once for each worker, and the training process writes until the worker has
        imported everything and read it all. So workers start one after another, in each epoch anew.

    How it is decided:
        Starting the workers, which is the time inside `iter(loader)`, takes at least `epoch_share` of an epoch (0.05:
        below, nothing that is done about it could bring 1.05 ×), and what is pickled for each of them is at least
        `worker_mb` (1: less fits into the pipe, or nearly, so that workers start side by side). Blocks of steps leave
        starts out, so it is confirmed only where fresh launches over whole epochs were faster with
        `persistent_workers=True` alone, and suspected at most otherwise.

    Example:
        before: a dictionary of 48 MB in the dataset, two workers that are spawned for each epoch: 2.5 of its 4 s.
        after: `persistent_workers=True`: once; or the texts as one tensor of bytes with offsets, which is shared, not
        pickled.

    Fix:
        Open or load in the worker what is large (lazily in `__getitem__`, or in `worker_init_fn`), map it from a file,
        or hold it in tensors, which are shared; `persistent_workers=True`; `multiprocessing_context='fork'` where no
        library forbids it.

    When to ignore:
        When epochs will be much longer than in this trial.

    References:
        pytorch/pytorch#139792, pytorch/pytorch#87802, pytorch/pytorch#153594.
    """
    own = facts.configuration
    require(own.num_workers > 0, "The script as written has no workers.")
    require(not own.persistent_workers, "Workers are started once: `persistent_workers=True`.")
    pickled, start_ms = facts.number("worker_pickle_bytes"), facts.number("worker_start_ms")
    epoch_s = facts.baseline.epoch_s
    if not epoch_s:
        raise Missing("How long an epoch takes is not known.")
    each, share = pickled / own.num_workers, min(start_ms / 1e3 / epoch_s, 1.0)
    return Ruling(
        points=share >= options["epoch_share"] and each >= options["worker_mb"] * 1e6,
        explanation=(
            f"{figures.byte_size(each)} are pickled for each worker, and starting "
            f"{own.num_workers} of them takes {figures.duration(start_ms / 1e3)} of an epoch of "
            f"{figures.duration(epoch_s)} ({figures.share(share)})."
        ),
        evidence=facts.evidence("worker_pickle_bytes", "worker_pickle_ms", "worker_start_ms", "startup_s"),
        experiments=over_whole_epochs(facts),
        settled_by="fresh launches over whole epochs with `persistent_workers=True`, or with the dataset's data left "
        "out of what is pickled,",
        bound=at_most(max(start_ms / 1e3, facts.get("startup_s") or 0.0) / epoch_s),
        remedy={"persistent_workers": True},
        advice="Load in the worker what is large, map it from a file, or hold it in tensors, which are shared.",
        location=facts.inputs.loader.chosen if facts.inputs.loader else None,
    )
