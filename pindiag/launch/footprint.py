"""What the blocks of a run showed of its memory, from its records alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pindiag.launch.ending import for_memory, for_shm
from pindiag.launch.reckon import Killed, Met
from pindiag.model import AnyRecord, BlockOrder, BlocksOrdered, LaunchBegan, LaunchEnded, LoaderChosen, MemoryRead


class _Seen(NamedTuple):
    """Proportional set sizes at the end of a block, shared memory apart."""

    workers: int
    whole_bytes: int
    """Of the tree. What processes share counts once in it, so it grows by what each worker has for itself."""
    of_workers_bytes: int


def met(records: Sequence[AnyRecord]) -> Met:
    """What the records of a run show."""
    ended = (record for record in records if isinstance(record, LaunchEnded))
    return Met(
        worker_bytes=_worker_bytes(_seen(records)),
        killed=[
            Killed(configuration=record.under, shm=for_shm(record.reason))
            for record in ended
            if record.under is not None and for_memory(record.reason)
        ],
    )


def _worker_bytes(seen: Sequence[_Seen]) -> int:
    """What a worker holds for itself: the copies that it made of a dataset's pages by touching them, and its batches.

    Between blocks with and without workers the tree grew by it. Where there are none without, as much of a worker's
    size as cannot be its share of what it has in common with the main process.
    """
    alone = max((one.whole_bytes for one in seen if not one.workers), default=None)
    some = [one for one in seen if one.workers]
    if alone is not None:
        return max((max(one.whole_bytes - alone, 0) // one.workers for one in some), default=0)
    return max((max(one.of_workers_bytes // one.workers - _main(one), 0) for one in some), default=0)


def _main(one: _Seen) -> int:
    return one.whole_bytes - one.of_workers_bytes


def _seen(records: Sequence[AnyRecord]) -> list[_Seen]:
    workers = _workers(records)
    seen = []
    for read in records:
        if not isinstance(read, MemoryRead) or read.phase != "counted":
            continue
        if read.pss_bytes is None or read.worker_pss_bytes is None:
            continue
        count = workers.get((read.launch, read.block))
        if count is not None:
            shm = read.shm_bytes or 0
            seen.append(_Seen(count, read.pss_bytes - shm, max(read.worker_pss_bytes - (shm if count else 0), 0)))
    return seen


def _workers(records: Sequence[AnyRecord]) -> dict[tuple[int, int], int]:
    """Workers of each block that ran a configuration, by launch and block."""
    found = next((record.configuration for record in records if isinstance(record, LoaderChosen)), None)
    workers: dict[tuple[int, int], int] = {}
    for record in records:
        for order in _orders(record):
            treatment = order.treatment or (record.order.treatment if isinstance(record, LaunchBegan) else None)
            if treatment is None and found is not None:
                workers[record.launch, order.block] = found.num_workers
            elif treatment is not None and treatment.kind == "configuration":
                workers[record.launch, order.block] = treatment.configuration.num_workers
    return workers


def _orders(record: AnyRecord) -> Sequence[BlockOrder]:
    if isinstance(record, LaunchBegan):
        return record.order.blocks
    return record.next.blocks if isinstance(record, BlocksOrdered) else ()
