"""What a search tries, what it leaves out and why, and what random simulated pipelines lose by it."""

from collections import Counter

import pytest
from simulated_regret import FIRST_SEED, WELL, outcome, sweep
from simulated_script import BATCH, Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.plan.grid import most_telling, whole_grid
from pindiag.plan.search import MOST_TRIED

PIPELINES = 160


def simulate(pipeline, *, spec=None, **baseline):
    made = loader(**({"non_blocking": False} if pipeline.accelerator else {}) | baseline)
    asked = {"usable_cpus": pipeline.cpus} | (spec or {})
    return Simulation(sweep_spec(**asked), made, pipeline, Noise(block=0.002), seed=5).run()


def ran(run):
    """Configurations by how many of their live blocks counted, the script as written apart."""
    journal = Journal(run.records)
    names = (journal.trial(block.trial) for block in journal.blocks("discover", "round"))
    return Counter(name for name in names if journal.treatments[name].competes and name != journal.baseline_id)


def rate(run, name):
    return BATCH / run.pipeline.step_s(Journal(run.records).treatments[name])


@pytest.fixture(scope="module")
def outcomes():
    return [outcome(sweep(seed)) for seed in range(FIRST_SEED, FIRST_SEED + PIPELINES)]


def test_little_is_lost_in_random_pipelines(outcomes):
    assert sum(each.regret <= WELL for each in outcomes) >= 0.94 * PIPELINES


def test_few_configurations_are_tried(outcomes):
    tried = sorted(each.tried for each in outcomes)
    assert tried[PIPELINES // 2] <= 5
    assert tried[-1] <= 1 + MOST_TRIED


@pytest.mark.parametrize("budget_s", [120.0, 300.0, 1800.0])
def test_the_budget_is_kept(budget_s):
    runs = [sweep(seed, budget_s=budget_s) for seed in range(8)]
    assert all(run.spent_s <= 1.2 * budget_s for run in runs)


def test_workers_beyond_the_cpus_where_they_wait_for_storage_only():
    slow_store = {"fetch_s": 0.4, "compute_s": 0.02, "accelerator": None, "cpus": 4}
    waiting, working = (simulate(Pipeline(**slow_store, latency=share), num_workers=2) for share in (0.98, 0.0))
    assert "nw8-pin0" in ran(waiting)
    assert not any(name.startswith("nw8") for name in ran(working))
    assert "on the CPUs that there are" in Journal(working.records).skipped["nw8-pin0"]


def test_nothing_more_is_searched_at_the_ceiling_of_the_step():
    run = simulate(Pipeline(fetch_s=0.001, compute_s=0.03, hand_off_s=0.0001, accelerator=None), num_workers=2)
    assert set(ran(run)) == {made.id for made in most_telling(run.baseline, 8, None)}
    assert max(ran(run).values()) <= 6


def test_a_pin_thread_that_takes_too_long_bounds_all_numbers_of_workers():
    slow_pinning = Pipeline(
        fetch_s=0.002, compute_s=0.001, pin_s=0.01, pinned_s=0.0002, pageable_s=0.0004, gil_share=0.0
    )
    run = simulate(slow_pinning, pin_memory=True)
    assert not any("-pin1-" in name for name in ran(run) if name.split("-")[0] not in ("nw4", "nw0"))
    reasons = [why for name, why in Journal(run.records).skipped.items() if name.startswith("nw8-pin1")]
    assert reasons
    assert all("pin thread" in why for why in reasons)


def test_all_that_was_not_run_is_named_with_what_it_reaches_at_most():
    run = simulate(Pipeline(accelerator="cuda"))
    journal = Journal(run.records)
    grid = {made.id for made in whole_grid(run.baseline, 8, "cuda")}
    assert journal.skipped.keys() == grid - ran(run).keys()
    for name, why in journal.skipped.items():
        assert why.startswith(f"not run: predicted at most {journal.predicted[name]:.0f} samples/s, because ")
        assert rate(run, name) <= 1.1 * journal.predicted[name]


def test_what_joined_later_was_predicted_before_it_ran():
    run = simulate(Pipeline(fetch_s=0.05, compute_s=0.002, accelerator=None), num_workers=1)
    journal = Journal(run.records)
    joined = ran(run).keys() - {made.id for made in most_telling(run.baseline, 8, None)}
    assert joined
    assert joined <= journal.predicted.keys()
    assert not joined & journal.skipped.keys()
    told = [order for launch in journal.launches for order in launch.orders]
    for name in joined:
        first = next(
            order for order in told if any(made.id == name for made in order.planned) and name not in order.skipped
        )
        assert name in first.predicted


def test_the_race_ends_when_its_leader_is_decided():
    clear = simulate(Pipeline(fetch_s=0.05, compute_s=0.004, accelerator=None), num_workers=0, prefetch_factor=None)
    assert max(ran(clear).values()) < 6
    assert clear.spent_s < 0.6 * clear.spec.budget_s


@pytest.mark.parametrize("accelerator", [None, "cuda"])
def test_an_exhaustive_sweep_leaves_no_configuration_out(accelerator):
    run = simulate(Pipeline(accelerator=accelerator), spec={"exhaustive": True, "budget_s": 600.0})
    assert ran(run).keys() == {made.id for made in whole_grid(run.baseline, 8, accelerator)}
    assert not Journal(run.records).skipped
