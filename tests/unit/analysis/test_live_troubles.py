"""What may go wrong in live launches, analysed: deaths, refusals, changed datasets, records that are missing."""

import dataclasses

import msgspec
import pytest
from synthetic_pipeline import ablations

from pindiag.journal import Journal
from pindiag.model import (
    Block,
    BlocksOrdered,
    DatasetChanged,
    LaunchBegan,
    LaunchEnded,
    LaunchOrder,
    LoaderIterated,
    NextBlocks,
    Sample,
    Treatment,
    TreatmentApplied,
    TreatmentRefused,
)

from .honest import assert_honest
from .live_sweeps import BASELINE, LEADER, LIVE, fact, trial


def cut_in(live, name, **ended):
    """The run as it is when its live launch dies in the first block of a trial."""
    number = live.blocks(name)[0].block
    end = next(r for r in live.records if isinstance(r, LaunchEnded) and r.launch == LIVE)
    kept = [r for r in live.records if r.launch != LIVE or not isinstance(r, LaunchEnded)]
    kept = [r for r in kept if r.launch <= LIVE and not (isinstance(r, Block) and r.block >= number)]
    told = [r for r in kept if not (isinstance(r, BlocksOrdered) and r.next.blocks and r.next.blocks[0].block > number)]
    failed = msgspec.structs.replace(end, status="failed", exit="killed by SIGKILL", **ended)
    return dataclasses.replace(live, records=[*told, failed])


def test_a_treatment_that_kills_the_launch_has_failed_and_no_other(live):
    found = cut_in(live, LEADER, reason="out of memory").analysed()
    assert (trial(found, LEADER).status, trial(found, LEADER).reason) == ("failed", "out of memory")
    assert {t.status for t in found.trials if t.id != LEADER} <= {"measured", "skipped"}
    assert found.target.error is None
    assert_honest(found)


def test_a_treatment_that_failed_live_and_was_given_up_before_its_fresh_turn_has_failed(live):
    cut = cut_in(live, LEADER, reason="out of memory: no room")
    made = next(order.treatment for order in Journal(cut.records).launches[-1].block_orders if order.trial == LEADER)
    order = LaunchOrder(purpose="round", isolation="fresh", treatment=None, blocks=[], planned=[made])
    fresh = LaunchBegan(launch=LIVE + 1, t_ns=cut.records[-1].t_ns + 1, pid=1, order=order)
    found = dataclasses.replace(cut, records=[*cut.records, fresh]).analysed()
    assert (trial(found, LEADER).status, trial(found, LEADER).reason) == ("failed", "out of memory: no room")


def test_a_live_launch_without_a_block_is_the_scripts_failure_only_under_the_baseline(live):
    for name, status in ((BASELINE, "failed"), (LEADER, "ok")):
        failing = live.blocks(name)[0]
        order = next(
            r.next.blocks[0]
            for r in live.records
            if isinstance(r, BlocksOrdered) and r.next.blocks and r.next.blocks[0].block == failing.block
        )
        records = [r for r in live.records if r.launch == 0]
        for launch in (1, 2):
            again = LaunchOrder(purpose="round", isolation="live", treatment=None, blocks=[order])
            records += [
                *(r for r in live.records if r.launch == 1 and not isinstance(r, Block | LaunchBegan | LaunchEnded)),
                LaunchBegan(launch=launch, t_ns=launch, pid=1, order=again),
                LaunchEnded(
                    launch=launch, t_ns=launch + 5, status="failed", exit="exit 1", returncode=1, seconds=1, reason="no"
                ),
            ]
        assert dataclasses.replace(live, records=records).analysed().target.status == status


def test_a_script_that_fails_before_its_loader_is_known_has_failed(live):
    kept = [r for r in live.records if r.launch == 0 or (r.launch == 1 and isinstance(r, LaunchBegan))]
    end = next(r for r in live.records if r.launch == 1 and isinstance(r, LaunchEnded))
    failed = msgspec.structs.replace(end, status="failed", exit="exit status 1", reason="ValueError: no")
    found = dataclasses.replace(live, records=[*kept, failed]).analysed()
    assert (found.target.status, found.target.error) == ("failed", "ValueError: no")
    assert_honest(found)


