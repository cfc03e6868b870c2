"""The phases of a live run, each told by the orders that the plan gave a simulated script."""

import dataclasses

import msgspec
import pytest
from simulated_script import Noise, Pipeline, Troubles
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import BlocksOrdered, FirstStep, LaunchBegan, LaunchEnded, TreatmentRefused
from pindiag.plan.schedule import leading, next_blocks, next_order, remaining
from pindiag.race import drifts

QUIET = Noise(block=0.002)
GPU = Pipeline(fetch_s=0.02, host_s=0.001, threads=8)
CPU = Pipeline(compute_s=0.006, accelerator=None)


def simulate(pipeline=CPU, noise=QUIET, troubles=None, baseline=None, **asked) -> Simulation:
    made = loader(**({"non_blocking": False} if pipeline.accelerator else {}) | (baseline or {}))
    return Simulation(sweep_spec(**asked), made, pipeline, noise, troubles, seed=3).run()


def rounds(run, isolation="live"):
    """Round to the trials in their order."""
    found = {}
    for launch in Journal(run.records).launches:
        if launch.isolation == isolation and launch.purpose in ("discover", "round"):
            for order in launch.block_orders:
                found.setdefault(order.round, []).append(order.trial)
    return found


def launches(run):
    return [(launch.purpose, launch.isolation) for launch in Journal(run.records).launches]


def windows(run):
    told = [order for launch in Journal(run.records).launches for order in launch.orders if order.windows]
    return [window.trial for order in told for window in order.windows]


# ------------------------------------------------------------------------------------------------------- the flow


def test_one_launch_does_it_all_where_no_accelerator_needs_a_scout():
    run = simulate()
    assert launches(run) == [("discover", "live")]
    found = rounds(run)
    assert found[0] == ["baseline"]
    assert sorted(found[1]) == sorted(["nw4-pin0", "nw4-pin0", "nw0-pin0", "nw8-pin0", "loader_only-nw4-pin0"])
    assert sorted(found[2]) == ["compute_only", "nw4-pin0"]
    assert sorted(found[1]) == sorted(found[3]) == sorted(found[4])
    assert len({tuple(found[number]) for number in (1, 3, 4)}) > 1
    assert not any(name.startswith("host_batch") for name in found[1])


def test_compute_only_has_rounds_of_its_own_early_and_at_the_end_then_come_windows():
    run = simulate()
    found = rounds(run)
    first, *ceilings = [number for number, trials in found.items() if "compute_only" in trials]
    assert first == 2, "the search has no other ceiling of the step"
    assert 2 <= len(ceilings) <= 5
    assert ceilings == sorted(found)[-len(ceilings) :]
    assert all(sorted(found[number]) == ["compute_only", "nw4-pin0"] for number in ceilings)
    profiled = windows(run)
    assert profiled[0] == "nw4-pin0"
    assert set(profiled) == {name for trials in found.values() for name in trials if name.startswith("nw")}
    assert len(profiled) == len(set(profiled))


def test_with_an_accelerator_a_scout_reads_the_threads_that_blocks_then_get():
    run = simulate(GPU)
    assert launches(run)[:3] == [("discover", "live"), ("scout", "fresh"), ("round", "live")]
    journal = Journal(run.records)
    scout = journal.launches[1].order
    assert (scout.treatment.id, scout.blocks) == ("nw4-pin1-nb0", [])
    threads = {order.trial: order.intraop_threads for order in journal.launches[2].block_orders}
    assert threads["nw4-pin0-nb0"] == threads["nw0-pin1-nb1"] == threads["host_batch-pin1-nb1"] == 8
    assert threads["nw4-pin1-nb1"] == threads["loader_only-nw4-pin1"] == 1


def test_a_scout_has_the_opposite_kind_of_pinning():
    journal = Journal(simulate(GPU, baseline={"pin_memory": True}).records)
    assert journal.launches[1].treatment.id == "nw4-pin0-nb0"
    blocks = journal.launches[2].block_orders
    replays = {order.intraop_threads for order in blocks if order.treatment.ablation in ("compute_only", "host_batch")}
    assert replays == {1}, "a replay keeps what the script has, so that it takes away one thing"


