"""Slow steps of fake blocks, times on one clock."""

from types import SimpleNamespace

import pytest

from pindiag.analysis.slow_steps import aligned, period, slow_steps
from pindiag.model import WorkerBatch


def block(number, step_ms, wait_ms, gap_s=0.0):
    times = {"started_ns": 0, "ended_ns": 10**9, "gap_s": gap_s, "step_ms": step_ms, "step_wait_ms": wait_ms}
    return SimpleNamespace(launch=1, block=number, **times)


def batch(started_ms, fetch_ms, worker=0, handed=True):
    started, fetch = round(started_ms * 1e6), round(fetch_ms * 1e6)
    return WorkerBatch(
        launch=1, pid=7 + worker, worker=worker, started_ns=started, fetch_ns=fetch, collate_ns=0, cpu_ns=1, samples=4,
        handed_ns=started + fetch if handed else None,
    )  # fmt: skip


def told(blocks, batches=()):
    return slow_steps(SimpleNamespace(blocks=blocks, run=SimpleNamespace(batches={1: list(batches)})))


def test_the_slowest_of_all_blocks_comes_first_each_against_its_own_median():
    found = told([block(1, [10, 10, 10, 14], [1] * 4), block(2, [1, 1, 1, 3], [0.1] * 4)])
    assert [(slow.block, slow.step, slow.ms, slow.usual_ms) for slow in found.shown] == [(2, 4, 3, 1), (1, 4, 14, 10)]
    assert (found.count, found.of, found.block.block) == (2, 8, 2)


def test_without_a_slow_step_the_first_block_is_shown():
    found = told([block(1, [1, 1.2, 1], [0] * 3), block(2, [2, 2, 2], [0] * 3)])
    assert (found.shown, found.count, found.block.block) == ([], 0, 1)
    assert told([block(1, [], [])]) is None


def test_the_batch_that_ended_the_wait_is_the_one_that_came_in_last():
    batches = [batch(0, 1), batch(0.5, 4.5, worker=1), batch(1, 1, worker=2), batch(6, 1)]
    slow = told([block(1, [1, 1, 1, 4, 1], [0, 0, 0, 3, 0])], batches).shown[0]
    assert (slow.worker, slow.batch_ms, slow.usual_batch_ms, slow.begun_before_ms) == (1, 4.5, 1, 2.5)
    assert slow.handed is True


def test_a_batch_that_was_there_before_is_told_from_one_of_which_nothing_is_known():
    steps = ([1, 1, 1, 4, 1], [0, 0, 0, 3, 0])
    early = [batch(0, 1)]
    assert told([block(1, *steps)], early).shown[0].handed is False
    assert told([block(1, *steps)], [batch(0, 1, handed=False)]).shown[0].handed is None
    assert told([block(1, *steps)]).shown[0].handed is None
    behind_a_gap = told([block(1, *steps, gap_s=1.0)], [batch(3.5, 1)]).shown[0]
    assert (behind_a_gap.handed, behind_a_gap.worker) == (None, None)


def test_a_gap_between_epochs_hides_when_steps_began():
    assert aligned(block(1, [10, 10], [0, 0], gap_s=0.0005))
    assert not aligned(block(1, [10, 10], [0, 0], gap_s=0.1))


@pytest.mark.parametrize(
    ("lengths", "every"),
    [
        ([9, 1] * 6, 2),
        ([1, 1, 1, 9] * 6, 4),
        ([1, 1, 9, 1] * 5 + [1, 1, 1, 1], 4),
        ([1] * 24, None),
        ([1] * 20 + [9] * 4, None),
        ([1, 9, 1, 1, 1, 1, 9, 1, 9, 1, 1, 1, 1, 1, 1, 1, 9, 1, 1, 9], None),
        ([9, 1] * 2, None),
    ],
)
def test_a_regular_distance_of_slow_steps(lengths, every):
    assert period(lengths) == every
