"""What each launch of a pair covers, and that a pair which was cut is made whole."""

from functools import partial

import msgspec
import pytest

from pindiag.journal import Journal
from pindiag.model import LaunchEnded, RunResumed
from pindiag.plan.budget import LEAVING_S, VERIFICATION_SHARE, Budget
from pindiag.plan.known import Known
from pindiag.plan.schedule import next_order
from pindiag.plan.verification import FEWEST_PAIRS, MOST_PAIRS, SPARE, Verification
from pindiag.race import chosen, verification


def by_workers(made):
    return {0: 16000.0, 4: 8000.0}.get(made.num_workers, 4000.0)


def verifying(orders):
    return [order for order in orders if order.purpose == "verify"]


def test_two_natural_epochs_where_they_fit_a_launchs_share(script, spec):
    fake = script(rate=by_workers)
    orders = verifying(fake.play(partial(next_order, spec())))
    assert len(orders) >= 8
    assert {(order.blocks[0].epochs, order.blocks[0].steps) for order in orders} == {(2, 626)}
    journal = Journal(fake.records)
    assert journal.verified_epochs == 2
    assert verification(journal, "nw0-pin0").value == pytest.approx(2.0, rel=0.05)
    assert fake.spent_s() <= 1.2 * 300


@pytest.mark.parametrize(("noise", "pairs"), [(0.01, FEWEST_PAIRS), (0.2, MOST_PAIRS)])
def test_the_race_holds_back_as_many_pairs_as_its_noise_asks_for(script, spec, noise, pairs):
    fake = script(rate=by_workers, noise=noise)
    decide = partial(next_order, spec())
    while (order := decide(fake.records)) is not None and order.purpose != "verify":
        fake.run(order)
    known = Known(spec(), Journal(fake.records))
    assert known.candidate == "nw0-pin0"
    epochs_s = 2 * 313 * 64 * (1 / 8000 + 1 / 16000)
    needed_s = SPARE * pairs * (epochs_s + 2 * LEAVING_S)
    assert Verification(known, Budget(known)).needs_s == pytest.approx(needed_s, rel=0.1)


def test_nothing_is_held_back_beyond_what_is_needed_or_its_share(spec):
    known = Known(spec(), Journal([]))
    assert Budget(known, lambda: 30.0).race_share == pytest.approx(1 - 30 / 300)
    assert Budget(known).race_share == pytest.approx(1 - VERIFICATION_SHARE)


def test_of_short_epochs_as_many_as_last_a_block(script, spec):
    fake = script(rate=lambda made: 10 * by_workers(made))
    orders = verifying(fake.play(partial(next_order, spec())))
    assert {order.blocks[0].epochs for order in orders} == {5}, "0.33 s each, workers started, for blocks of 1.5 s"


@pytest.mark.parametrize(
    ("changes", "asked"), [({"rate": lambda made: by_workers(made) / 10}, {}), ({"rate": by_workers}, {"steps": 50})]
)
def test_blocks_where_epochs_do_not_fit_or_steps_are_asked_for(script, spec, changes, asked):
    fake = script(**changes)
    orders = verifying(fake.play(partial(next_order, spec(**asked))))
    assert orders
    assert all(order.blocks[0].epochs is None for order in orders)
    assert Journal(fake.records).verified_epochs is None


def test_epochs_that_turn_out_too_long_give_way_to_blocks(script, spec):
    fake = script(rate=by_workers, between_s=10.0, noise=0.005)
    orders = verifying(fake.play(partial(next_order, spec())))
    assert orders[0].blocks[0].epochs == 2
    assert all(order.blocks[0].epochs is None for order in orders[1:])
    journal = Journal(fake.records)
    assert journal.verified_epochs is None
    ratio = verification(journal, "nw0-pin0")
    assert ratio.value == pytest.approx(2.0, rel=0.02), "what the first launch did between its epochs is left out"
    assert fake.spent_s() <= 1.2 * 300


def test_what_is_done_between_epochs_is_part_of_the_verified_ratio(script, spec):
    fake = script(rate=by_workers, between_s=1.0, noise=0.005)
    fake.play(partial(next_order, spec()))
    journal = Journal(fake.records)
    assert journal.verified_epochs == 2
    epoch_s = [313 * 64 / rate for rate in (8000, 16000)]
    assert verification(journal, "nw0-pin0").value == pytest.approx((epoch_s[0] + 1) / (epoch_s[1] + 1), rel=0.02)
    assert verification(journal, "nw0-pin0", steady=True).value == pytest.approx(2.0, rel=0.02)


def test_a_launch_that_was_cut_with_the_run_has_another_turn(script, spec):
    fake = script(rate=by_workers)
    decide = partial(next_order, spec())
    while (order := decide(fake.records)).purpose != "verify":
        fake.run(order)
    fake.run(order)
    *before, ended = fake.records
    cut = [record for record in before if record.launch != fake.launch or type(record).__name__ == "LaunchBegan"]
    assert isinstance(ended, LaunchEnded)
    fake.records = [*cut, msgspec.structs.replace(ended, status="interrupted")]
    assert decide(fake.records) is None
    fake.records.append(RunResumed(**{**fake.at(), "launch": 0}, launches=fake.launch))
    again = decide(fake.records)
    assert (again.treatment, again.blocks[0].round) == (order.treatment, order.blocks[0].round)
    assert again.blocks[0].block > order.blocks[0].block
    fake.play(decide)
    assert chosen(Journal(fake.records)) == "nw0-pin0"
    assert verification(Journal(fake.records), "nw0-pin0").count >= 4
