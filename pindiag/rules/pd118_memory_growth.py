"""PD118 memory_growth."""

from __future__ import annotations

from pindiag import figures
from pindiag.model import Severity
from pindiag.rules.inputs import Facts, Missing
from pindiag.rules.rule import Options, Statement, require, rule

OBJECTS, GROWTH = "dataset_objects", "worker_growth_bytes_per_batch"


@rule(
    "PD118",
    "memory_growth",
    title="Each worker comes to have its own copy of the dataset, object by object",
    limit="The memory of workers",
    options={"objects": 100_000, "epoch_mb": 64, "available_share": 0.25},
    of_fact=True,
)
def memory_growth(facts: Facts, options: Options) -> Statement:
    """Workers that only read a list of Python objects copy its memory page by page, until each of them has it all.

    What it means:
        A forked worker shares the dataset's memory with the training process until either of them writes to it. Reading
        a Python object writes, namely its reference count, so its page is copied. Over an epoch of random reads every
        worker comes to have the whole list, and what fitted once has to fit once for each worker.

    How it is decided:
        By two facts. The dataset has containers of at least `objects` Python objects (100 000: a few tens of MB), and
        the memory of the workers, without that in which batches lie, grows from batch to batch so that an epoch of it
        makes at least `epoch_mb` (64: less is what any worker allocates while it warms up), or as much as all workers
        can copy of what the training process holds. It is grave where that is more than is left of the machine's
        memory, of medium weight from `available_share` of it (0.25), and slight below. It claims no gain: nothing
        becomes faster, but a run is not killed in its third epoch. Both readings lie in one block; workers that are new
        in each epoch begin at nothing again, which is why some scripts survive.

    Example:
        before: `self.records = [row for row in csv.DictReader(file)]` with 10 million rows and 8 workers.
        after: `self.table = torch.tensor(rows)`, or a column of a memory-mapped Arrow file: no reference counts to
        write.

    Fix:
        NumPy arrays, tensors, Arrow or pandas columns in place of lists of objects; texts as one array of bytes with
        offsets; or read each sample from a file.

    When to ignore:
        When the machine has room for the dataset once for each worker.

    References:
        pytorch/pytorch#13246, tier4/autoware-ml#78, metatensor/metatrain#1229.
    """
    own = facts.configuration
    require(own.num_workers > 0, "The script as written has no workers.")
    objects, growth = facts.number(OBJECTS), facts.number(GROWTH)
    ahead = _ahead(facts, growth)
    many, grows = objects >= options["objects"], ahead >= options["epoch_mb"] * 1e6
    place = facts.fact(OBJECTS).source
    held = f"The dataset holds {figures.count(objects)} Python objects ({place})" if many else _few(objects)
    explanation = (
        f"{held}; the memory of {own.num_workers} workers grows by {figures.byte_size(max(growth, 0.0))} a batch, "
        f"{figures.byte_size(ahead)} in an epoch."
    )
    return Statement(
        status="confirmed" if many and grows else "ruled_out",
        explanation=explanation,
        evidence=facts.evidence(GROWTH, OBJECTS, "worker_pss_bytes", "memory_available_min_bytes", "start_method"),
        severity=_severity(facts, ahead, options["available_share"]) if many and grows else None,
        remedy_summary=f"Hold {place.partition(',')[0] if many else 'it'} in NumPy arrays or tensors, whose memory "
        "stays shared, or read samples from files.",
    )


def _few(objects: float) -> str:
    return f"The dataset holds {figures.count(objects)} Python objects in large containers"


def _ahead(facts: Facts, growth: float) -> float:
    """Growth in an epoch, as long as there is something left to copy; the worker's whole life where it has no end."""
    batches = facts.get("batches_per_epoch")
    whole, of_workers = facts.get("pss_bytes"), facts.get("worker_pss_bytes")
    room = facts.configuration.num_workers * max(whole - of_workers, 0.0) if whole and of_workers else None
    if batches is None and room is None:
        raise Missing("Neither the length of an epoch nor the memory of the training process is known.")
    grown = growth * batches if batches is not None else room or 0.0
    return max(grown if room is None else min(grown, room), 0.0) if growth > 0 else 0.0


def _severity(facts: Facts, ahead: float, share: float) -> Severity:
    available = facts.get("memory_available_min_bytes")
    if available is None:
        return "low"
    return "high" if ahead > available else "medium" if ahead > share * available else "low"
