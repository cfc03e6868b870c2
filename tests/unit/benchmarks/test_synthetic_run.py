"""The synthetic run is what a sweep leaves behind: every line decodes, every configuration has its rounds."""

from __future__ import annotations

from collections import Counter

import pytest
import synthetic_pipeline
import synthetic_run

from pindiag.journal import Journal
from pindiag.race import race_rates
from pindiag.store import RunDirectory, read_trace


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return synthetic_run.write_run(
        tmp_path_factory.mktemp("synthetic") / "run", configurations=4, rounds=3, pairs=2, trace_kernels=3
    )


@pytest.fixture(scope="module")
def journal(run) -> Journal:
    return Journal(run.records())


def test_every_line_decodes(run):
    lines = sum(path.read_bytes().count(b"\n") for path in run.journal.glob("*.jsonl"))
    assert len(run.records()) == lines > 0


def test_the_largest_sweep_has_24_distinct_configurations():
    assert len({configuration.id for configuration in synthetic_pipeline.grid(24)}) == 24


def test_every_round_has_the_baseline_twice_and_the_others_once(journal):
    for turn in (1, 2, 3):
        counted = Counter(rate.trial for rate in race_rates(journal) if rate.round == turn)
        assert counted.pop(journal.baseline_id) == 2
        assert list(counted.values()) == [1, 1, 1]


def test_verification_alternates(journal):
    pairs = [launch.treatment.id == journal.baseline_id for launch in journal.launches if launch.purpose == "verify"]
    assert pairs == [True, False, False, True]


def test_stages_fit_into_the_block(journal):
    for block in journal.blocks("discover", "round", "verify"):
        stages_ms = block.wait_ms + block.transfer_ms + block.synchronise_ms + block.optimizer_ms
        assert stages_ms < 1000 * block.seconds
        assert sum(block.step_ms) == pytest.approx(1000 * block.seconds)


def test_each_configuration_has_a_trace_that_can_be_read(run, journal):
    traces = list(run.traces.iterdir())
    assert len(traces) == 4
    assert all(any(event.cat == "gpu_memcpy" for event in read_trace(trace)) for trace in traces)


def test_worker_batches_lie_in_rings(run, journal):
    workers = {batch.launch for batch in run.worker_batches()}
    assert workers == {
        launch.id
        for launch in journal.launches
        if (launch.treatment.configuration if launch.treatment else journal.baseline).num_workers
    }
