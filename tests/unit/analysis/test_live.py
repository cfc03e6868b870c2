"""What live launches leave, analysed: trials, facts, verification, recommendation, drawing."""

import dataclasses

import msgspec
import pytest

from pindiag.model import (
    Block,
    LoaderIterated,
    Sample,
)

from .honest import assert_honest
from .live_sweeps import BASELINE, BEATEN, LEADER, LIVE, fact, paced, recorded, trial

# ------------------------------------------------------------------------------------------------------ trials


def test_every_null_has_its_reason(analysis):
    assert_honest(analysis)


def test_the_discovery_is_live_and_in_round_0(analysis):
    first = analysis.blocks[0]
    assert (first.trial, first.round, first.purpose) == (BASELINE, 0, "discover")
    assert first.id in trial(analysis, BASELINE).blocks


def test_all_trials_are_live_and_verification_counts_in_none(analysis):
    assert {found.isolation for found in analysis.trials} == {"live"}
    verified = {block.id for block in analysis.blocks if block.purpose == "verify"}
    assert len(verified) == 8
    assert not verified & {number for found in analysis.trials for number in found.blocks}


def test_ablations_and_tweaks_are_named_and_compared(analysis):
    kinds = {found.id: (found.kind, found.ablation, found.tweak) for found in analysis.trials}
    assert kinds["compute_only"] == ("ablation", "compute_only", None)
    assert kinds[f"{BASELINE}+lazy_sync"] == ("tweak", None, "lazy_sync")
    assert trial(analysis, "compute_only").versus_baseline.ratio == pytest.approx(15.2 / 2.2, rel=0.1)
    assert trial(analysis, "loader_only-nw4-pin1").versus_baseline.ratio == pytest.approx(1.0, rel=0.05)


def test_ceilings_are_the_ablations_that_were_measured(live, analysis):
    of_host = ["host_batch-pin0-nb0", "host_batch-pin1-nb0", "host_batch-pin1-nb1"]
    assert analysis.ceilings.compute_only == "compute_only"
    assert analysis.ceilings.host_batch == of_host
    assert analysis.ceilings.loader_only == ["loader_only-nw4-pin0", "loader_only-nw4-pin1"]
    without = live.changed(lambda block: None if block.trial in ("compute_only", of_host[0]) else block).analysed()
    assert without.ceilings.compute_only is None
    assert without.ceilings.host_batch == of_host[1:]
    assert_honest(without)


def test_an_epoch_is_a_configurations(analysis):
    assert trial(analysis, LEADER).epoch_s > 0
    assert all(found.epoch_s is None for found in analysis.trials if found.kind != "configuration")


def test_start_up_is_that_of_the_iterators_which_served_the_trial(live):
    slow = live.changed(
        lambda born: msgspec.structs.replace(born, first_batch_ms=700.0) if born.trial == BEATEN else born,
        LoaderIterated,
    ).analysed()
    assert trial(slow, BEATEN).startup_s == pytest.approx(0.7)
    assert trial(slow, BASELINE).startup_s == pytest.approx(0.06)
    assert trial(slow, "compute_only").startup_s is None


def test_rings_are_cut_to_the_blocks_of_their_trial(live, analysis):
    """One launch holds the rings of many workers; what they did between blocks belongs to nobody."""
    between = msgspec.structs.replace(live.batches[0], fetch_ns=9_000_000_000, started_ns=1)
    found = dataclasses.replace(live, batches=[*live.batches, between]).analysed()
    assert trial(found, BASELINE).worker_ms == trial(analysis, BASELINE).worker_ms
    assert trial(found, BASELINE).worker_ms.fetch == pytest.approx(2.2)
    assert trial(found, LEADER).worker_ms is None


def test_no_sample_is_taken_from_what_served_before(live):
    """A block may begin to count sooner after a switch than samples are late."""
    block = live.blocks("compute_only")[0]
    old = next(r for r in live.records if isinstance(r, Sample) and r.launch == LIVE and len(r.processes) > 1)
    stale = msgspec.structs.replace(old, t_ns=block.started_ns - 45_000_000)
    found = dataclasses.replace(live, records=[*live.records, stale]).analysed()
    assert trial(found, "compute_only").sampler.worker_rss_bytes is None


def test_a_profiler_window_of_each_configuration(analysis):
    assert all(found.profiler is not None for found in analysis.trials if found.kind == "configuration")
    assert trial(analysis, BASELINE).profiler.trace.endswith(f"{BASELINE}.json.gz")


def test_fresh_rounds_judge_what_ran_in_both(tmp_path):
    def more(sweep):
        for turn in (20, 21, 22):
            for made in (sweep.baseline, sweep.treatments[BEATEN], sweep.baseline):
                sweep.launch(sweep.fresh("round", turn, made))

    found = recorded(tmp_path, pairs=0, more=more).analysed()
    mixed, baseline = trial(found, BEATEN), trial(found, BASELINE)
    rounds = {block.round for block in found.blocks if block.id in mixed.blocks}
    assert (mixed.isolation, rounds, mixed.versus_baseline.rounds) == ("fresh", {20, 21, 22}, 3)
    assert baseline.isolation == "live"
    assert not {block.id for block in found.blocks if block.round >= 20} & set(baseline.blocks)
    assert_honest(found)


# -------------------------------------------------------------------------------------------------------- facts


