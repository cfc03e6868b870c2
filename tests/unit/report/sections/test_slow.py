"""Slow steps as the page words them."""

import msgspec
import pytest

from pindiag.model import SlowStep, Span
from pindiag.report.sections import slow

from .. import example

WAITED = SlowStep(
    block=3, step=5, ms=30.0, wait_ms=21.0, usual_ms=10.0, usual_wait_ms=1.0,
    handed=True, worker=1, batch_ms=40.0, usual_batch_ms=20.0, begun_before_ms=15.0,
)  # fmt: skip


def drawn(**fields):
    given = {"slow_steps": [WAITED], "slow_count": 8, "step_count": 80, "strip_block": 3}
    given |= {"strip_ms": [10.0] * 400, "strip_wait_ms": [1.0] * 400}
    return msgspec.structs.replace(example.NO_DRAWING, **(given | fields))


def changed(**fields):
    return msgspec.structs.replace(WAITED, **fields)


OWN = changed(wait_ms=1.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "8 of 80 steps took more than 1.25 × the median: the slowest waited for their batches"),
        ({"slow_every": 2}, "Every second step is slow: the slowest waited for their batches"),
        ({"slow_every": 8, "slow_steps": [WAITED, OWN]}, "Every 8th step is slow"),
        ({"slow_count": 1, "slow_steps": [OWN]},
         "Only 1 of 80 steps took more than 1.25 × the median: the slowest waited no longer than usual, their own part "
         "took longer"),
        ({"slow_count": 0, "slow_steps": []}, "No step is slow: none of 80 took 1.25 × the median of its block"),
    ],
)  # fmt: skip
def test_the_heading_says_how_many_and_how_regularly(fields, said):
    assert slow.heading(drawn(**fields)) == said


@pytest.mark.parametrize(
    ("step", "workers", "said"),
    [
        (OWN, 2, "It waited no longer than usual"),
        (WAITED, 0, "load the batch itself"),
        (WAITED, 2, "Worker 1 took longer to make the batch that it waited for (40.0 ms, usually 20.0 ms)"),
        (changed(batch_ms=20.0), 2, "as fast as usual (20.0 ms, usually 20.0 ms) and had begun it only 15.0 ms before"),
        (changed(batch_ms=20.0, begun_before_ms=-2.0), 2, "only 2.0 ms after the start of the step"),
        (changed(handed=False, worker=None), 2, "on its way from worker to main thread"),
        (changed(handed=None, worker=None), 2, "no record says"),
    ],
)
def test_why_a_step_was_slow(step, workers, said):
    assert said in slow.why(step, workers)


def test_the_strip_shows_the_steps_around_the_slowest_and_names_their_block():
    chart = slow.strip_chart(drawn(slow_steps=[changed(step=390)]))
    assert chart.caption.startswith("Block 3, 240 of its 400 steps.")
    assert "Milliseconds of steps 161 to 400" in chart.svg
    assert slow.strip_chart(drawn(strip_ms=[], strip_wait_ms=[])) is None


def test_lanes_in_numbers_add_up_workers_first():
    spans = [
        Span(lane="main", name="wait", start_ms=0, end_ms=1),
        Span(lane="main", name="wait", start_ms=3, end_ms=5),
        Span(lane="main", name="step", start_ms=1, end_ms=3),
        Span(lane="worker 0", name="fetch", start_ms=0, end_ms=4),
    ]
    assert slow.lanes(spans) == [("worker 0", "fetch", 4), ("main", "wait", 3), ("main", "step", 2)]


def test_the_parts_of_script_leave_out_what_was_not_measured():
    facts = {"script_python_ms": 1.0, "script_launch_ms": None, "script_backward_ms": 2.0}
    assert slow.script(facts) == [("backward", 2.0), ("Python and all else", 1.0)]
