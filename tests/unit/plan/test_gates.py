"""When batches are compared, and what a comparison that fails does to the race."""

from functools import partial

import msgspec
import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.analysis.recommend import verification
from pindiag.journal import Journal
from pindiag.model import BlocksOrdered, GateBatch, GatePass
from pindiag.plan.budget import Budget
from pindiag.plan.gates import MOST_GATED, leaders_to_gate
from pindiag.plan.known import Known
from pindiag.plan.schedule import next_blocks, next_order
from pindiag.race import chosen, recommended

SPEEDS = {0: 1500.0, 1: 1300.0, 8: 800.0}
"""Samples/s by the number of workers; any other has 1 000."""


def gated(script, spec, spoiled=(), **asked):
    """A run in fresh launches, in which other batches come where there are so many workers; orders and journal."""

    class Gated(script):
        def run(self, order):
            super().run(order)
            for made in order.gates:
                own = "x" if made.configuration.num_workers in spoiled else "a"
                for trial, content, backwards in [
                    ("baseline", "a", False),
                    ("baseline", "a", True),
                    (made.id, own, False),
                ]:
                    batch = GateBatch(batch=0, layout="l", content=content, bytes=8)
                    self.add(GatePass(**self.at(), trial=trial, backwards=backwards, batches=[batch]))

    fake = Gated(rate=lambda made: SPEEDS.get(made.num_workers, 1000.0), noise=0.01)
    orders = fake.play(partial(next_order, spec(grid="num_workers=0,1,8", budget_s=600.0, **asked)))
    return orders, Journal(fake.records)


def test_the_leader_is_compared_once_and_then_verified(script, spec):
    orders, journal = gated(script, spec)
    asked = [(made.id, order.purpose) for order in orders for made in order.gates]
    assert asked == [("nw0-pin0", "round")]
    assert recommended(journal) == "nw0-pin0"


def test_a_leader_that_fails_makes_way_for_the_next_best(script, spec):
    orders, journal = gated(script, spec, spoiled={0})
    assert [made.id for order in orders for made in order.gates] == ["nw0-pin0", "nw1-pin0"]
    verified = {order.treatment.id for order in orders if order.purpose == "verify"}
    assert verified == {"nw4-pin0", "nw1-pin0"}
    assert recommended(journal) == "nw1-pin0"
    assert verification(journal).pairs >= 4


def test_where_all_fail_the_script_stays_as_it_is(script, spec):
    orders, journal = gated(script, spec, spoiled={0, 1})
    assert chosen(journal) == recommended(journal) == journal.baseline_id
    verified = [order.treatment.id for order in orders if order.purpose == "verify"]
    assert sorted(verified) == ["nw1-pin0", "nw4-pin0"], "it had left the race, and failed in its first launch"
    assert verification(journal) is None


def test_without_verification_the_race_compares(script, spec):
    orders, _ = gated(script, spec, verify=False)
    assert [made.id for order in orders for made in order.gates] == ["nw0-pin0"]


@pytest.fixture(scope="module")
def live():
    pipeline = Pipeline(fetch_s=0.01, compute_s=0.001, accelerator=None)
    made = loader(num_workers=0, prefetch_factor=None)
    return Simulation(sweep_spec(verify=False), made, pipeline, Noise(block=0.002), None, seed=3).run()


def test_a_live_launch_compares_the_leader_and_its_substitute_at_its_end(live):
    journal = Journal(live.records)
    [told] = [order for launch in journal.launches for order in launch.orders if order.gates]
    leader, substitute = told.gates
    assert leader.id == chosen(journal)
    assert substitute.configuration.num_workers != leader.configuration.num_workers
    assert told.blocks == []
    assert leaders_to_gate(journal) == [leader, substitute], "the simulated launch recorded no comparison"


@pytest.mark.parametrize("windows", [0, 1, 2])
def test_comparisons_have_their_time_before_the_last_windows(live, windows):
    """Where time is left for the comparisons and so many windows, there are these."""
    place = next(
        at for at, record in enumerate(live.records) if isinstance(record, BlocksOrdered) and record.next.gates
    )
    before = live.records[:place]
    budget = Budget(Known(live.spec, Journal(before)))
    left_s = (MOST_GATED + windows + 0.5) * budget.window_s
    told = next_blocks(msgspec.structs.replace(live.spec, budget_s=budget.spent_s + left_s), before)
    assert [len(told.gates), len(told.windows)] == [MOST_GATED, windows]
    assert told.blocks == []


def test_nothing_is_compared_where_nothing_leads():
    made = loader(num_workers=4)
    run = Simulation(
        sweep_spec(), made, Pipeline(compute_s=0.006, accelerator=None), Noise(block=0.002), None, seed=3
    ).run()
    assert leaders_to_gate(Journal(run.records)) == []
    assert not any(order.gates for launch in Journal(run.records).launches for order in launch.orders)
