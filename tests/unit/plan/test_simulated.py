"""Whole live sweeps on a fake clock, over pipelines, noise and troubles that the plan does not model."""

import random
from collections import Counter, defaultdict

import pytest
from simulated_script import BATCH, Noise, Pipeline, Troubles
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import Block, LaunchBegan, TreatmentRefused
from pindiag.plan.grid import default_treatments
from pindiag.plan.known import Known
from pindiag.plan.prediction import Prediction
from pindiag.plan.threads import Threads
from pindiag.race import recommended

SEEDS = range(240)
GRIDS = [
    None,
    None,
    None,
    "num_workers=0,2,8",
    "num_workers=2,4 batch_size=64,128",
    "num_workers=4 persistent_workers=on",
]


def scenario(seed: int, *, quiet: bool = False) -> Simulation:
    """A random run; a quiet one has noise, but no troubles and the default budget."""
    draw = random.Random(seed)
    accelerator = draw.choice([None, "cuda", "cuda", "mps"])
    baseline = loader(
        num_workers=draw.choice([0, 1, 4, 4]),
        prefetch_factor=draw.choice([None, 2, 4]),
        pin_memory=draw.random() < 0.4,
        non_blocking=draw.choice([True, False, "mixed"]) if accelerator else None,
    )
    pipeline = Pipeline(
        fetch_s=10 ** draw.uniform(-3.5, -1),
        hand_off_s=10 ** draw.uniform(-4, -2.5),
        compute_s=10 ** draw.uniform(-3.5, -1.3),
        host_s=draw.choice([0.0, 10 ** draw.uniform(-4, -2)]),
        pageable_s=10 ** draw.uniform(-4, -2),
        pinned_s=10 ** draw.uniform(-4.5, -2.5),
        pin_s=10 ** draw.uniform(-4, -2),
        gil_share=draw.uniform(0, 0.6),
        threads=draw.choice([1, 4, 8]),
        cpus=draw.choice([2, 4, 8]),
        accelerator=accelerator,
    )
    noise = Noise(
        block=draw.uniform(0.003, 0.05),
        outliers=draw.choice([0.0, 0.05]),
        tail=draw.choice([0.0, 0.02]),
        launch=draw.uniform(0, 0.02),
        drift=draw.choice([0.0, 0.02]),
        trend=draw.choice([0.0, 0.0, 1.0, 4.0]),
        warm_up=draw.choice([0.0, 0.3]),
    )
    asked = {"seed": seed, "usable_cpus": pipeline.cpus}
    if not quiet:
        asked |= {
            "budget_s": 10 ** draw.uniform(0.3, 3),
            "rounds": draw.randint(1, 8),
            "sweep": draw.random() < 0.85,
            "verify": draw.random() < 0.85,
            "grid": draw.choice(GRIDS),
        }
    ids = [made.id for made in default_treatments(baseline, pipeline.cpus, accelerator, live=True)]
    ids += [
        "compute_only",
        "host_batch-pin1-nb1",
        f"loader_only-nw{baseline.num_workers}-pin0",
        f"{baseline.id}+lazy_sync",
    ]
    return Simulation(
        sweep_spec(**asked),
        baseline,
        pipeline,
        noise,
        Troubles() if quiet else troubles(draw, ids),
        seed=seed,
        start_s=draw.uniform(0.5, 20),
        switch_s=draw.uniform(0.1, 1.0),
    )


def troubles(draw: random.Random, ids: list[str]) -> Troubles:
    """Most runs have one or two."""

    def some(share: float, most: int = 2) -> list[str]:
        return draw.sample(ids, draw.randint(1, most)) if draw.random() < share else []

    return Troubles(
        dies={
            name: draw.choice(["exit status 1", "killed: out of memory", "/dev/shm is full"]) for name in some(0.4, 3)
        },
        hangs=frozenset(some(0.2)),
        no_room=frozenset(some(0.3)),
        throttles=frozenset(some(0.2)),
        dataset_changes=draw.random() < 0.2,
        own_iteration=draw.random() < 0.15,
        steps=draw.choice([1 << 40] * 5 + [300, 1500, 5000]),
        fails_past_end=draw.random() < 0.15,
        live_fails=draw.random() < 0.08,
    )


@pytest.fixture(scope="module")
def runs():
    return [scenario(seed).run() for seed in SEEDS]


def test_block_numbers_are_never_repeated(runs):
    for run in runs:
        numbers = [block.block for block, _, _ in run.blocks]
        assert numbers == sorted(set(numbers))


def test_no_run_exceeds_its_budget_by_more_than_its_dearest_launch_or_block(runs):
    for run in runs:
        assert run.spent_s <= run.spec.budget_s + run.dearest_s


