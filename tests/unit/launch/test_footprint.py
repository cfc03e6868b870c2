from __future__ import annotations

import msgspec
import pytest

from pindiag.launch.footprint import met
from pindiag.launch.reckon import Killed, Met
from pindiag.model import (
    AnyRecord,
    BlockOrder,
    BlocksOrdered,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    MemoryRead,
    NextBlocks,
    Treatment,
)

from .records import configuration, found

MB = 1_000_000
CUT = "/dev/shm is full (it holds 64 MB): RuntimeError: x (under nw8-pin0)"


def order(block: int, workers: int | None, kind: str = "configuration") -> BlockOrder:
    """A block under so many workers; None: as the script was written."""
    made = None if workers is None else Treatment(id=f"nw{workers}", kind=kind, configuration=configuration(workers))
    return BlockOrder(block=block, round=1, trial="" if made is None else made.id, treatment=made)


def run(*orders: BlockOrder) -> list[AnyRecord]:
    """A launch that was started with the first block and told the others."""
    first, *told = orders
    began = LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=[first])
    next_blocks = BlocksOrdered(launch=1, t_ns=2, next=NextBlocks(blocks=told))
    return [LaunchBegan(launch=1, t_ns=0, pid=9, order=began), found(2), next_blocks]


def read(block: int, main: float | None, workers: float = 0, shm: float | None = 0) -> MemoryRead:
    """Proportional set sizes in MB; the workers' shared memory is part of theirs."""
    whole = None if main is None else int((main + workers) * MB)
    shm_bytes = None if shm is None else int(shm * MB)
    return MemoryRead(
        launch=1,
        t_ns=3,
        block=block,
        trial="",
        pss_bytes=whole,
        worker_pss_bytes=int(workers * MB),
        shm_bytes=shm_bytes,
    )


def test_nothing_is_known_before_the_first_block() -> None:
    assert met([]) == met(run(order(1, None))) == Met(killed=[])


def test_a_tree_grows_by_what_each_worker_has_for_itself() -> None:
    """300 MB alone; with four workers 100 MB of it are in each of theirs, and 50 MB are each one's own."""
    records = [*run(order(1, 0), order(2, 4)), read(1, 300), read(2, 60, 440, shm=0)]
    assert met(records).worker_bytes == 50 * MB


def test_batches_in_shared_memory_are_no_workers_own() -> None:
    records = [*run(order(1, 0), order(2, 4)), read(1, 300), read(2, 60, 440, shm=180)]
    assert met(records).worker_bytes == 5 * MB


def test_what_was_read_while_a_block_settled_is_left_out() -> None:
    """Workers of the block before may be there still, and those of this one have copied nothing yet."""
    early = msgspec.structs.replace(read(1, 400), phase="settling")
    records = [*run(order(1, 0), order(2, 4)), early, read(1, 300), read(2, 60, 440, shm=0)]
    assert met(records).worker_bytes == met([one for one in records if one is not early]).worker_bytes == 50 * MB


def test_the_dearest_configuration_counts() -> None:
    records = [*run(order(1, 0), order(2, 4), order(3, 8)), read(1, 300), read(2, 100, 240), read(3, 100, 360)]
    assert met(records).worker_bytes == 20 * MB


def test_a_tree_that_shrank_gives_nothing() -> None:
    assert met([*run(order(1, 0), order(2, 4)), read(1, 300), read(2, 100, 100)]).worker_bytes == 0


@pytest.mark.parametrize(("main", "workers", "own"), [(100, 1000, 400), (100, 150, 0)])
def test_without_a_block_without_workers_it_is_what_cannot_be_shared(main: float, workers: float, own: int) -> None:
    assert met([*run(order(1, None)), read(1, main, workers)]).worker_bytes == own * MB


def test_blocks_without_a_reading_or_a_loader_that_runs_are_left_out() -> None:
    orders = run(order(1, 0), order(2, 4), order(3, 4, kind="ablation"))
    records = [*orders, read(1, 300), read(2, None), read(3, 100, 900), read(9, 100, 900)]
    assert met(records).worker_bytes == 0


@pytest.mark.parametrize(
    ("reason", "killed"),
    [
        ("out of memory: a worker was killed; the kernel said so (under nw8-pin0)", [False]),
        (CUT, [True]),
        ("out of memory: " + CUT, [True]),
        ("ValueError: bad (under nw8-pin0)", []),
        (None, []),
    ],
)
def test_configurations_that_ended_for_want_of_memory(reason: str | None, killed: list[bool]) -> None:
    ended = LaunchEnded(
        launch=1, t_ns=9, status="failed", exit="x", returncode=1, seconds=1, reason=reason, under=configuration(8)
    )
    assert met([ended]).killed == [Killed(configuration=configuration(8), shm=shm) for shm in killed]


def test_an_ablation_that_ended_so_tells_nothing_of_configurations() -> None:
    reason = "out of memory: a worker was killed"
    ended = LaunchEnded(launch=1, t_ns=9, status="failed", exit="x", returncode=1, seconds=1, reason=reason)
    assert met([ended]).killed == []
