"""PD132 shm_too_small."""

from __future__ import annotations

from pindiag import figures
from pindiag.rules.inputs import Facts
from pindiag.rules.pd125_worker_crash import MORE_SHM, shm_was_full
from pindiag.rules.rule import Options, Statement, require, rule

NAMES = ("loader_queue_bytes", "shm_free_bytes", "shm_bytes", "shm_used_at_failure_bytes", "batch_bytes")


@rule(
    "PD132",
    "shm_too_small",
    title="The batches that wait for training do not fit into /dev/shm",
    limit="Shared memory",
    options={"shm_share": 0.8, "full_share": 1.0},
    of_fact=True,
)
def shm_too_small(facts: Facts, options: Options) -> Statement:
    """Workers may have more batches in flight than /dev/shm has room for; one that finds it full is killed.

    What it means:
        Workers hand batches over in shared memory, which on Linux is a file system of its own. A container has 64 MB
        of it unless told otherwise. Nothing fails while the training process takes batches fast enough; when the queue
        fills up, a worker dies of a bus error.

    How it is decided:
        By its fact: workers × prefetch_factor × the bytes of a batch, against what was free in /dev/shm when the run
        began. Confirmed from `shm_share` of it (0.8: the batch in use and other programs need room too); `high` from
        `full_share` (1: the queue cannot fill up at all), or where a worker died of it; `medium` below. It claims no
        gain.

    Example:
        before: `docker run image`, which gives /dev/shm 64 MB, with 8 workers, prefetch_factor 2 and batches of 38 MB.
        after: `docker run --shm-size=1g image`: the 16 batches in flight take 608 MB.

    Fix:
        `docker run --shm-size=1g` or `--ipc=host`; fewer workers; a smaller prefetch_factor.

    When to ignore:
        When training takes batches faster than workers make them, always.

    References:
        pytorch/pytorch#5040, pytorch/pytorch#16979.
    """
    died = _died(facts, options)
    free, queue = facts.number("shm_free_bytes"), facts.get("loader_queue_bytes")
    require(queue is not None or died, "The script as written has no workers whose batches are known.")
    share = (queue or 0.0) / max(free, 1.0)
    room = f"/dev/shm had {figures.byte_size(free)} free"
    said = "" if queue is None else f"Up to {figures.byte_size(queue)} of batches wait in the queue, and {room}."
    if not died and share < options["shm_share"]:
        return Statement(status="ruled_out", explanation=said, evidence=facts.evidence(*NAMES))
    return Statement(
        status="confirmed",
        severity="high" if died or share >= options["full_share"] else "medium",
        explanation=f"{said} {'A worker died when it was full.' if died else ''}".strip(),
        evidence=facts.evidence(*NAMES),
        remedy_summary=MORE_SHM,
    )


def _died(facts: Facts, options: Options) -> bool:
    """Whether the script as written failed for it."""
    if facts.inputs.target.status != "failed":
        return False
    if facts.text("target_failure") == "shm_full":
        return True
    return facts.text("worker_death") == "SIGBUS" and shm_was_full(facts, options["shm_share"])
