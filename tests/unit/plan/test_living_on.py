"""Workers that live on are compared over whole epochs, where nothing leads and starting them is dear."""

from functools import partial

import pytest

from pindiag.analysis import analyse
from pindiag.analysis.pairs import between
from pindiag.journal import Journal
from pindiag.model import BuffersWatched, RunEnded, TrainingLoop
from pindiag.plan.schedule import next_order
from pindiag.plan.verification import EPOCHS_LIVED
from pindiag.race import chosen, comes_first, leader, recommended
from pindiag.rules import judge
from pindiag.rules.inputs import Inputs
from pindiag.rules.verdict import verdict

ONCE = "nw4-pin0-pw"


def gains(ratio):
    """Samples/s of a script whose whole epochs gain that much by workers that live on, and by nothing else."""
    return lambda made: 20_000.0 * (ratio if made.persistent_workers else 1.0)


@pytest.fixture
def swept(script, spec):
    """Plays a sweep whose race has no such configuration; epochs of 1.2 s with a start of 0.2 s unless it says else."""

    def play(ratio=1.2, loop=None, asked=None, **changes):
        fake = script(rate=gains(ratio), noise=0.01, **changes)
        asked_for = spec(**({"exhaustive": True, "usable_cpus": 1} | (asked or {})))
        fake.run(next_order(asked_for, fake.records))
        fake.add(BuffersWatched(**fake.at(), batches=12, copies=0, rewritten=[]))
        if loop is not None:
            fake.add(TrainingLoop(**fake.at(), location="/home/ann/train.py:20", last_line=30, clocks=[], rebuilt=loop))
        orders = fake.play(partial(next_order, asked_for))
        fake.add(RunEnded(launch=0, t_ns=fake.now_ns, status="ok"))
        return fake, asked_for, [order for order in orders if order.purpose == "verify"]

    return play


def concluded(fake, asked_for):
    analysis = analyse(asked_for, fake.records, fake.batches, {}, {})
    inputs = Inputs.of(analysis, between(analysis))
    findings = judge(inputs)
    return analysis, {each.cause: each for each in findings}, verdict(findings, inputs)


def test_pairs_over_whole_epochs_of_which_four_fit(swept):
    fake, _, orders = swept()
    assert len(orders) >= 8
    assert {order.blocks[0].epochs for order in orders} == {EPOCHS_LIVED}
    assert {order.treatment.id for order in orders} == {"nw4-pin0", ONCE}
    assert {frozenset(order.treatment.changes.items()) for order in orders} == {
        frozenset(),
        frozenset({("persistent_workers", True)}),
    }
    assert fake.spent_s() <= 300


def test_what_they_bear_out_is_recommended_and_confirms_the_cause(swept):
    fake, asked_for, _ = swept()
    journal = Journal(fake.records)
    assert leader(journal) == chosen(journal) == "nw4-pin0", "blocks of steps tell nothing of it"
    assert recommended(journal) == comes_first(journal) == ONCE
    analysis, findings, said = concluded(fake, asked_for)
    trial = next(one for one in analysis.trials if one.id == ONCE)
    assert (trial.status, trial.safety.status) == ("measured", "passed")
    assert "whole epochs" in trial.reason
    assert (analysis.recommendation.trial, analysis.recommendation.firmness) == (ONCE, "verified")
    assert analysis.recommendation.versus_baseline.ratio == pytest.approx(1.2, rel=0.02)
    found = findings["worker_startup"]
    assert (found.status, found.fixes[0].changes) == ("confirmed", {"persistent_workers": True})
    assert (found.fixes[0].effect.kind, found.fixes[0].safety.status) == ("verified", "passed")
    assert found.fixes[0].effect.ci95[0] > 1.1
    assert said.primary_cause == "worker_startup"
    assert "pairs of fresh launches over whole epochs" in said.lead


def test_two_equal_ones_are_told_apart_by_nothing(swept):
    fake, asked_for, orders = swept(ratio=1.0)
    assert orders
    assert recommended(Journal(fake.records)) == "nw4-pin0"
    analysis, findings, said = concluded(fake, asked_for)
    assert analysis.recommendation.trial == "nw4-pin0"
    assert findings["worker_startup"].status == "ruled_out"
    assert "persistent_workers" not in said.headline + said.lead
    assert not [fix for fix in findings["worker_startup"].fixes if fix.effect]


@pytest.mark.parametrize(
    "changes",
    [
        {"loop": True},
        {"first_batch_ms": 20.0},
        {"asked": {"verify": False}},
        {"asked": {"steps": 50}},
        {"asked": {"exhaustive": False, "grid": "num_workers=0,2"}},
        {"asked": {"budget_s": 12.0}},
    ],
    ids=["the loader is made anew", "starting is cheap", "--no-verify", "--steps", "--grid", "no room"],
)
def test_no_such_experiment(swept, changes):
    _, _, orders = swept(**changes)
    assert orders == []


def test_without_room_the_cause_stays_suspected_and_names_the_experiment(swept):
    fake, asked_for, orders = swept(asked={"budget_s": 12.0})
    _, findings, _ = concluded(fake, asked_for)
    found = findings["worker_startup"]
    assert (orders, found.status) == ([], "suspected")
    assert "whole epochs" in found.experiment


def test_epochs_that_turn_out_not_to_fit_end_it(swept):
    fake, _, orders = swept(between_s=10.0)
    assert len(orders) == 1
    assert recommended(Journal(fake.records)) == "nw4-pin0"


def test_a_script_of_a_single_epoch_tells_nothing_of_it(swept):
    fake, asked_for, orders = swept(most_epochs=1)
    assert len(orders) == 1
    _, findings, _ = concluded(fake, asked_for)
    assert findings["worker_startup"].status == "suspected"
