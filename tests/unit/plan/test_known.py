"""When a live launch is believed to tell nothing: two in a row without a block that counts, and nobody to blame."""

import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import Block, LaunchBegan, LaunchEnded, LaunchOrder
from pindiag.plan.known import Known
from pindiag.plan.treatments import treatment

OWN = loader(num_workers=4)
ONE, TWO = treatment(OWN, {"num_workers": 1}), treatment(OWN, {"num_workers": 2})
CRASH, NO_MEMORY = "exit status 1", "killed: out of memory"


@pytest.fixture(scope="module")
def first():
    """The first launch, which ran the script as written, and its one block."""
    pipeline = Pipeline(compute_s=0.006, accelerator=None)
    records = Simulation(sweep_spec(), OWN, pipeline, Noise(block=0.002), seed=3).run().records
    return records[: 1 + next(at for at, record in enumerate(records) if isinstance(record, Block))]


@pytest.fixture
def known(first):
    """The state of a run whose first launch went well, by what later live launches ended with."""

    def play(*launches):
        """Each: what it began with, how it ended and why, and whether it gave a block before."""
        block = first[-1]
        at_ns = block.t_ns
        records = [*first, ended(1, at_ns, "ok", None)]
        for number, (made, status, reason, measured) in enumerate(launches, start=2):
            at_ns += 10_000_000_000
            order = Known(sweep_spec(), Journal(records)).block(number, made.id)
            told = LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=[order], planned=[ONE, TWO])
            records.append(LaunchBegan(launch=number, t_ns=at_ns, pid=4000 + number, order=told))
            if measured:
                changes = {"launch": number, "t_ns": at_ns + 2, "block": order.block, "trial": made.id}
                records.append(Block(**{name: getattr(block, name) for name in block.__struct_fields__} | changes))
            records.append(ended(number, at_ns + 1_000_000_000, status, reason))
        return Known(sweep_spec(), Journal(records))

    return play


def ended(launch, t_ns, status, reason):
    return LaunchEnded(launch=launch, t_ns=t_ns, status=status, exit="", returncode=1, seconds=1.0, reason=reason)


def test_two_in_a_row_that_failed_under_different_treatments_tell_that_live_launches_do_not_work(known):
    assert known((ONE, "failed", CRASH, False), (TWO, "failed", CRASH, False)).everything_fresh


def test_two_in_a_row_that_ended_well_but_measured_nothing_do_too(known):
    assert known((ONE, "ok", None, False), (TWO, "ok", None, False)).everything_fresh


@pytest.mark.parametrize(
    "launches",
    [
        pytest.param([(ONE, "failed", CRASH, False)], id="only one"),
        pytest.param(
            [(ONE, "failed", CRASH, False), (TWO, "ok", None, True), (ONE, "failed", CRASH, False)],
            id="one that measured lies between",
        ),
        pytest.param([(ONE, "failed", CRASH, False), (ONE, "failed", CRASH, False)], id="one treatment fails twice"),
        pytest.param(
            [(ONE, "failed", NO_MEMORY, False), (TWO, "failed", CRASH, False)], id="one was killed for memory"
        ),
        pytest.param([(ONE, "interrupted", None, False), (TWO, "interrupted", None, False)], id="cut with their run"),
    ],
)
def test_live_launches_are_believed_while_another_reason_may_be(known, launches):
    found = known(*launches)
    assert not found.everything_fresh
    assert found.searches