def test_without_a_pin_thread_anywhere_there_is_no_scout():
    run = simulate(GPU, baseline={"num_workers": 0, "prefetch_factor": None}, sweep=False)
    assert launches(run) == [("discover", "live")]


def test_ablations_and_tweaks_of_a_gpu_script():
    journal = Journal(simulate(GPU, baseline={"pin_memory": True}).records)
    beside = {name for name, made in journal.treatments.items() if made.kind != "configuration"}
    assert beside == {
        "compute_only",
        "loader_only-nw4-pin0",
        "loader_only-nw4-pin1",
        "host_batch-pin0-nb0",
        "host_batch-pin1-nb0",
        "host_batch-pin1-nb1",
        "nw4-pin1-nb0+intraop_threads",
        "nw4-pin1-nb0+lazy_sync",
        "nw4-pin0-nb0+lazy_sync",  # beside the configuration that is faster: 2 x 2
    }
    assert journal.treatments["nw4-pin1-nb0+intraop_threads"].changes == {"intraop_threads": 8}
    assert journal.treatments["nw4-pin1-nb0+lazy_sync"].changes == {"lazy_sync": True}
    assert journal.treatments["nw4-pin0-nb0+lazy_sync"].changes == {"pin_memory": False, "lazy_sync": True}


def test_threads_are_given_back_to_the_best_pinned_treatment_where_the_script_pins_nothing():
    run = simulate(GPU)
    tweaked = [name for name in Journal(run.records).treatments if "+intraop" in name]
    assert len(tweaked) == 1
    assert tweaked[0].startswith("nw")
    assert "-pin1-" in tweaked[0]
    assert tweaked[0] not in rounds(run)[1]


def test_where_a_pin_thread_takes_nothing_nothing_is_given_back():
    names = Journal(simulate(Pipeline(threads=1), baseline={"pin_memory": True}).records).treatments
    assert not any("intraop" in name for name in names)


def test_ablations_leave_once_they_are_known_well():
    run = simulate(GPU, budget_s=600)
    last = max(number for number, trials in rounds(run).items() if "loader_only-nw4-pin0" in trials)
    assert last == 3


def test_steps_are_reckoned_from_the_treatments_own_blocks():
    run = simulate()
    blocks = {}
    for order, made, launch in run.blocks:
        assert launch == 1, "nothing is verified"
        blocks.setdefault(made.id, []).append(order.steps)
    assert all(steps[0] is None for steps in blocks.values())
    assert all(None not in steps[1:] for steps in blocks.values())
    pace = {name: run.pipeline.step_s(made) for _, made, _ in run.blocks for name in [made.id]}
    for name, steps in blocks.items():
        assert all(1.4 <= number * pace[name] <= 1.6 for number in steps[1:] if number > 64)


def test_no_block_is_shorter_than_two_queues():
    run = simulate(Pipeline(fetch_s=0.4, compute_s=0.05, accelerator=None), grid="num_workers=8 prefetch_factor=4")
    assert min(order.steps for order, made, _ in run.blocks if made.id == "nw8-pin0-pf4" and order.steps) == 64


def test_persistent_workers_show_in_no_block_so_only_a_grid_asks_for_them():
    assert not any("-pw" in name for name in Journal(simulate().records).treatments)
    asked = Journal(simulate(grid="persistent_workers=on,off").records)
    assert "nw4-pin0-pw" in asked.treatments


def test_the_leader_is_verified_in_fresh_launches():
    run = simulate(baseline={"num_workers": 1})
    verified = [launch for launch in Journal(run.records).launches if launch.purpose == "verify"]
    assert len(verified) >= 8
    assert {launch.isolation for launch in verified} == {"fresh"}
    assert [launch.treatment.id for launch in verified[:4]] == ["nw1-pin0", "nw4-pin0", "nw4-pin0", "nw1-pin0"]


