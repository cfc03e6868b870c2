"""Ceilings that bound what configurations reach, and those that something disturbed."""

import msgspec
import pytest
from simulated_script import Noise, Pipeline
from simulator import Simulation, loader, sweep_spec

from pindiag.journal import Journal
from pindiag.model import Block
from pindiag.plan.known import Known
from pindiag.plan.prediction import Prediction
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import treatment

READY = "training on batches that are ready is no faster"


@pytest.fixture(scope="module")
def run():
    """A step of 6 ms that one worker nearly keeps up with."""
    pipeline = Pipeline(fetch_s=0.007, compute_s=0.006, accelerator=None)
    return Simulation(sweep_spec(), loader(num_workers=1), pipeline, Noise(block=0.002), seed=3).run()


def reasons(run, slower=1.0):
    """All that bounds a step with more workers, where the blocks of the step alone took so many times as long."""
    changed = [
        msgspec.structs.replace(record, seconds=record.seconds * slower)
        if isinstance(record, Block) and record.trial == "compute_only"
        else record
        for record in run.records
    ]
    known = Known(run.spec, Journal(changed))
    prediction = Prediction(known, Threads(known.journal))
    return {bound.because for bound in prediction._step(treatment(run.baseline, {"num_workers": 16}))}


@pytest.mark.parametrize("slower", [1.0, 0.5])
def test_the_step_alone_bounds_what_more_workers_bring(run, slower):
    assert READY in reasons(run, slower)


def test_a_ceiling_below_what_training_reached_was_disturbed_and_bounds_nothing(run):
    assert READY not in reasons(run, slower=3.0)
    assert reasons(run, slower=3.0), "others still do"
