"""The report of a full sweep is made from the records alone, in processes that never see torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import synthetic_pipeline
import synthetic_run

from pindiag.store import RunDirectory

pytestmark = pytest.mark.integration

REPORT = """
import sys
sys.modules["torch"] = None
from pindiag.cli import main
sys.argv = ["pindiag", "report", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.fixture(scope="module", params=[synthetic_run.write_run, synthetic_run.write_live_run])
def run(request, tmp_path_factory) -> RunDirectory:
    run = request.param(tmp_path_factory.mktemp("synthetic") / "run")
    command = [sys.executable, "-c", REPORT, str(run.path), "-q"]
    done = subprocess.run(command, cwd=run.path.parent, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return run


def test_the_page_stays_below_two_megabytes(run):
    assert 0 < run.report_html.stat().st_size < 2_000_000


def test_every_configuration_is_measured(run):
    report = run.read_report()
    measured = [trial for trial in report.trials if trial.status == "measured" and trial.kind == "configuration"]
    assert {trial.id for trial in measured} == {configuration.id for configuration in synthetic_pipeline.grid(12)}
    assert all(trial.gpu is not None and trial.profiler.trace for trial in measured)


def test_the_verdict_is_what_the_pipeline_was_made_of(run):
    """Copies from pageable memory cost most, what the main thread does for each worker's batch hardly less."""
    report = run.read_report()
    fastest = min(synthetic_pipeline.grid(12), key=lambda each: synthetic_pipeline.Costs.of(each).period)
    confirmed = {finding.cause for finding in report.findings if finding.status == "confirmed"}
    assert report.verdict.primary_cause == "pageable_copy"
    assert report.verdict.confidence == "confirmed"
    assert confirmed >= {"pageable_copy", "worker_ipc_bound"}
    assert report.recommendation.trial == fastest.id
    assert report.recommendation.firmness == "verified"
    assert report.verification.pairs == 4
