"""Claims are counted as DESIGN.md defines them, and intervals hold what they promise."""

from __future__ import annotations

import math
import random

import aa
import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag import race
from pindiag.journal import Journal
from pindiag.stats import Rate, compare


def test_a_gain_that_is_there_is_claimed():
    run = Simulation(sweep_spec(), loader(num_workers=1), Pipeline(accelerator=None), Noise(block=0.03)).run()
    claimed = race.claimed(Journal(run.records))
    assert claimed is not None
    assert "nw1-" not in claimed


def test_claims_are_counted_sweep_after_sweep(capsys):
    pipelines = [aa.Equal(accelerator=None), Pipeline(accelerator=None), aa.Equal(accelerator=None)]
    runs = [Simulation(sweep_spec(), loader(num_workers=1), each, Noise(block=0.03)).run() for each in pipelines]
    figures = {}
    kept = []

    def journals():
        for run in runs:
            kept.append(dict(figures))
            yield Journal(run.records)

    aa.count(journals(), figures)
    assert [each.get("sweeps", 0) for each in kept] == [0, 1, 2]
    assert (figures["sweeps"], figures["claims"]) == (3, 1)
    (claimed,) = figures["claimed"]
    assert claimed["sweep"] == 2
    assert claimed["ratio"] > claimed["ci95"][0] > 1
    assert "sweep 3: no claim; 1 in all" in capsys.readouterr().err


def test_equal_configurations_are_told_apart_by_chance_only():
    found = [aa.simulate(seed) for seed in range(40)]
    assert sum(one.claims for one in found) <= 1
    assert sum(one.true for one in found) >= 0.9 * sum(one.intervals for one in found) > 50


@pytest.mark.parametrize("rounds", [3, 4, 6, 10])
def test_intervals_hold_the_truth_as_often_as_they_say(rounds):
    """With a drift common to a round, 5 % noise and 5 % outliers: between 90 and 98 of 100."""
    draw = random.Random(rounds)
    truth = {f"t{number}": draw.uniform(0.5, 2.0) for number in range(8)}
    held = []
    for _ in range(250):
        rates = []
        for number in range(rounds):
            drift = draw.gauss(0, 0.3)
            for trial, value in [("b", 1.0), ("b", 1.0), *truth.items()]:
                outlier = math.log(draw.uniform(1.0, 1.5)) if draw.random() < 0.05 else 0.0
                rates.append(Rate(number, trial, value * math.exp(drift + draw.gauss(0, 0.05) - outlier)))
        means = compare(rates, "b")
        held += [means[name].ci95[0] <= value <= means[name].ci95[1] for name, value in truth.items()]
    assert 0.90 <= sum(held) / len(held) <= 0.98
