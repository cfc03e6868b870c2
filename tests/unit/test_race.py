from functools import partial

import msgspec
import pytest

from pindiag.journal import Journal
from pindiag.model import HostAllocator
from pindiag.plan.schedule import next_order
from pindiag.race import Cost, cheapest, chosen, floor, measured_cost, near_best, standings, verification


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


# ------------------------------------------------------------------------------------------------ the cheapest


def taken(**differs):
    usual = Cost(workers=2, pinned_and_shared_bytes=10**8, in_flight=4, pins=True, startup_s=1.0, gain=1.50)
    return usual._replace(**differs)


@pytest.mark.parametrize(
    ("cheaper", "dearer"),
    [
        ({"workers": 1, "pinned_and_shared_bytes": 10**9, "startup_s": 9.0}, {}),
        ({"pinned_and_shared_bytes": 5 * 10**7, "in_flight": 8}, {}),
        ({"in_flight": 2, "startup_s": 9.0}, {"pinned_and_shared_bytes": 9 * 10**7}),
        ({"pins": False, "startup_s": 9.0}, {}),
        ({"startup_s": 0.5, "gain": 1.49}, {}),
        ({"gain": 1.51, "startup_s": 1.1}, {}),
    ],
)
def test_criteria_decide_in_their_order(cheaper, dearer):
    for order in (("one", "other"), ("other", "one")):
        costs = {"one": taken(**cheaper), "other": taken(**dearer)}
        assert cheapest({name: costs[name] for name in order}) == "one"


def test_a_reading_that_one_lacks_decides_nothing():
    unread = taken(pinned_and_shared_bytes=None, startup_s=None, gain=1.51)
    assert cheapest({"read": taken(pinned_and_shared_bytes=1, startup_s=0.1), "unread": unread}) == "unread"


def test_who_has_left_decides_nothing_more():
    small = taken(workers=8, pinned_and_shared_bytes=1)
    assert cheapest({"small": small, "slow start": taken(startup_s=5.0), "quick start": taken()}) == "quick start"
    assert cheapest({}) is None


def test_the_least_pinned_memory_is_chosen(script, spec):
    fake = script(rate=lambda made: 1500.0 if made.num_workers == 0 else 1000.0, noise=0.002, accelerator="cuda")
    fake.play(partial(next_order, spec(grid="num_workers=0 pin_memory=on,off", verify=False)))
    held = {"nw0-pin1": 1 << 30, "nw0-pin0": 0}
    records = [
        msgspec.structs.replace(
            record,
            host_allocator=HostAllocator(
                allocations=0, alloc_ms=0.0, active_bytes=None, reserved_bytes=held.get(record.trial, 0)
            ),
        )
        if type(record).__name__ == "Block"
        else record
        for record in fake.records
    ]
    found = Journal(records)
    assert near_best(found).keys() == held.keys()
    assert measured_cost(found, "nw0-pin1", 1.5).pinned_and_shared_bytes == 1 << 30
    assert measured_cost(found, "nw0-pin0", 1.5).pinned_and_shared_bytes == 1 << 28
    assert chosen(found) == "nw0-pin0"


def test_start_up_is_read_in_the_race(script, spec):
    found = journal(script(rate=lambda made: 1500.0 if made.num_workers == 0 else 1000.0, noise=0.01), spec)
    cost = measured_cost(found, "nw0-pin0", 1.5)
    assert (cost.workers, cost.in_flight, cost.startup_s) == (0, 0, pytest.approx(0.2))