def test_without_sweep_a_minute_tells_where_the_time_goes():
    run = simulate(GPU, sweep=False, noise=Noise(block=0.2))
    found = rounds(run)
    assert 50 <= run.spent_s <= 62
    assert {name for trials in found.values() for name in trials} >= {"baseline", "host_batch-pin1-nb1", "compute_only"}
    assert len([trials for trials in found.values() if "nw4-pin0-nb0" in trials]) >= 6
    assert not any(made.kind == "configuration" and made.changes for made in Journal(run.records).treatments.values())


# ------------------------------------------------------------------------------------------------- what goes wrong


def test_what_the_machine_cannot_hold_is_asked_for_once():
    run = simulate(troubles=Troubles(no_room=frozenset({"nw8-pin0"})))
    refused = [record for record in run.records if isinstance(record, TreatmentRefused)]
    assert [record.trial for record in refused] == ["nw8-pin0"]
    assert launches(run) == [("discover", "live")]


@pytest.mark.parametrize(("reason", "tries"), [("killed: out of memory", 1), ("exit status 1", 2)])
def test_a_treatment_that_kills_its_launch_is_given_up_and_the_round_goes_on(reason, tries):
    run = simulate(troubles=Troubles(dies={"nw8-pin0": reason}))
    found = rounds(run)
    assert sum(trials.count("nw8-pin0") for trials in found.values()) == tries
    assert launches(run) == [("discover", "live"), *[("round", "live")] * tries]
    assert found[1].count("nw4-pin0") == 2
    assert found[1].count("nw8-pin0") == 1
    assert set(found[1]) == set(found[3]) | {"nw8-pin0"}


def test_a_hanging_treatment_is_tried_once():
    found = rounds(simulate(troubles=Troubles(hangs=frozenset({"nw8-pin0"}))))
    assert sum(trials.count("nw8-pin0") for trials in found.values()) == 1


def test_a_script_that_is_over_early_is_started_again_for_the_turns_left():
    run = simulate(troubles=Troubles(steps=1000))
    assert len([launch for launch in launches(run) if launch == ("round", "live")]) > 3
    counted = Journal(run.records).rates("round", "discover", isolation="live")
    first = [rate.trial for rate in counted if rate.round == 1]
    assert first.count("nw4-pin0") == 2
    assert len(first) == len(set(first)) + 1
    assert windows(run)


def test_windows_get_a_launch_of_their_own_where_the_script_ended_before_them():
    run = simulate(rounds=1, grid="num_workers=2")
    told = [place for place, record in enumerate(run.records) if isinstance(record, BlocksOrdered)]
    before = run.records[: next(place for place in told if run.records[place].next.windows)]
    ended = msgspec.structs.replace(run.records[-1], t_ns=before[-1].t_ns, seconds=20.0)
    order = next_order(run.spec, [*before, ended])
    assert [block.trial for block in order.blocks] == ["nw4-pin0"]
    assert not order.planned
    again = [LaunchBegan(launch=2, t_ns=before[-1].t_ns, pid=2, order=order), msgspec.structs.replace(ended, launch=2)]
    assert next_order(run.spec, [*before, ended, *again]) is None


def test_a_script_that_fails_past_its_natural_end_gets_its_own_epochs():
    run = simulate(troubles=Troubles(fails_past_end=True))
    orders = [launch.order for launch in Journal(run.records).launches]
    assert [order.natural_epochs for order in orders] == [False, True]
    assert rounds(run)[1]


@pytest.mark.parametrize("seed", range(8))
def test_where_live_launches_give_nothing_everything_runs_fresh(seed):
    run = simulate(troubles=Troubles(live_fails=True), noise=Noise(block=0.01), seed=seed)
    kinds = [isolation for _, isolation in launches(run)]
    assert 2 <= kinds.count("live") <= 3
    assert kinds == sorted(kinds, reverse=True)
    fresh = rounds(run, "fresh")
    assert min(fresh) > max(rounds(run))
    assert len(fresh) >= 3
    assert all(trials.count("nw4-pin0") == 2 for trials in fresh.values())


