import random
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pindiag.analysis import Analysis, analyse
from pindiag.model import (
    Block,
    FilesSettled,
    LaunchBegan,
    LaunchEnded,
    LoaderChosen,
    RunEnded,
    Sample,
    TargetFailed,
)
from pindiag.plan.schedule import next_order
from pindiag.store import read_trace

from .honest import assert_honest
from .test_trace import Event as traced

H200 = Path(__file__).parents[2] / "data" / "h200"
FASTER = {0: 1500.0}


def played(script, spec, *, end=True, **changes):
    asked = changes.pop("asked", {})
    fake = script(**({"detailed": True, "rate": lambda made: FASTER.get(made.num_workers, 1000.0)} | changes))
    fake.machine()
    fake.play(partial(next_order, spec(**asked)))
    if end:
        fake.records.append(RunEnded(launch=0, t_ns=fake.now_ns, status="ok"))
    return fake


def analysed(fake, spec, traces=None, **asked) -> Analysis:
    return analyse(spec(**asked), fake.records, fake.batches, traces or {}, {1: "launch-001-4001.jsonl:9"})


@pytest.fixture(scope="module")
def swept(script, spec):
    return analysed(played(script, spec), spec)


@pytest.fixture(scope="module")
def swept_gpu(script, spec, loader_arguments):
    fake = played(script, spec, accelerator="cuda", baseline=loader_arguments(non_blocking=False))
    traces = {
        "baseline": read_trace(H200 / "trace_pin0_nb0.json.gz"),
        "nw4-pin1-nb1": read_trace(H200 / "trace_pin1_nb1.json.gz"),
        "nw4-pin1-nb0": "the trace is cut",
    }
    return analysed(fake, spec, traces)


def trial(analysis, name):
    return next(trial for trial in analysis.trials if trial.id == name)


def fact(analysis, name, of=None):
    return next(fact for fact in analysis.facts if (fact.name, fact.trial) == (name, of))


def test_the_discovery_is_the_baselines_first_block(swept):
    assert swept.baseline == "nw4-pin0" == swept.trials[0].id
    assert swept.blocks[0].purpose == "discover"
    assert swept.blocks[0].trial == "nw4-pin0"
    assert swept.blocks[0].journal == "launch-001-4001.jsonl:9"
    assert swept.trials[0].blocks[0] == 1


def test_every_block_is_there_and_verification_counts_in_no_trial(swept):
    verified = {block.id for block in swept.blocks if block.purpose == "verify"}
    raced = {number for trial in swept.trials for number in trial.blocks}
    assert verified
    assert not verified & raced
    assert verified | raced == {block.id for block in swept.blocks}


def test_stages_add_up_to_the_step(swept):
    stages = swept.trials[0].stage_ms
    step_ms = fact(swept, "step_ms", "nw4-pin0").value
    assert stages.wait == pytest.approx(0.6 * step_ms)
    assert stages.transfer is None
    assert stages.wait + stages.synchronise + stages.optimizer + stages.script == pytest.approx(step_ms)


def test_planted_figures_are_read_back(swept):
    baseline = swept.trials[0]
    assert baseline.sampler.main_cpu_percent == pytest.approx(50)
    assert baseline.sampler.worker_cpu_percent == pytest.approx(80)
    assert baseline.sampler.cpu_percent == pytest.approx(50 + 4 * 80)
    assert baseline.sampler.psi_cpu_share == pytest.approx(0.25)
    assert baseline.sampler.run_delay_share == pytest.approx(0.1 / 1.1)
    assert baseline.sampler.rss_bytes == (500 + 4 * 300) << 20
    assert baseline.worker_ms.fetch / baseline.worker_ms.collate == pytest.approx(2.5)
    assert baseline.memory_bytes.pss == 1 << 30
    assert baseline.startup_s == pytest.approx(0.2)
    assert fact(swept, "worker_cpu_share", "nw4-pin0").value == pytest.approx(0.8)
    assert fact(swept, "target_cpu_share", "nw4-pin0").value == pytest.approx(3.7 / 8)
    assert fact(swept, "worker_busy_share", "nw4-pin0").value == pytest.approx(0.7, abs=0.01)
    assert fact(swept, "worker_fetch_cpu_share", "nw4-pin0").value == pytest.approx(0.5)
    assert fact(swept, "wait_cpu_share", "nw4-pin0").value == pytest.approx(0.1)


def test_epoch_is_reckoned_from_the_natural_length(swept):
    baseline = swept.trials[0]
    assert baseline.epoch_s == pytest.approx(313 * 64 / baseline.samples_per_second.median + 0.2)


def test_recommends_what_verification_bears_out(swept):
    found = swept.recommendation
    assert (found.trial, found.firmness) == ("nw0-pin0", "verified")
    assert found.versus_baseline.ratio == pytest.approx(swept.verification.ratio)
    assert found.versus_baseline.ci95[0] < 1.5 < found.versus_baseline.ci95[1]
    assert swept.verification.pairs == len(swept.verification.baseline_samples_per_second) >= 4
    assert len(swept.verification.launches) == 2 * swept.verification.pairs
    assert found.frontier == ["nw0-pin0"]


