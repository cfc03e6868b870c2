"""Pairs that measure a patch: what each launch is handed, when enough is known, and what is said of the result."""

import msgspec
import pytest

from pindiag.analysis.patched import patch_verification
from pindiag.model import PatchedSources, RunEnded
from pindiag.plan.patched import LAUNCHES, next_pair
from pindiag.plan.verification import EPOCHS_LIVED

PATCH = PatchedSources(summary="Set num_workers=0.", before={"/t.py": "a"}, after={"/t.py": "b"}, loader=None)


@pytest.fixture
def measured(script, spec):
    """Plays a whole verification of a patch that brings a gain."""

    def play(gain=1.5, failing=(), most=400, **asked):
        fake = script(rate=lambda made: 8000.0 * (gain if fake.patched else 1), noise=0.01)
        run = fake.run

        def launch(order):
            fake.patched = order.patched
            fake.fails = {fake.baseline.id: "ValueError: boom"} if order.patched in failing else {}
            run(order)

        fake.run = launch
        orders = []
        while len(orders) < most and (order := next_pair(spec(patch=PATCH, **asked), fake.records)) is not None:
            orders.append(order)
            fake.run(order)
        return fake, orders

    return play


def test_pairs_alternate_over_whole_epochs_until_the_interval_is_narrow(measured):
    fake, orders = measured()
    assert [order.patched for order in orders] == [False, *[False, True, True, False] * 2]
    assert len(orders) == LAUNCHES
    assert all(order.treatment is None for order in orders), "the probe changes nothing: the files do"
    assert {order.blocks[0].epochs for order in orders[1:]} == {2}
    told = patch_verification(PATCH, fake.records)
    assert told.ratio == pytest.approx(1.5, rel=0.03)
    assert told.ci95[0] < 1.5 < told.ci95[1]
    assert (told.pairs, told.epochs, told.reason, told.files) == (4, 2, None, ["/t.py"])
    assert told.status == "measured"
    assert told.launches == list(range(2, 10))
    halves = zip(told.patched_samples_per_second, told.original_samples_per_second, strict=True)
    assert all(after / before == pytest.approx(1.5, rel=0.1) for after, before in halves)


def test_a_patch_by_which_workers_live_on_is_measured_over_more_epochs(script, spec):
    fake = script(rate=lambda _: 80000.0)
    patch = msgspec.structs.replace(PATCH, lives_on=True)
    fake.run(next_pair(spec(patch=patch), fake.records))
    assert next_pair(spec(patch=patch), fake.records).blocks[0].epochs == EPOCHS_LIVED


def test_what_the_patch_leaves_to_the_user_is_set_by_the_probe(script, spec):
    fake = script()
    patch = msgspec.structs.replace(PATCH, by_hand={"num_workers": 0})
    orders = [next_pair(spec(patch=patch), fake.records)]
    while len(orders) < 3:
        fake.run(orders[-1])
        orders.append(next_pair(spec(patch=patch), fake.records))
    *_, original, patched = orders
    assert (original.treatment, original.patched) == (None, False)
    assert (patched.treatment.id, patched.treatment.changes, patched.patched) == ("patched", {"num_workers": 0}, True)
    assert patch_verification(patch, fake.records).by_hand == {"num_workers": 0}


def test_the_budget_is_kept_and_blocks_do_where_epochs_are_too_long(measured):
    fake, orders = measured(budget_s=20.0)
    assert orders[1].blocks[0].epochs is None
    assert fake.spent_s() <= 20.0 * 1.2
    assert patch_verification(PATCH, fake.records).epochs is None


def test_a_budget_without_room_for_a_pair(measured):
    fake, orders = measured(budget_s=2.0)
    assert len(orders) == 1
    told = patch_verification(PATCH, fake.records)
    assert (told.pairs, told.ratio, told.reason) == (0, None, "the budget left no time for a pair")
    assert told.status == "not_measured"


@pytest.mark.parametrize(
    ("failing", "launches", "what"), [((True,), 4, "with the patch"), ((True, False), 1, "as it was measured")]
)
def test_a_script_that_fails(failing, launches, what, measured):
    fake, orders = measured(failing=failing)
    assert len(orders) == launches, "the patch has a second try; a script that fails by itself has none"
    told = patch_verification(PATCH, fake.records)
    assert (told.status, told.reason) == ("failed", f"the script {what} failed: ValueError: boom")


def test_an_interrupted_one_is_over(measured, spec):
    fake, _ = measured(most=2)
    fake.add(RunEnded(launch=0, t_ns=fake.now_ns, status="interrupted", reason="Ctrl-C"))
    assert next_pair(spec(patch=PATCH), fake.records) is None
    told = patch_verification(PATCH, fake.records)
    assert (told.status, told.reason) == ("interrupted", "it was interrupted before a pair was complete")