def test_a_refused_treatment_is_skipped_with_the_reason(live):
    numbers = [block.block for block in live.blocks(LEADER)]
    refused = [
        TreatmentRefused(
            launch=LIVE, t_ns=live.blocks(LEADER)[0].t_ns, block=n, trial=LEADER, reason="/dev/shm is full"
        )
        for n in numbers
    ]
    without = live.changed(lambda block: None if block.block in numbers else block)
    found = dataclasses.replace(without, records=[*without.records, *refused]).analysed()
    assert (trial(found, LEADER).status, trial(found, LEADER).reason) == ("skipped", "/dev/shm is full")
    assert_honest(found)


def test_what_plan_left_out_says_why_and_what_was_predicted(live):
    others = [
        Treatment(id=name, kind="configuration", configuration=ablations()[0].configuration) for name in ("a", "b")
    ]
    told = NextBlocks(planned=others, skipped={"a": "it cannot win", "b": "no time"}, predicted={"a": 3600.0})
    ordered = BlocksOrdered(launch=LIVE, t_ns=live.blocks(LEADER)[0].t_ns, next=told)
    found = dataclasses.replace(live, records=[*live.records, ordered]).analysed()
    predicted, skipped = trial(found, "a"), trial(found, "b")
    assert (predicted.status, predicted.reason, predicted.predicted_samples_per_second) == (
        "predicted",
        "it cannot win",
        3600.0,
    )
    assert (skipped.status, skipped.reason, skipped.predicted_samples_per_second) == ("skipped", "no time", None)
    assert (predicted.isolation, predicted.blocks) == ("live", [])
    assert_honest(found)


def test_blocks_after_the_dataset_changed_are_left_out_and_say_so(live):
    spoilt = live.blocks(LEADER)[1]
    changed = DatasetChanged(
        launch=LIVE, t_ns=spoilt.t_ns, trial=LEADER, block=spoilt.block, what="cache: 0 entries before, 640 after"
    )
    found = dataclasses.replace(live, records=[*live.records, changed]).analysed()
    assert len(trial(found, LEADER).blocks) == 2
    later = [block for block in found.blocks if block.launch == LIVE and block.id > spoilt.block]
    assert later
    assert {block.status for block in later} == {"left_out"}
    assert all("640 after" in block.reason for block in later)
    assert fact(found, "dataset_changed").value == "cache: 0 entries before, 640 after"
    assert_honest(found)


def test_what_could_not_be_changed_is_no_measurement(live):
    applied = TreatmentApplied(
        launch=LIVE,
        t_ns=1,
        trial=LEADER,
        applied={},
        refused={"num_workers": "an own __iter__"},
        how="nothing to change",
    )
    found = dataclasses.replace(live, records=[*live.records, applied]).analysed()
    assert trial(found, LEADER).status == "skipped"
    assert trial(found, LEADER).reason == "num_workers could not be changed: an own __iter__"
    assert_honest(found)


def test_what_failed_later_says_so_beside_its_figures(live):
    last = live.blocks(LEADER)[-1]
    cut = cut_in(
        live.changed(lambda b: None if b.trial == LEADER and b.block < last.block else b), LEADER, reason="hung"
    )
    kept = [block for block in live.blocks(LEADER) if block.block < last.block]
    found = dataclasses.replace(cut, records=[*cut.records, *kept]).analysed()
    assert trial(found, LEADER).status == "measured"
    assert trial(found, LEADER).reason == "failed after round 5: hung"


def test_notes_of_a_block_are_shown_with_it(live):
    noted = live.changed(lambda block: msgspec.structs.replace(block, notes=["copied for each step"]))
    assert noted.analysed().blocks[0].reason == "copied for each step"


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_live_run_that_died_anywhere_is_analysed(live, share):
    records = live.records[: int(len(live.records) * share)]
    assert_honest(dataclasses.replace(live, records=records).analysed())


@pytest.mark.parametrize("lost", [LaunchBegan, BlocksOrdered, LoaderIterated, Block, Sample])
def test_a_kind_of_record_that_is_missing_altogether(live, lost):
    assert_honest(live.changed(lambda record: None, lost).analysed())