def test_threads_of_fresh_processes_with_and_without_a_pin_thread(live, analysis):
    pinned, plain = fact(analysis, "intraop_threads_pin_thread"), fact(analysis, "intraop_threads_no_pin_thread")
    assert (pinned.value, plain.value) == (1, 16)
    assert (pinned.source, plain.source) == ("launch 2, after its first batch", "launch 1, after its first batch")
    unscouted = [r for r in live.records if live.purpose(r.launch) not in ("scout", "verify")]
    without = dataclasses.replace(live, records=unscouted).analysed()
    assert fact(without, "intraop_threads_pin_thread").reason == "no fresh process with a pin thread told it"


def test_a_drained_loader_is_no_step(analysis):
    drained = "loader_only-nw4-pin1"
    for name in ("wait_ms", "wait_share", "step_ms", "script_ms", "wait_cpu_share"):
        assert fact(analysis, name, drained).reason == "no training step ran: the loader was drained"
        assert fact(analysis, name, BASELINE).value is not None
    assert fact(analysis, "samples_per_second", drained).value > 0
    assert fact(analysis, "pin_busy_share", drained).value == pytest.approx(1.0, abs=0.05)
    assert fact(analysis, "worker_fetch_ms", drained).value == pytest.approx(2.2)


def test_replayed_batches_come_from_no_worker(analysis):
    for name in ("worker_fetch_ms", "queue_batches", "in_flight_bytes", "pinned_reckoned_bytes", "pin_busy_share"):
        assert fact(analysis, name, "host_batch-pin1-nb1").reason == "its batches were replayed, not loaded"


def test_waits_for_the_device_name_the_users_line(analysis):
    calls, took = (fact(analysis, name, BASELINE) for name in ("syncs_per_step", "sync_ms_per_step"))
    assert calls.value == pytest.approx(0.1, abs=0.01)
    assert took.value == pytest.approx(0.01)
    assert "article_floats.py:58, item" in calls.source
    assert fact(analysis, "lazy_syncs_per_step", BASELINE).value == 0


def test_threads_of_a_trial(live, analysis):
    assert fact(analysis, "intraop_threads", LEADER).value == 16
    unread = live.changed(lambda block: msgspec.structs.replace(block, intraop_threads=None)).analysed()
    assert fact(unread, "intraop_threads", LEADER).value is None


# ---------------------------------------------------------------------------------- verification, recommendation


def test_live_and_fresh_agree(analysis):
    found = analysis.verification
    assert found.live_ratio == trial(analysis, LEADER).versus_baseline.ratio
    assert found.ci95[0] <= found.live_ratio <= found.ci95[1]
    assert found.agrees_with_live is True
    assert (analysis.recommendation.trial, analysis.recommendation.firmness) == (LEADER, "verified")


def test_the_fresh_result_decides_where_they_differ(live):
    found = live.changed(paced(1.5, LEADER, only=lambda block: block.launch == LIVE)).analysed()
    assert found.verification.agrees_with_live is False
    assert found.recommendation.firmness == "verified"
    assert found.recommendation.versus_baseline.ratio == found.verification.ratio < 1.3 < found.verification.live_ratio


def test_a_difference_and_too_few_pairs_are_provisional_and_fresh(few_pairs):
    agreed = few_pairs.analysed()
    assert agreed.verification.agrees_with_live is None
    assert agreed.recommendation.versus_baseline.ratio == trial(agreed, LEADER).versus_baseline.ratio
    found = few_pairs.changed(paced(1.5, LEADER, only=lambda block: block.launch == LIVE)).analysed()
    assert (found.recommendation.trial, found.recommendation.firmness) == (LEADER, "provisional")
    assert found.recommendation.versus_baseline.ratio == found.verification.ratio


def test_what_two_fresh_pairs_contradict_is_not_recommended(few_pairs):
    found = few_pairs.changed(paced(0.7, LEADER, only=lambda block: block.launch > LIVE)).analysed()
    assert found.verification.ratio < 1
    assert found.recommendation.trial == BASELINE


def drifting(run):
    """The whole machine slows down by 40 % over the live launch."""
    blocks = [r for r in run.records if isinstance(r, Block) and r.launch == LIVE]
    last = max(block.block for block in blocks)
    names = {block.trial for block in blocks}
    return run.changed(
        lambda block: paced(1 - 0.4 * block.block / last, *names)(block) if block.launch == LIVE else block
    )


def test_live_results_that_drift_need_fresh_ones(live, many_rounds):
    steady, drifted = many_rounds.analysed(), drifting(many_rounds).analysed()
    assert (fact(steady, "live_drift").value, steady.recommendation.firmness) == (False, "measured")
    assert (fact(drifted, "live_drift").value, drifted.recommendation.firmness) == (True, "provisional")
    assert steady.recommendation.trial == drifted.recommendation.trial == LEADER
    assert drifting(live).analysed().recommendation.firmness == "verified"


def test_rounds_that_did_not_choose_it_stand_behind_what_is_measured(many_rounds):
    found = many_rounds.analysed().recommendation
    assert found.versus_baseline.rounds == 7
    few = many_rounds.changed(lambda block: None if block.round in (7, 8) else block).analysed()
    assert few.recommendation.firmness == "provisional"


# ------------------------------------------------------------------------------------------------------ drawing


def test_bands_of_all_treatments_lie_over_one_launch(analysis):
    bands = analysis.drawing.series.bands
    live = [band for band in bands if band.block in {b.id for b in analysis.blocks if b.launch == LIVE}]
    assert {"compute_only", BASELINE, LEADER, "loader_only-nw4-pin1"} <= {band.trial for band in live}
    assert all(before.end_s <= after.start_s for before, after in zip(live, live[1:], strict=False))
    assert analysis.drawing.timeline_trial == BASELINE
