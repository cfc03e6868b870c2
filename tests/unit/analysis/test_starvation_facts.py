"""Facts of the GPU's own clock, over blocks that say what they sampled."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pindiag.analysis.evidence import REPLAYED
from pindiag.analysis.stages import Totals
from pindiag.analysis.starvation_facts import NOT_RECORDED, of_starvation
from pindiag.model import Starvation


def block(steps=100, wait_ms=600.0, sampled=None, missing=None):
    """100 steps of 10 ms; `sampled` is steps, starved and waited milliseconds."""
    told = None
    if sampled is not None:
        count, starved, waited = sampled
        told = Starvation(device="cuda:0", sampled_steps=count, starved_ms=starved, wait_ms=waited, cost_us=25.0)
    return SimpleNamespace(
        steps=steps, seconds=steps / 100, wait_ms=wait_ms, starvation=told, missing={"starvation": missing}
    )


def facts(*blocks, accelerator=True, replayed=False):
    trial = SimpleNamespace(
        id="t",
        run=SimpleNamespace(has_accelerator=accelerator),
        blocks=blocks,
        totals=Totals(blocks),
        source="blocks 3, 17",
        replayed=replayed,
    )
    return {fact.name: fact for fact in of_starvation(trial)}


def test_the_sampled_part_of_the_wait_stands_for_all_of_it():
    # the sample met few of the long waits: 2 ms of 4 ms in the mean, where all steps waited 6 ms
    found = facts(block(sampled=(10, 25.0, 40.0)), block(sampled=(10, 15.0, 40.0)), block())
    assert found["gpu_starved_ms"].value == pytest.approx(3.0)
    assert found["gpu_starved_share"].value == pytest.approx(0.3)
    assert (found["gpu_starved_ms"].unit, found["gpu_starved_share"].unit) == ("ms", "1")
    source = "events around the wait in 20 of 300 steps; blocks 3, 17"
    assert {fact.source for fact in found.values()} == {source}


def test_who_never_waits_is_never_starved():
    assert facts(block(wait_ms=0.0, sampled=(10, 0.0, 0.0)))["gpu_starved_ms"].value == 0.0


@pytest.mark.parametrize(
    ("blocks", "known", "reason"),
    [
        ([block()], {}, NOT_RECORDED),
        ([block()], {"replayed": True}, REPLAYED),
        ([block(missing="two events cost 800 µs")], {}, "two events cost 800 µs"),
        ([block()], {"accelerator": False}, "no accelerator"),
    ],
)
def test_where_it_is_not_known_it_says_why(blocks, known, reason):
    for fact in facts(*blocks, **known).values():
        assert (fact.value, fact.reason) == (None, reason)
