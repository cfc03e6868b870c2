"""Workers that take long to start: blocks are longer for it, and the budget holds all the same."""

import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import LoaderIterated
from pindiag.plan.budget import Budget
from pindiag.plan.known import BLOCK_S, Known
from pindiag.plan.schedule import next_order
from pindiag.plan.start_up import LONGEST_S, lengthened, start_up_s

CPU = Pipeline(fetch_s=0.06, compute_s=0.006, accelerator=None)


class Starting(Simulation):
    """Workers take their time before a block's first batch; those of the first block before the launch's first step."""

    workers_s = 0.0

    def _first_step(self, made):
        super()._first_step(made)
        if made.configuration.num_workers and len(self.blocks) == 1:
            self._born(made)

    def _swap(self, made):
        if made.configuration.num_workers and self.blocks:
            self._pass(self.workers_s)
            self._born(made)
        super()._swap(made)

    def _born(self, made):
        self._write(
            LoaderIterated(
                **self._at(),
                loader=1,
                iterator=len(self.records),
                configuration=made.configuration,
                startup_ms=1e3 * self.workers_s,
                first_batch_ms=1e3 * self.workers_s,
                start_method="spawn",
                worker_pids=[],
                trial=made.id,
            )
        )


def simulate(workers_s, **asked):
    run = Starting(sweep_spec(**asked), loader(), CPU, Noise(block=0.01), seed=1)
    run.workers_s = workers_s
    return run.run()


def orders(run):
    return [order for order, _, launch in run.blocks if launch == 1 and order.round > 0]


@pytest.mark.parametrize("workers_s", [0.0, 0.3, 1.2])
def test_blocks_keep_their_length_where_starting_is_cheap_beside_them(workers_s):
    found = orders(simulate(workers_s))
    assert {order.seconds for order in found} == {BLOCK_S}
    assert {order.why_seconds for order in found} == {None}


@pytest.mark.parametrize(("workers_s", "seconds"), [(3.1, 2.2), (6.0, 3.0), (24.0, 6.0), (100.0, LONGEST_S)])
def test_blocks_are_longer_where_starting_is_dear(workers_s, seconds):
    run = simulate(workers_s)
    found = orders(run)
    assert {order.seconds for order in found} == {seconds}
    assert found[0].why_seconds == (
        f"starting workers took {workers_s:.1f} s a block, so blocks last {seconds:g} s instead of 1.5 s, and fewer of "
        "them fit into the budget"
    )
    assert run.spent_s <= run.spec.budget_s + run.dearest_s


def test_a_large_budget_pays_for_starting():
    assert {order.seconds for order in orders(simulate(3.1, budget_s=3600.0))} == {BLOCK_S}


def test_the_first_block_costs_what_starting_its_workers_again_will():
    run = simulate(10.0)
    cut = next(place for place, record in enumerate(run.records) if getattr(record, "block", None) == 1)
    known = Known(run.spec, Journal(run.records[: cut + 1]))
    assert Budget(known).any_block_s > 10.0


def test_nothing_is_known_without_workers():
    run = simulate(0.0)
    records = [record for record in run.records if not isinstance(record, LoaderIterated)]
    known = Known(run.spec, Journal(records))
    order = known.block(1, "nw4-pin0")
    assert start_up_s(known.live_launches) is None
    assert lengthened(order, known) == order


def test_a_run_that_has_not_begun_has_no_start_up():
    order = next_order(sweep_spec(), [])
    assert order.blocks[0].why_seconds is None