def test_what_fits_into_no_launch_of_a_short_script_is_given_up():
    slow = Pipeline(fetch_s=0.4, compute_s=0.05, accelerator=None)
    run = simulate(slow, troubles=Troubles(steps=80), grid="num_workers=4,8 prefetch_factor=2,4", rounds=3)
    tries = [made.id for _, made, _ in run.blocks].count("nw8-pin0-pf4")
    assert 2 <= tries <= 4
    assert {"nw4-pin0-pf4", "nw8-pin0"} <= {rate.trial for rate in Journal(run.records).rates("round")}


def test_a_script_that_fails_by_itself_is_started_once():
    run = simulate(troubles=Troubles(dies={"nw4-pin0": "ValueError: no"}))
    assert launches(run) == [("discover", "live")]


# ------------------------------------------------------------------------------------------------- what runs fresh


def test_without_workers_runs_fresh_once_its_dataset_has_changed():
    run = simulate(troubles=Troubles(dataset_changes=True))
    live, fresh = rounds(run), rounds(run, "fresh")
    assert sum(trials.count("nw0-pin0") for trials in live.values()) == 1
    assert {name for trials in fresh.values() for name in trials} == {"nw0-pin0", "nw4-pin0"}
    assert all(trials.count("nw4-pin0") == 2 for trials in fresh.values())
    assert not set(live) & set(fresh)
    assert launches(run)[:2] == [("discover", "live"), ("round", "live")]


def test_a_baseline_without_workers_whose_dataset_changes_is_compared_fresh_only():
    run = simulate(troubles=Troubles(dataset_changes=True), baseline={"num_workers": 0, "prefetch_factor": None})
    assert rounds(run) == {0: ["baseline"]}
    assert len(rounds(run, "fresh")) >= 3


def test_another_batch_size_runs_fresh_beside_the_live_race():
    run = simulate(grid="num_workers=2,4 batch_size=64,128", budget_s=400)
    live = {name for trials in rounds(run).values() for name in trials}
    fresh = {name for trials in rounds(run, "fresh").values() for name in trials}
    assert "nw2-pin0" in live
    assert fresh == {"nw4-pin0", "nw2-pin0-bs128", "nw4-pin0-bs128"}


def test_a_loader_with_an_iteration_of_its_own_is_changed_in_fresh_launches():
    run = simulate(troubles=Troubles(own_iteration=True))
    journal = Journal(run.records)
    live = {journal.trial(block.trial) for block in journal.blocks("discover", "round", isolation="live")}
    assert live == {"nw4-pin0", "compute_only"}
    assert len(rounds(run, "fresh")) >= 3


def test_contenders_run_fresh_where_the_process_drifts():
    run = simulate(noise=Noise(block=0.002, trend=60.0), budget_s=600, baseline={"num_workers": 1})
    assert drifts(Journal(run.records))
    fresh = rounds(run, "fresh")
    assert max(number for number, trials in rounds(run).items() if "nw4-pin0" in trials) < 6
    assert "nw4-pin0" in fresh[min(fresh)]
    assert 2 <= len(set(fresh[min(fresh)])) <= 4


def test_fresh_alone_never_runs_a_live_launch():
    assert {isolation for _, isolation in launches(simulate(fresh=True, budget_s=100))} == {"fresh"}


# ---------------------------------------------------------------------------------------------- when time is short


def test_what_had_no_time_is_named():
    run = simulate(GPU, budget_s=40)
    journal = Journal(run.records)
    assert journal.skipped
    assert not journal.skipped.keys() & {name for trials in rounds(run).values() for name in trials}
    said = ("40 s", "predicted", "ended before")
    assert all(any(words in reason for words in said) for reason in journal.skipped.values())


