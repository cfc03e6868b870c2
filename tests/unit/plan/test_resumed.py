"""A run that was cut anywhere goes on from its records alone, and ends within its budget."""

import random

import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import Block, LaunchEnded, RunResumed, Window
from pindiag.plan.schedule import next_order


def simulation():
    pipeline = Pipeline(compute_s=0.004, fetch_s=0.02, cpus=8)
    return Simulation(sweep_spec(budget_s=300.0), loader(num_workers=1), pipeline, Noise(block=0.02), seed=3)


@pytest.fixture(scope="module")
def whole():
    return simulation().run().records


def resumed(records):
    """The same run, cut after these records and told to go on."""
    run = simulation()
    run.records = list(records)
    run._launch, run._now_ns = (max(getattr(record, name) for record in records) for name in ("launch", "t_ns"))
    last = Journal(records).launches[-1]
    if last.ended is None:
        at = run._at()
        ended = LaunchEnded(**at, status="interrupted", exit="killed", returncode=None, seconds=1.0)
        run._write(ended)
    run._write(RunResumed(launch=0, t_ns=run._now_ns, launches=run._launch))
    return run


def places(records):
    """Where to cut: the first records, windows, and others by chance."""
    windows = [index for index, record in enumerate(records) if isinstance(record, Window)]
    return [1, 2, 3, *windows[:2], *random.Random(0).sample(range(4, len(records) - 1), 12)]


def test_wherever_it_was_cut_it_goes_on_to_its_end(whole):
    expected = Journal(whole).rates("verify")
    assert expected
    for place in places(whole):
        run = resumed(whole[:place])
        run.run()
        blocks = [record.block for record in run.records if isinstance(record, Block)]
        assert len(blocks) == len(set(blocks)), place
        assert Journal(run.records).rates("verify"), place
        assert run.spent_s <= 1.2 * run.spec.budget_s, place
        assert run.records[:place] == whole[:place]


def test_a_window_that_was_cut_is_taken_again(whole):
    first = next(index for index, record in enumerate(whole) if isinstance(record, Window))
    taken = {record.trial for record in whole if isinstance(record, Window)}
    assert len(taken) > 1
    run = resumed(whole[: first + 1]).run()
    trials = [record.trial for record in run.records if isinstance(record, Window)]
    assert len(trials) == len(set(trials))
    assert len(trials) > 1


def test_what_was_interrupted_and_not_resumed_does_not_go_on(whole):
    run = resumed(whole[:12])
    assert next_order(run.spec, run.records[:-1]) is None
    assert next_order(run.spec, run.records) is not None
