"""What a worker's ring holds, read by the store."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pindiag import store
from pindiag.model import WorkerBatch
from pindiag.probe import rings

FETCHED = (1_000, 90, 300, 7, 30, 4, 500, 12, 0, 33)
HAND_OFF = (2_000, 600, 50, 70, 123)


def read(ring: rings.Ring) -> list[WorkerBatch]:
    return store.read_ring(Path(ring.path))


def test_same_layout_as_the_store() -> None:
    assert rings.RING_HEADER.format == store.RING_HEADER.format
    assert rings.RING_ENTRY.format == store.RING_ENTRY.format
    assert rings.RING_MAGIC == store.RING_MAGIC
    assert (*rings.FETCHED_FIELDS, *rings.HAND_OFF_FIELDS) == store.RING_FIELDS


def test_an_open_ring_can_be_read(ring: rings.Ring) -> None:
    assert read(ring) == []
    number = ring.write(*FETCHED)
    made = {**dict(zip(rings.FETCHED_FIELDS, FETCHED)), "launch": 7, "pid": os.getpid(), "worker": 3}
    assert read(ring) == [WorkerBatch(**made)]
    ring.hand_off(number, *HAND_OFF)
    assert read(ring) == [WorkerBatch(**made, **dict(zip(rings.HAND_OFF_FIELDS, HAND_OFF)))]


def test_what_is_not_known_is_none(ring: rings.Ring) -> None:
    ring.write(1_000, 90, 300, 7, 30, 4, 500, -1, -1, -1)
    (batch,) = read(ring)
    assert (batch.process_cpu_ns, batch.minor_faults, batch.run_delay_ns, batch.hand_off_ns) == (500, None, None, None)


def test_a_ring_keeps_the_newest_batches(ring: rings.Ring) -> None:
    for number in range(rings.RING_BATCHES + 10):
        ring.write(number, *FETCHED[1:])
    newest = list(range(10, rings.RING_BATCHES + 10))
    assert [batch.started_ns for batch in read(ring)] == newest
    ring.close()
    assert [batch.started_ns for batch in read(ring)] == newest


def test_a_late_hand_off_does_not_reach_the_batch_that_took_the_place(ring: rings.Ring) -> None:
    for _ in range(rings.RING_BATCHES + 1):
        ring.write(*FETCHED)
    ring.hand_off(0, *HAND_OFF)
    assert all(batch.hand_off_ns is None for batch in read(ring))
    ring.hand_off(1, *HAND_OFF)
    assert read(ring)[0].hand_off_ns == 600


def test_a_closed_ring_takes_no_more_than_it_holds_and_is_told_of_the_last_hand_off(ring: rings.Ring) -> None:
    number = ring.write(*FETCHED)
    ring.close()
    assert os.path.getsize(ring.path) == rings.RING_HEADER.size + rings.RING_ENTRY.size
    ring.hand_off(number, *HAND_OFF)
    assert read(ring)[0].sent_bytes == 123


def test_a_full_disk_leaves_no_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        rings.Ring(str(tmp_path), 1, 0)
    assert not list(tmp_path.iterdir())
