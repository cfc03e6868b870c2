from __future__ import annotations

import random

import pytest

from pindiag.probe.sampling import Sampling


def looked_at(sampling, steps, most=10**9):
    """Numbers of the steps that are looked at, where at most so many may go by at once."""
    found, step = [], 0
    while step < steps:
        found.append(step)
        passed = min(sampling.left, most)
        sampling.pass_over(passed)
        step += 1 + passed
    return found


@pytest.mark.parametrize(("steps", "period"), [(1, 1), (31, 1), (64, 4), (128, 8), (100_000, 8)])
def test_as_many_as_a_block_needs(steps, period):
    found = looked_at(Sampling(steps, random.Random(0)), 10_000)
    assert 10_000 / len(found) == pytest.approx(period, rel=0.1)


def test_no_period_of_the_loop_is_met_more_often_than_another():
    found = looked_at(Sampling(100_000, random.Random(0)), 100_000)
    for period in (2, 3, 4, 8):
        shares = [sum(step % period == phase for step in found) / len(found) for phase in range(period)]
        assert shares == pytest.approx([1 / period] * period, rel=0.1)


def test_others_who_look_at_a_step_in_between_leave_the_gaps_as_they_are():
    sampling = Sampling(100_000, random.Random(0))
    assert len(looked_at(sampling, 10_000, most=3)) > 10_000 / 4 - 1
    assert sampling.left <= 14


def test_all_from_now_on():
    sampling = Sampling(100_000, random.Random(0))
    sampling.look_at_all()
    assert looked_at(sampling, 50) == list(range(50))