def test_what_verification_does_not_bear_out_is_not_recommended(script, spec):
    fake = played(script, spec)
    slower = [
        msgspec.structs.replace(record, samples=record.samples // 2)
        if isinstance(record, Block) and record.trial == "nw0-pin0" and _verifies(fake, record)
        else record
        for record in fake.records
    ]
    fake.records = slower
    found = analysed(fake, spec)
    assert found.recommendation.trial == found.baseline
    assert found.verification.ratio < 1


def _verifies(fake, block):
    began = next(record for record in fake.records if record.launch == block.launch)
    return began.order.purpose == "verify"


def test_unverified_gains_are_provisional_unless_later_rounds_bear_them_out(script, spec):
    for rounds, firmness in ((6, "provisional"), (10, "measured")):
        asked = {"verify": False, "rounds": rounds, "budget_s": 3000.0}
        found = analysed(played(script, spec, asked=asked), spec, **asked)
        assert (found.recommendation.trial, found.recommendation.firmness) == ("nw0-pin0", firmness)
        assert found.verification is None


def test_gpu_figures_come_from_the_trace_of_the_trial(swept_gpu):
    assert trial(swept_gpu, "nw4-pin0-nb0").gpu.copy_gb_per_s == pytest.approx(4.6, abs=0.1)
    assert trial(swept_gpu, "nw4-pin1-nb1").gpu.pinned_bytes == 38_535_680
    assert fact(swept_gpu, "gpu_copy_ms", "nw4-pin1-nb0").reason == "the trace is cut"
    assert fact(swept_gpu, "gpu_pageable_bytes", "nw4-pin0-nb0").value == 38_535_680


def test_pinning_facts(swept_gpu):
    assert fact(swept_gpu, "pin_pin_ms", "nw4-pin1-nb1").value == pytest.approx(5.0)
    assert fact(swept_gpu, "pin_in_main_thread", "nw0-pin1-nb1").value is True
    assert fact(swept_gpu, "pin_pin_ms", "nw4-pin0-nb0").reason == "nothing is pinned under this configuration"
    assert fact(swept_gpu, "pinned_reckoned_bytes", "nw4-pin1-nb1").value == 9 * (64 << 20)
    assert fact(swept_gpu, "transfer_bytes_per_step", "nw4-pin0-nb0").value == 64 * 602112
    assert fact(swept_gpu, "host_alloc_ms_per_step", "nw4-pin1-nb1").value > 0


def test_the_timeline_shows_the_trace_or_else_the_records(swept, swept_gpu):
    lanes = {span.lane for span in swept_gpu.drawing.timeline}
    assert lanes == {"main", "copies", "kernels"}
    assert swept_gpu.drawing.timeline_trial == "nw4-pin0-nb0"
    assert {span.lane for span in swept.drawing.timeline} == {"main", *(f"worker {number}" for number in range(4))}
    for analysis in (swept, swept_gpu):
        assert all(0 <= span.start_ms <= span.end_ms for span in analysis.drawing.timeline)


def test_what_kept_the_gpu_idle_and_what_the_script_is_made_of(swept, swept_gpu):
    base = "nw4-pin0-nb0"
    causes = [fact(swept_gpu, f"gpu_idle_{name}_share", base).value for name in ("wait", "synchronise", "launch")]
    causes += [fact(swept_gpu, f"gpu_idle_{name}_share", base).value for name in ("operators", "python")]
    assert sum(causes) == pytest.approx(fact(swept_gpu, "gpu_idle_share", base).value)
    assert fact(swept_gpu, "script_launch_ms", base).value == pytest.approx(0.37, abs=0.05)
    assert fact(swept_gpu, "script_backward_ms", base).source.startswith("trace traces/")
    assert fact(swept_gpu, "gpu_idle_wait_share", "nw4-pin1-nb0").reason == "the trace is cut"
    assert fact(swept_gpu, "script_python_ms", "nw4-pin1-nb0").reason == "the trace is cut"
    assert fact(swept, "gpu_idle_wait_share", "nw4-pin0").reason == "no accelerator"
    assert fact(swept, "script_launch_ms", "nw4-pin0").reason == "no accelerator"


def test_without_an_accelerator_the_window_still_splits_the_script(script, spec):
    marks = [traced("user_annotation", f"ProfilerStep#{n}", 100 * n, 100) for n in (1, 2)]
    ops = [traced("cpu_op", "aten::linear", 110, 20), traced("cpu_op", "autograd::engine::x", 140, 40)]
    found = analysed(played(script, spec), spec, {"baseline": [*marks, *ops]})
    made = {
        name: fact(found, f"script_{name}_ms", "nw4-pin0") for name in ("operators", "backward", "python", "launch")
    }
    assert [made[name].value for name in ("operators", "backward", "python")] == pytest.approx([0.01, 0.02, 0.07])
    assert made["launch"].reason == "no accelerator"
    assert_honest(found)


def test_the_pin_threads_lane(script, spec, loader_arguments):
    fake = played(script, spec, accelerator="cuda", baseline=loader_arguments(pin_memory=True, non_blocking=True))
    found = analysed(fake, spec, {"baseline": read_trace(H200 / "trace_pin1_nb1.json.gz")})
    pins = [span for span in found.drawing.timeline if span.lane == "pin thread"]
    assert pins
    assert max(span.end_ms - span.start_ms for span in pins) > 1


def test_series_are_as_long_as_their_time(swept):
    series = swept.drawing.series
    lengths = {len(getattr(series, name)) for name in series.__struct_fields__ if name != "bands"}
    assert lengths == {len(series.t_s)}
    assert len(series.bands) == len(swept.blocks)
    first = series.bands[0]
    inside = [number for number, moment in enumerate(series.t_s) if first.start_s < moment <= first.end_s]
    assert [series.workers_cpu_percent[number] for number in inside] == pytest.approx([320] * len(inside), abs=1)
    assert inside


def test_every_null_has_its_reason(swept, swept_gpu):
    assert_honest(swept)
    assert_honest(swept_gpu)


def test_failed_and_skipped_trials_have_all_keys_and_a_reason(script, spec):
    asked = {"budget_s": 25.0}
    fake = played(script, spec, fails={"nw0-pin0": "killed: out of memory"}, asked=asked)
    found = analysed(fake, spec, **asked)
    failed = trial(found, "nw0-pin0")
    assert (failed.status, failed.reason, failed.samples_per_second) == ("failed", "killed: out of memory", None)
    skipped = [trial for trial in found.trials if trial.status == "skipped"]
    assert skipped
    assert all("budget" in trial.reason for trial in skipped)
    assert_honest(found)


def test_a_script_that_fails_by_itself(script, spec):
    fake = script()
    fake.machine()
    fake.run(next_order(spec(), fake.records))
    ended = fake.records.pop()
    failed = TargetFailed(
        launch=1,
        t_ns=ended.t_ns,
        exception="ValueError",
        message="no",
        traceback="T: no",
        step=30,
        past_natural_end=False,
    )
    fake.records = [record for record in fake.records if not isinstance(record, Block)]
    fake.records += [
        failed,
        msgspec.structs.replace(ended, status="failed", exit="exit status 1", reason="ValueError: no"),
    ]
    fake.records.append(RunEnded(launch=0, t_ns=ended.t_ns, status="failed"))
    found = analysed(fake, spec)
    assert (found.target.status, found.target.error, found.target.error_step) == ("failed", "T: no", 30)
    assert found.trials[0].status == "failed"
    assert found.recommendation is None
    assert_honest(found)


def test_a_treatments_failure_is_not_the_scripts(script, spec):
    found = analysed(played(script, spec, fails={"nw0-pin0": "exit status 1"}), spec)
    assert (found.target.status, found.target.error) == ("ok", None)


def test_files_are_listed_once(script, spec):
    fake = played(script, spec)
    fake.records += [
        FilesSettled(launch=number, t_ns=0, restored=["/a"], moved=["/c"], listed=[f"/b{number}"]) for number in (1, 2)
    ]
    assert analysed(fake, spec).target.files_changed == ["/a", "/b1", "/b2", "/c"]


def test_an_empty_journal(spec):
    found = analyse(spec(), [], [], {}, {})
    assert (found.trials, found.baseline, found.loader, found.recommendation) == ([], None, None, None)
    assert found.target.status == "interrupted"
    assert_honest(found)


@pytest.mark.parametrize("seed", range(25))
def test_a_run_that_died_anywhere_is_analysed(script, spec, seed):
    """Cut at any record, and with any kind of record lost."""
    chance = random.Random(seed)
    fake = played(script, spec, asked={"budget_s": 60.0}, accelerator=chance.choice([None, "cuda"]))
    kinds = sorted({type(record) for record in fake.records}, key=lambda kind: kind.__name__)
    lost = chance.choice([None, *kinds])
    records = fake.records[: chance.randrange(len(fake.records))]
    records = [record for record in records if lost is None or not isinstance(record, lost)]
    found = analyse(spec(), records, chance.choice([[], fake.batches]), {}, {})
    assert_honest(found)


@pytest.mark.parametrize("lost", [Sample, LoaderChosen, LaunchEnded, Block])
def test_a_kind_of_record_that_is_missing_altogether(script, spec, lost):
    fake = played(script, spec)
    fake.records = [record for record in fake.records if not isinstance(record, lost)]
    assert_honest(analysed(fake, spec))


def test_without_the_parents_journal_no_block_goes_to_another_trial(script, spec):
    fake = played(script, spec)
    fake.records = [record for record in fake.records if not isinstance(record, LaunchBegan)]
    found = analysed(fake, spec)
    assert [trial.id for trial in found.trials] == ["nw4-pin0"]
    own = {block.id for block in found.blocks if block.trial == "nw4-pin0"}
    assert set(found.trials[0].blocks) == own


def test_baseline_only(script, spec):
    asked = {"sweep": False}
    found = analysed(played(script, spec, asked=asked), spec, **asked)
    assert [trial.id for trial in found.trials] == ["nw4-pin0"]
    assert found.recommendation.trial == "nw4-pin0"
    assert found.noise_floor.ratio > 1
    assert_honest(found)