def test_what_is_given_up_is_not_ordered_again(runs):
    for run in (run for run in runs if not run.troubles.live_fails):
        tries = Counter(made.id for _, made, _ in run.blocks)
        refusals = Counter(record.trial for record in run.records if isinstance(record, TreatmentRefused))
        launches = Counter(
            record.order.treatment.id
            for record in run.records
            if isinstance(record, LaunchBegan)
            and record.order.purpose != "scout"
            and record.order.treatment is not None
        )
        hanging = run.troubles.hangs - run.troubles.no_room - run.troubles.dies.keys()
        for trial in run.troubles.no_room:
            assert refusals[trial] + launches[trial] <= 1
        for trial, reason in run.troubles.dies.items():
            assert trial in run.troubles.no_room or tries[trial] <= (2 if reason == "exit status 1" else 1)
        assert all(tries[trial] <= 1 for trial in hanging)


def test_a_round_is_wholly_live_or_wholly_fresh(runs):
    for run in runs:
        kinds = defaultdict(set)
        for launch in Journal(run.records).launches:
            if launch.purpose == "round":
                for order in launch.block_orders:
                    kinds[order.round].add(launch.isolation)
        assert all(len(found) == 1 for found in kinds.values())


def test_what_cannot_be_swapped_runs_fresh(runs):
    unswappable = [run for run in runs if run.troubles.own_iteration and run.spec.sweep]
    for run in unswappable:
        journal = Journal(run.records)
        live = [block.trial for block in journal.blocks("discover", "round", isolation="live")]
        changed = {
            name for name, made in journal.treatments.items() if {"num_workers", "pin_memory"} & made.changes.keys()
        }
        assert not changed & {name for name in live if journal.treatments[journal.trial(name)].ablation != "host_batch"}
    assert any(Journal(run.records).rates("round", isolation="fresh") for run in unswappable)


def test_no_block_counts_after_a_dataset_has_changed(runs):
    for run in runs:
        journal = Journal(run.records)
        if run.troubles.dataset_changes and journal.baseline is not None and journal.baseline.num_workers > 0:
            live = journal.blocks("discover", "round", isolation="live")
            without = [
                block for block in live if journal.treatments[journal.trial(block.trial)].configuration.num_workers == 0
            ]
            assert len(without) <= 1


def test_scripts_that_end_early_are_started_again(runs):
    short = [run for run in runs if run.troubles.steps < 1 << 40]
    assert any(
        sum(launch.isolation == "live" and launch.measured for launch in Journal(r.records).launches) > 3 for r in short
    )


def test_every_block_long_enough_to_count(runs):
    for run in runs:
        blocks = [record for record in run.records if isinstance(record, Block) and record.status == "counted"]
        ended_early = run.troubles.steps < 1 << 40
        assert ended_early or all(block.seconds > 0.7 for block in blocks)


def test_the_leader_is_nearly_the_best():
    """Without troubles, but with noise, outliers, drift and warm-up: nine sweeps of ten lose less than 5 %."""
    lost = []
    for seed in range(60):
        run = scenario(seed, quiet=True).run()
        journal = Journal(run.records)
        best = min(run.pipeline.step_s(made) for made in journal.treatments.values() if made.kind == "configuration")
        leader = journal.treatments[recommended(journal)]
        lost.append(run.pipeline.step_s(leader) / best - 1)
    assert sum(regret < 0.05 for regret in lost) >= 0.9 * len(lost)


def test_the_race_goes_on_after_a_death(runs):
    died = 0
    for run in runs:
        others = run.troubles.dies.keys() - {run.baseline.id}
        fatal = [number for number, (_, made, _) in enumerate(run.blocks) if made.id in others]
        roomy = run.spec.budget_s > 100 and run.spec.rounds >= 3 and not run.troubles.live_fails
        if fatal and roomy and run.baseline.id not in run.troubles.dies.keys() | run.troubles.hangs:
            died += 1
            assert any(made.id not in others for _, made, _ in run.blocks[fatal[0] + 1 :])
    assert died > 5


def test_no_prediction_is_less_than_the_truth():
    """Where noise is small: what is predicted at most, a configuration does not exceed."""
    checked = 0
    for seed in range(40):
        run = scenario(seed, quiet=True)
        run.noise = Noise(block=0.002)
        known = Known(run.spec, Journal(run.run().records))
        prediction = Prediction(known, Threads(known.journal))
        for made in (*known.wanted, *known.journal.treatments.values()):
            most = prediction.cannot_win(made) if made.competes else None
            if most is not None:
                checked += 1
                assert BATCH / run.pipeline.step_s(made) < 1.15 * most.ratio * prediction.baseline_rate
    assert checked > 20
