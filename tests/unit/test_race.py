from functools import partial

from pindiag.journal import Journal
from pindiag.plan.schedule import next_order
from pindiag.race import chosen, floor, standings, verification


def journal(fake, spec, **asked):
    fake.play(partial(next_order, spec(**asked)))
    return Journal(fake.records)


def test_the_cheapest_within_two_percent_is_chosen(script, spec):
    fake = script(rate=lambda made: {0: 1000, 1: 1490, 8: 1500}.get(made.num_workers, 1200.0), noise=0.002)
    assert chosen(journal(fake, spec, grid="num_workers=0,1,8")) == "nw1-pin0"


def test_the_baseline_is_chosen_when_nothing_is_beyond_the_noise(script, spec):
    found = journal(script(noise=0.05), spec)
    assert chosen(found) == found.baseline_id == "nw4-pin0"


def test_a_gain_of_two_percent_is_not_worth_a_change(script, spec):
    fake = script(rate=lambda made: 1015.0 if made.num_workers == 8 else 1000.0, noise=0.0005)
    assert chosen(journal(fake, spec)) == "nw4-pin0"


def test_batch_size_is_never_chosen(script, spec):
    fake = script(rate=lambda made: 10.0 * made.batch_size, noise=0.01)
    assert chosen(journal(fake, spec, grid="batch_size=64,256 num_workers=4,8")) == "nw4-pin0"


def test_verification_is_apart_from_the_race(script, spec):
    fake = script(rate=lambda made: 1500.0 if made.num_workers == 0 else 1000.0, noise=0.01)
    found = journal(fake, spec)
    assert standings(found)["nw0-pin0"].count == 6
    assert verification(found, "nw0-pin0").count >= 4
    assert floor(found)[1] == 6


def test_nothing_is_known_without_a_loader():
    found = Journal([])
    assert (chosen(found), standings(found), floor(found)) == (None, {}, (None, 0))
