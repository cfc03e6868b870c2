"""Facts of steps that are slow at one distance, of blocks that are spelled out."""

from types import SimpleNamespace

import pytest

from pindiag.analysis.stall_facts import NO_PERIOD, NO_SITE, of_stalls


def block(number, step_ms, wait_ms, syncs=()):
    sites = [SimpleNamespace(location=place, calls=calls) for place, calls in syncs]
    return SimpleNamespace(block=number, step_ms=step_ms, step_wait_ms=wait_ms, steps=len(step_ms), syncs=sites)


def told(*blocks):
    return {found.name: found for found in of_stalls(SimpleNamespace(id="nw0-pin0", blocks=blocks, source="blocks"))}


def values(*blocks):
    return {name: found.value for name, found in told(*blocks).items()}


def test_a_shard_every_ten_batches_is_waited_for():
    found = values(block(1, ([10.0] * 9 + [60.0]) * 5, ([1.0] * 9 + [51.0]) * 5))
    assert (found["stall_period_steps"], found["stall_ms"]) == (10, 50)
    assert found["stall_share"] == pytest.approx(50 / 150)
    assert (found["stall_wait_share"], found["stall_site"]) == (1, None)


def test_a_log_every_five_steps_has_its_place():
    calls = [("train.py:20", 40), ("train.py:31", 9)]
    found = told(block(1, ([10.0] * 4 + [30.0]) * 8, [1.0] * 40, calls))
    assert found["stall_site"].value == "train.py:31"
    assert found["stall_wait_share"].value == 0
    without = told(block(1, ([10.0] * 4 + [30.0]) * 8, [1.0] * 40, calls[:1]))
    assert (without["stall_site"].value, without["stall_site"].reason) == (None, NO_SITE)


def test_most_blocks_must_agree():
    even, regular = block(1, [10.0] * 40, [1.0] * 40), ([10.0] * 4 + [30.0]) * 8
    assert values(even, block(2, regular, [1.0] * 40))["stall_period_steps"] == 5
    assert values(even, block(2, [10.0] * 40, [1.0] * 40), block(3, regular, [1.0] * 40))["stall_period_steps"] is None
    assert told(even, block(2, regular, [1.0] * 40))["stall_ms"].source == "steps of blocks 2"


def test_nothing_that_recurs_is_null_with_its_reason():
    assert {found.reason for found in told(block(1, [10.0] * 40, [1.0] * 40)).values()} == {NO_PERIOD}
    assert {found.value for found in told(block(1, [], [])).values()} == {None}
