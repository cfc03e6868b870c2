from functools import partial

import msgspec
import pytest

from pindiag.journal import Journal
from pindiag.plan.batch_size import batch_sizes
from pindiag.plan.schedule import next_order
from pindiag.race import beside, chosen, race_rates, standings
from pindiag.stats import geometric_mean, paired_ratios


@pytest.fixture
def played(script, spec):
    """A fresh sweep in which larger batches run faster, and nothing else matters."""
    fake = script(rate=lambda made: 1000.0 * made.batch_size / 64, noise=0.01)
    orders = fake.play(partial(next_order, spec(batch_sizes=[], budget_s=600.0)))
    return orders, Journal(fake.records)


def test_half_twice_and_four_times_are_tried_by_default(script):
    own = script().baseline
    assert [made.configuration.batch_size for made in batch_sizes([], own)] == [32, 128, 256]
    assert [made.id for made in batch_sizes([64, 100], own)] == ["nw4-pin0-bs100"]
    assert batch_sizes(None, own) == []


def test_a_size_that_is_not_known_has_no_half(script):
    own = msgspec.structs.replace(script().baseline, batch_size=None)
    assert batch_sizes([], own) == []
    assert [made.configuration.batch_size for made in batch_sizes([8], own)] == [8]
    single = msgspec.structs.replace(own, batch_size=1)
    assert [made.configuration.batch_size for made in batch_sizes([], single)] == [2, 4]


def test_sizes_run_three_rounds_and_are_never_verified(played):
    orders, journal = played
    ran = [order.treatment.id for order in orders if order.treatment and "batch_size" in order.treatment.changes]
    assert sorted(set(ran)) == ["nw4-pin0-bs128", "nw4-pin0-bs256", "nw4-pin0-bs32"]
    assert all(ran.count(size) == 3 for size in set(ran))
    assert all(order.purpose == "round" for order in orders[1:])


def test_sizes_do_not_compete(played):
    _, journal = played
    assert chosen(journal) == journal.baseline_id
    assert not any("bs" in trial for trial in standings(journal))
    assert beside(journal)["nw4-pin0-bs256"].value == pytest.approx(4.0, rel=0.05)


def test_sizes_correct_no_p_of_the_configurations(script, spec):
    fake = script(rate=lambda made: 1020.0 if made.num_workers == 8 else 1000.0, noise=0.02)
    fake.play(partial(next_order, spec(grid="num_workers=8", batch_sizes=[])))
    found = Journal(fake.records)
    alone = geometric_mean(paired_ratios(race_rates(found), found.baseline_id)["nw8-pin0"])
    assert standings(found)["nw8-pin0"].p == alone.p
