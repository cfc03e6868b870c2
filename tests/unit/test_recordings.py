"""Runs recorded on an H200: their reports are made again from the records; test_recomputed.py recomputes the figures.

tests/data/h200/README.md says when and how each was recorded.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest
from recordings import Recording, recordings

from pindiag.model import Block, Report, Window
from pindiag.report import redact_report
from pindiag.store import RunDirectory
from tests.recorded_runs import report_of, run_of
from tests.toml import read_toml

LARGE_BYTES = 10_000_000
RECORDED = {each.name: each for each in recordings() if each.archive.parent.name == "h200"}


@pytest.fixture(scope="module", params=RECORDED)
def recording(request: pytest.FixtureRequest) -> Recording:
    return RECORDED[request.param]


@pytest.fixture(scope="module")
def run(recording: Recording) -> RunDirectory:
    return run_of(recording)


@pytest.fixture(scope="module")
def recorded(run: RunDirectory) -> Report:
    return run.read_report()


@pytest.fixture(scope="module")
def made(recording: Recording) -> Report:
    return report_of(recording)


def test_something_is_recorded() -> None:
    fresh = {"article_floats", "augment_resnet", "healthy_compute", "tabular_rows"}
    others = {"live_encoder_on_cpu", "live_item_every_step", "live_many_small_layers", "search_article_floats"}
    assert fresh | {f"live_{name}" for name in fresh} | others <= set(RECORDED)


def figures(value: Any, path: str = "") -> dict[str, Any]:
    """All figures within a value by their path."""
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return {path: value}
    return {name: figure for key, each in value.items() for name, figure in figures(each, f"{path}.{key}").items()}


def test_figures_are_those_of_the_recording(run: RunDirectory, made: Report, recorded: Report) -> None:
    """Of those that there were then, but for a trial's words, the sampler and the workers' idle time.

    Which samples belong to a block is judged more strictly since, and idle is no longer what lies between two batches,
    but what rings of the second format say.
    """

    def content(report: dict[str, Any]) -> dict[str, Any]:
        trials = [
            {key: value for key, value in trial.items() if key not in ("reason", "sampler")}
            for trial in report["trials"]
        ]
        for trial in trials:
            (trial["worker_ms"] or {}).pop("idle", None)
        return figures([trials, report["verification"], report["noise_floor"]])

    shown = content(msgspec.json.decode(run.report_json.read_bytes()))
    shown_again = redact_report(made, run.read_spec(), show_paths=False)
    again = content(msgspec.to_builtins(shown_again))
    rounded = {path: pytest.approx(value) if isinstance(value, float) else value for path, value in shown.items()}
    assert {path: again.get(path, "left out") for path in shown} == rounded
    assert shown_again.verdict.headline == recorded.verdict.headline


def test_findings_are_those_of_the_recording(made: Report, recorded: Report) -> None:
    """Of the rules that there were then; among open ones behind the first, ranks may have changed since."""
    causes = {finding.cause for finding in recorded.findings}
    found = [(f.cause, f.status, f.severity) for f in made.findings if f.cause in causes]
    before = [(f.cause, f.status, f.severity) for f in recorded.findings]
    assert found[0] == before[0]
    assert dict.fromkeys(found) == dict.fromkeys(before)


def test_stages_add_up_to_the_step(run: RunDirectory, made: Report) -> None:
    for trial in made.trials:
        blocks = [r for r in run.records() if isinstance(r, Block) and r.block in trial.blocks]
        if not blocks:
            continue
        step_ms = 1e3 * sum(block.seconds for block in blocks) / sum(block.steps for block in blocks)
        stages = trial.stage_ms
        parts = (stages.wait, stages.transfer, stages.synchronise, stages.optimizer, stages.script, stages.pin)
        assert sum(part for part in parts if part is not None) == pytest.approx(step_ms, rel=0.02)


def test_windows_saw_the_gpu(run: RunDirectory, made: Report) -> None:
    seen = [trial.gpu for trial in made.trials if trial.gpu is not None and trial.gpu.kernel_ms is not None]
    exported = {r.trial for r in run.records() if isinstance(r, Window) and r.trace is not None}
    assert len(seen) == len(exported)
    for gpu in seen:
        assert gpu.kernel_ms is not None and gpu.kernel_ms > 0
        assert gpu.busy_share is not None and 0 < gpu.busy_share <= 1


def test_pinned_copies_are_told_from_pageable_ones(made: Report) -> None:
    unpinned = {fact.trial for fact in made.facts if fact.name == "batch_pinned" and fact.value is False}
    for trial in made.trials:
        if trial.gpu is None or not trial.gpu.copy_gb_per_s or made.loader is None:
            continue
        if trial.configuration.pin_memory and made.baseline in unpinned:
            continue  # a batch of a class of the script's own, which nothing pins
        if (made.loader.batch_bytes or 0) < LARGE_BYTES:
            continue  # a small copy is all latency
        pinned = (trial.gpu.pinned_bytes or 0) > (trial.gpu.pageable_bytes or 0)
        assert pinned is trial.configuration.pin_memory
        assert (trial.gpu.copy_gb_per_s > 25) is pinned


def test_the_truth_of_the_sample_holds(made: Report, run: RunDirectory) -> None:
    """No cause is confirmed that samples/truth.toml excludes."""
    truth = read_toml(Path(__file__).parents[2] / "samples" / "truth.toml")
    excluded = truth[run.path.name.removeprefix("live_").removeprefix("search_")]["cuda"]["never"]
    assert not [f.cause for f in made.findings if f.status == "confirmed" and f.cause in excluded]


@pytest.mark.parametrize("recording", ["live_encoder_on_cpu"], indirect=True)
def test_the_lost_threads_were_found_by_experiment(made: Report) -> None:
    (finding,) = [f for f in made.findings if f.cause == "intraop_threads_lost"]
    assert finding.status == "confirmed"
    assert made.verdict.primary_cause == "intraop_threads_lost"
    facts = {fact.name: fact.value for fact in made.facts if fact.trial is None}
    assert (facts["intraop_threads_pin_thread"], facts["intraop_threads_no_pin_thread"]) == (1, 16)
    tweak = finding.fixes[0].effect
    assert tweak is not None
    assert tweak.ci95 is not None
    assert tweak.ci95[0] > 1.9


@pytest.mark.parametrize("recording", ["live_article_floats"], indirect=True)
def test_live_and_fresh_side_by_side(made: Report) -> None:
    verified = made.verification
    assert verified is not None
    assert (verified.pairs, len(verified.launches)) == (4, 8)
    assert verified.ci95 is not None
    assert verified.live_ratio is not None
    assert verified.live_ci95 is not None
    overlap = verified.live_ci95[0] <= verified.ci95[1] and verified.ci95[0] <= verified.live_ci95[1]
    assert verified.agrees_with_live is overlap
    assert made.recommendation is not None
    assert made.recommendation.configuration.num_workers == 0
    assert made.recommendation.versus_baseline is not None
    assert made.recommendation.versus_baseline.ratio == verified.ratio


@pytest.mark.parametrize("recording", ["search_article_floats"], indirect=True)
def test_a_search_ran_few_configurations_and_its_choice_was_verified_over_whole_epochs(made: Report) -> None:
    configurations = [trial for trial in made.trials if trial.kind == "configuration"]
    assert sum(trial.status == "measured" for trial in configurations) <= 6
    assert all("not run: predicted at most" in (trial.reason or "") for trial in configurations if not trial.blocks)
    assert made.recommendation is not None
    assert made.recommendation.trial == "nw0-pin1-nb1"
    chosen = next(trial for trial in configurations if trial.id == "nw0-pin1-nb1")
    assert chosen.safety is not None
    assert chosen.safety.status == "passed"
    assert made.verification is not None
    assert made.verification.ci95 is not None
    assert (made.verification.pairs, made.verification.epochs) == (7, 5)
    assert all(launch.reason is None for launch in made.launches if launch.purpose == "verify"), "all went as planned"
    assert made.verification.ci95[0] > 1.2


def facts_of_the_baseline(made: Report) -> dict[str, Any]:
    return {fact.name: fact for fact in made.facts if fact.trial == made.baseline}


@pytest.mark.parametrize("recording", ["live_item_every_step"], indirect=True)
def test_values_read_in_each_step_are_named_with_their_line(made: Report) -> None:
    facts = facts_of_the_baseline(made)
    assert facts["syncs_per_step"].value == 2
    assert "item_every_step.py:50, item" in facts["sync_ms_per_step"].source


@pytest.mark.parametrize(
    ("recording", "busy", "cause"),
    [("live_many_small_layers", (0.0, 0.2), "launch_bound"), ("live_healthy_compute", (0.9, 1.0), "compute_bound")],
    indirect=["recording"],
)
def test_a_launch_bound_script_is_told_from_a_device_bound_one(made: Report, busy: Any, cause: str) -> None:
    facts = facts_of_the_baseline(made)
    assert busy[0] < facts["gpu_busy_share"].value < busy[1]
    assert made.verdict.primary_cause == cause


@pytest.mark.parametrize(
    ("recording", "starved"),
    [
        ("live_augment_resnet", (0.8, 1.0)),
        ("live_many_small_layers", (0.05, 0.2)),
        ("live_item_every_step", (0.0, 0.02)),
        ("live_healthy_compute", (0.0, 0.001)),
    ],
    indirect=["recording"],
)
def test_starvation_on_the_gpus_own_clock(made: Report, starved: Any) -> None:
    """A loader that cannot keep up starves it, a step that fills it does not."""
    facts = facts_of_the_baseline(made)
    assert starved[0] <= facts["gpu_starved_share"].value <= starved[1]
    assert facts["gpu_starved_ms"].value <= facts["wait_ms"].value * 1.05


@pytest.mark.parametrize("recording", ["live_article_floats"], indirect=True)
def test_pageable_copies_of_the_journal(made: Report) -> None:
    facts = facts_of_the_baseline(made)
    assert 4 < facts["transfer_gb_per_s"].value < 7
    assert (facts["transfer_pinned_share"].value, facts["transfer_non_blocking_share"].value) == (0, 0)


@pytest.mark.parametrize("recording", ["article_floats"], indirect=True)
def test_pinned_copies_of_the_window(made: Report) -> None:
    pinned = [t.gpu.copy_gb_per_s for t in made.trials if t.gpu and t.configuration.pin_memory and t.gpu.copy_gb_per_s]
    assert pinned
    assert median(pinned) > 50