@pytest.mark.parametrize("verify", [True, False])
def test_what_runs_fresh_has_its_share(verify):
    noisy = Noise(block=0.15)
    run = simulate(
        grid="num_workers=0,2", budget_s=80, noise=noisy, troubles=Troubles(dataset_changes=True), verify=verify
    )
    assert len(rounds(run, "fresh")) >= 3
    assert len([trials for trials in rounds(run).values() if "nw2-pin0" in trials]) >= 3


def test_what_runs_fresh_leaves_the_verification_its_share():
    changes = Troubles(dataset_changes=True)
    run = simulate(troubles=changes, baseline={"num_workers": 1}, grid="num_workers=0,1,4", budget_s=45, rounds=4)
    assert launches(run).count(("verify", "fresh")) == 8


def test_the_first_round_is_cut_where_blocks_are_dearer_than_the_first_one_promised():
    asked = {"grid": "num_workers=0,1,2,4,6,8 prefetch_factor=2,4", "budget_s": 60}
    run = simulate(Pipeline(fetch_s=0.2, compute_s=0.002, accelerator=None), **asked)
    found = rounds(run)
    lineup = Journal(run.records).launches[0].orders[1]
    planned = {made.id for made in lineup.planned} - lineup.skipped.keys()
    assert 6 <= len(set(found[1])) < len(planned)
    assert found[1].count("nw4-pin0") == 2
    assert len(found) > 3


def test_without_a_synchronising_call_a_step_none_is_made_lazy():
    for calls, tweaked in ((0.5, False), (1.0, True)):
        run = simulate(dataclasses.replace(GPU, syncs_per_step=calls))
        assert any("lazy_sync" in name for name in Journal(run.records).treatments) is tweaked


def test_what_cannot_win_is_predicted_instead_of_run():
    slow_copies = Pipeline(fetch_s=0.001, compute_s=0.002, pageable_s=0.02, pinned_s=0.001, gil_share=0.0)
    run = simulate(slow_copies, budget_s=110, baseline={"pin_memory": True, "non_blocking": True})
    journal = Journal(run.records)
    left_out = journal.predicted.keys() & journal.skipped.keys()
    assert len(left_out) > 5
    baseline_rate = 64 / run.pipeline.step_s(journal.treatments[run.baseline.id])
    for name in left_out:
        true, most = 64 / run.pipeline.step_s(journal.treatments[name]), journal.predicted[name]
        assert true <= most * 1.3
        assert most < baseline_rate * 1.05
        assert journal.skipped[name].startswith(f"not run: predicted at most {most:.0f} samples/s, because ")


# ---------------------------------------------------------------------------------------------------- beside all that


def test_the_seed_decides_the_order():
    first, same, other = (rounds(simulate(seed=seed)) for seed in (1, 1, 2))
    assert first == same
    assert first[1] != other[1]
    assert sorted(first[1]) == sorted(other[1])


def test_a_cut_run_goes_on_where_it_stopped():
    run = simulate()
    cut = next(place for place, record in enumerate(run.records) if place > 30 and record.t_ns > run.records[30].t_ns)
    order = next_order(run.spec, run.records[:cut])
    assert (order.purpose, order.isolation) == ("round", "live")
    done = [block.block for block, _, _ in run.blocks if block.block < order.blocks[0].block]
    assert done


def test_progress_runs_towards_its_total():
    run = simulate(baseline={"num_workers": 1})
    ends = [place for place, record in enumerate(run.records) if isinstance(record, FirstStep | LaunchEnded)]
    seen = [remaining(run.spec, run.records[:place]) for place in [*ends, len(run.records)]]
    assert all(left.done <= left.total for left in seen)
    assert seen[-1].done == seen[-1].total == len(run.blocks)
    assert leading(run.spec, run.records)[1] > 3


def test_a_launch_whose_windows_were_ordered_has_nothing_more_to_do():
    run = simulate()
    told = next_blocks(run.spec, run.records)
    assert (told.blocks, told.windows) == ([], [])
