import msgspec
import pytest

from pindiag.journal import DISCOVER_TRIAL, Journal, usable
from pindiag.model import (
    Block,
    DatasetChanged,
    FirstStep,
    LaunchBegan,
    LaunchEnded,
    TargetFailed,
    TreatmentApplied,
)
from pindiag.plan.schedule import next_order


@pytest.fixture
def fake(script, spec):
    made = script()
    for _ in range(3):
        made.run(next_order(spec(), made.records))
    return made


def test_the_first_launch_is_the_baseline_by_its_real_name(fake):
    journal = Journal(fake.records)
    assert journal.launches[0].all(Block)[0].trial == DISCOVER_TRIAL
    assert journal.trial(DISCOVER_TRIAL) == journal.baseline_id == "nw4-pin0"
    assert journal.rates("discover")[0].trial == "nw4-pin0"
    assert next(iter(journal.treatments)) == "nw4-pin0"


def test_start_up_costs_nothing_of_the_budget(fake):
    launch = Journal(fake.records).launches[0]
    first, ended = launch.first(FirstStep), launch.first(LaunchEnded)
    assert launch.spent_s == pytest.approx((ended.t_ns - first.t_ns) / 1e9)
    assert launch.spent_s < ended.seconds - 2


def test_a_launch_that_never_trained_costs_nothing(fake):
    records = [record for record in fake.records if not isinstance(record, FirstStep)]
    assert [launch.spent_s for launch in Journal(records).launches] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("change", [{"status": "short"}, {"status": "failed"}, {"samples": 0}, {"seconds": 0.0}])
def test_only_whole_blocks_count(fake, change):
    (block,) = Journal(fake.records).launches[0].all(Block)
    assert usable(block)
    assert not usable(msgspec.structs.replace(block, **change))


@pytest.mark.parametrize(("natural", "excused"), [(False, True), (True, False)])
def test_failing_past_the_natural_end_is_excused_once(fake, natural, excused):
    began = fake.records[0]
    order = msgspec.structs.replace(began.order, natural_epochs=natural)
    failed = TargetFailed(launch=1, t_ns=1, exception="E", message="", traceback="", step=9, past_natural_end=True)
    (launch,) = Journal([msgspec.structs.replace(began, order=order), failed]).launches
    assert launch.past_natural_end is excused


def test_without_the_parents_journal_the_blocks_are_still_there(fake):
    records = [record for record in fake.records if not isinstance(record, LaunchBegan | LaunchEnded)]
    journal = Journal(records)
    assert len(journal.rates("round")) == 3
    assert journal.baseline_id == "nw4-pin0"


@pytest.mark.parametrize(("isolation", "counts"), [("live", [1, 2]), ("fresh", [1, 2, 3])])
def test_a_live_launchs_blocks_end_with_the_one_that_changed_its_dataset(fake, isolation, counts):
    launch = _of_three_blocks(
        fake, isolation, DatasetChanged(launch=1, t_ns=2, trial="nw0-pin0", block=2, what="cache")
    )
    assert [block.block for block in launch.counted] == counts


@pytest.mark.parametrize(("isolation", "counts"), [("live", [1, 3]), ("fresh", [1, 2, 3])])
def test_live_blocks_of_a_treatment_that_could_not_be_applied_do_not_count(fake, isolation, counts):
    refused = {"num_workers": "its class has an __iter__ of its own"}
    applied = TreatmentApplied(launch=1, t_ns=2, trial="nw0-pin0", applied={}, refused=refused, how="nothing to change")
    launch = _of_three_blocks(fake, isolation, applied)
    assert [block.block for block in launch.counted] == counts


def _of_three_blocks(fake, isolation, beside):
    began = fake.records[0]
    order = msgspec.structs.replace(began.order, isolation=isolation)
    (block,) = Journal(fake.records).launches[0].all(Block)
    names = {1: "nw4-pin0", 2: "nw0-pin0", 3: "nw2-pin0"}
    blocks = [msgspec.structs.replace(block, block=number, trial=name) for number, name in names.items()]
    (launch,) = Journal([msgspec.structs.replace(began, order=order), *blocks, beside]).launches
    return launch
