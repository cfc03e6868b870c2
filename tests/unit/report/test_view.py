import msgspec
import pytest

from pindiag import model as m
from pindiag.report import conclusions, names
from pindiag.report.charts.stages import Steps
from pindiag.report.rows import configurations as configuration_rows
from pindiag.report.sections.verdict import main_fix, marks, next_step
from pindiag.report.view import view

from . import example


def shown(report, spec=example.SPEC, drawing=example.NO_DRAWING):
    return view(report, drawing, spec)


def rows_with(*ratios):
    """The baseline and configurations with these ratios and intervals."""
    report = example.confirmed()
    rows = configuration_rows(report, names.labels(report.trials))
    baseline = next(row for row in rows if row.role == "baseline")
    others = [row for row in rows if row.role != "baseline"]
    made = [baseline]
    for row, (ratio, ci95) in zip(others, ratios, strict=False):
        trial = msgspec.structs.replace(row.trial, versus_baseline=m.Ratio(ratio=ratio, ci95=ci95, rounds=6))
        made.append(type(row)(trial, row.label, row.role))
    return made


FLOOR = m.NoiseFloor(ratio=1.05, source="x")


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ([(1.4, (1.2, 1.6))], "Every configuration is faster than the script as written, most of all “no workers"),
        ([(1.4, (1.2, 1.6)), (1.0, (0.9, 1.1))], "Only “no workers, pin, non_blocking” lies wholly above"),
        ([(1.04, (1.02, 1.06))], "No configuration is faster than the script as written beyond the noise"),
        ([(0.8, (0.7, 0.9)), (0.7, (0.6, 0.8))], "beyond the noise; two are slower"),
        ([(1.4, None)], "Too few rounds for intervals: nothing is decided"),
        ([], "Nothing could be compared with the script as written"),
    ],
)
def test_the_sweeps_heading(ratios, wanted):
    assert wanted in conclusions.sweep(rows_with(*ratios), FLOOR)


def test_four_of_five_lie_above():
    rows = rows_with(*[(1.4, (1.2, 1.6))] * 4, (1.0, (0.9, 1.1)))
    assert conclusions.sweep(rows, FLOOR).startswith("4 of 5 configurations lie wholly above")


def test_a_step_without_a_recommendation_names_its_largest_part():
    (baseline,) = rows_with()
    assert conclusions.stages([Steps(baseline, {"wait": 8.0, "script": 2.0})]) == (
        "The largest part of a step is the wait for the batch: 8.0 of 10.0 ms"
    )
    assert conclusions.stages([]) == "Where a step goes was not measured"


def test_limits_of_the_machine_are_named():
    report = example.confirmed()
    series = example.drawing(report).series
    pressed = msgspec.structs.replace(
        series, psi_io_share=[0.4] * len(series.t_s), memory_available_bytes=[5e9] * len(series.t_s)
    )
    heading = conclusions.machine(pressed, None, report)
    assert heading == (
        "The main process keeps its core busy, memory runs low (5.00 GB left) "
        "and tasks stall on storage 40 % of the time"
    )
    idle = msgspec.structs.replace(series, main_cpu_percent=[None] * len(series.t_s))
    assert conclusions.machine(idle, None, report) == "No resource of the machine was at its limit in the blocks"


def test_the_patch_is_that_of_the_recommendation():
    report = example.confirmed()
    fix = main_fix(report)
    assert fix is not None
    assert fix.patch == example.PATCH
    assert main_fix(example.no_difference()) is None
    assert main_fix(example.suspected()) is None


def test_a_long_patch_shows_its_first_hunk_and_keeps_the_rest():
    report = example.confirmed()
    long = example.PATCH + "@@ -40,1 +42,1 @@\n" + "".join(f"-old {n}\n+new {n}\n" for n in range(6))
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=long)
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    patch = shown(msgspec.structs.replace(report, findings=[finding])).patch
    assert patch.heading == "Patch for train.py"
    assert [line for _, line in patch.first + patch.rest] == long.splitlines()
    assert patch.rest[0] == ("at", "@@ -22,3 +23,4 @@")


def test_what_cannot_be_patched_is_a_change_by_hand():
    report = example.confirmed()
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=None, snippet="num_workers=0")
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    patch = shown(msgspec.structs.replace(report, findings=[finding])).patch
    assert (patch.heading, patch.first, patch.is_diff) == (
        "Change by hand at train.py:14",
        [("", "num_workers=0")],
        False,
    )


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (example.confirmed, "pindiag run train.py --sweep --budget 10m"),
        (example.verified, None),
        (example.failed, None),
        (example.no_difference, None),
        (example.interrupted, "pindiag run train.py --sweep"),
        (example.suspected, "pindiag run train.py --sweep --budget 10m"),
    ],
)
def test_the_next_step(make, wanted):
    step = next_step(make(), example.SPEC)
    assert (step and step[1]) == wanted
    assert step is None or step[2] == step[1].startswith("pindiag run")


def test_a_modules_command_names_the_module():
    spec = msgspec.structs.replace(example.BASELINE_SPEC, module=True, target="package.train")
    assert next_step(example.cpu_baseline(), spec)[1] == "pindiag run -m package.train --sweep"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (example.confirmed, ["Cause confirmed", "Provisional:", "Not verified"]),
        (example.verified, ["Cause confirmed", "Gain verified", "Verified"]),
        (example.no_difference, ["No difference", "Nothing to gain", "Nothing to verify"]),
        (example.suspected, ["Cause suspected:", "No gain claimed", "Nothing to verify"]),
        (example.failed, ["Failure confirmed", "No gain claimed", "Nothing to verify"]),
        (example.empty, ["No cause shown", "No gain claimed", "Nothing to verify"]),
    ],
)
def test_how_sure(make, words):
    report = make()
    assert [mark.word for mark in marks(report, names.primary_finding(report))] == words


def test_pairs_that_do_not_show_the_gain_are_said():
    report = example.verified()
    poor = msgspec.structs.replace(report.verification, ratio=1.02, ci95=(0.9, 1.15))
    report = msgspec.structs.replace(report, verification=poor)
    assert marks(report, None)[2].word == "Not borne out"
    assert conclusions.verification(poor) == "4 fresh pairs do not settle it: 1.02 × (0.90–1.15)"


def test_gaps_of_one_reason_stand_together():
    report = msgspec.structs.replace(
        example.confirmed(),
        not_measured=[
            *(m.NotMeasured(key=f"trials[{n}].gpu.copy_ms", reason="no trace") for n in range(5)),
            m.NotMeasured(key="trials[0].epoch_s", reason="no length"),
            m.NotMeasured(key="trials[1].epoch_s", reason="no length"),
            m.NotMeasured(key="launches[0].epochs", reason="no length"),
            m.NotMeasured(key="verification", reason="no budget"),
        ],
    )
    first, second = report.trials[0].id, report.trials[1].id
    assert shown(report).gaps == [
        ("gpu: copy ms (5 times)", "no trace"),
        (f"epoch s ({first}, {second}); epochs (launch 1)", "no length"),
        ("verification", "no budget"),
    ]


def test_unmeasured_stages_are_merged_into_the_rest():
    report = example.cpu_baseline()
    (steps,) = shown(report, example.BASELINE_SPEC).steps
    assert list(steps.parts) == ["wait", "optimizer", "script", "rest"]
    whole = sum(b.seconds for b in report.blocks) / sum(b.steps for b in report.blocks) * 1e3
    assert steps.total == pytest.approx(whole)


def test_tables_leave_out_what_nothing_measured():
    report = example.confirmed()
    table = shown(report).sweep_table
    assert "synchronise" not in table.columns
    assert table.columns[:4] == ["samples/s", "× as written", "95 % interval", "Holm p"]
    failed = next(line for line in table.lines if line.failed)
    assert failed.failed == "failed: a worker was killed: /dev/shm is full"
    beside = shown(report).beside_table
    without_workers = next(line for line in beside.lines if line.row.trial.id == "nw0-pin0-nb0")
    assert [cell.text for cell in without_workers.cells[:5]] == ["–"] * 5
    assert shown(example.empty()).sweep_table is None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("wait_share", "wait share"),
        ("worker_fetch_ms", "worker fetch"),
        ("target_cpu_share", "target CPU share"),
        ("nw0-pin1 over nw4_pin0", "nw0-pin1 over nw4_pin0"),
        ("num_workers=0", "num_workers=0"),
        ("ms", "ms"),
    ],
)
def test_names_of_facts_as_words(name, wanted):
    assert names.words(name) == wanted


def test_configurations_in_words():
    base = m.Configuration(
        num_workers=1,
        pin_memory=True,
        non_blocking="mixed",
        prefetch_factor=4,
        persistent_workers=True,
        batch_size=32,
    )
    assert names.configuration(base, with_batch=True) == (
        "1 worker, pin, partly non_blocking, prefetch 4, persistent, batch 32"
    )
    plain = msgspec.structs.replace(base, num_workers=0, non_blocking=None, persistent_workers=False)
    assert names.configuration(plain) == "no workers, pin"


def test_asking_for_too_few_rounds_is_answered_with_rounds():
    spec = msgspec.structs.replace(example.SPEC, rounds=3)
    assert next_step(example.confirmed(), spec)[1] == "pindiag run train.py --sweep --rounds 6"


def test_after_all_rounds_a_suspicion_names_its_experiment():
    report = example.suspected()
    blocks = report.blocks + [msgspec.structs.replace(block, round=block.round + 4) for block in report.blocks]
    step = next_step(msgspec.structs.replace(report, blocks=blocks), example.SPEC)
    assert step == ("Would settle it:", "drain the loader with and without pin thread", False)


def test_nothing_to_gain_is_said_only_where_it_is_shown():
    report = example.no_difference()
    undecided = msgspec.structs.replace(report, findings=[])
    assert marks(undecided, None)[1].word == "No gain shown"
    assert shown(undecided).why_nothing == "no gain was shown"
    assert shown(report).why_nothing == "the settings as written are as good as any that was tried"


def test_the_accent_is_on_the_stage_that_the_verdict_speaks_of():
    report = example.confirmed()
    for cause, stage in (("pageable_copy", "transfer"), ("compute_bound", "script"), ("cpu_bound", "wait")):
        finding = msgspec.structs.replace(report.findings[0], cause=cause)
        verdict = msgspec.structs.replace(report.verdict, primary_cause=cause)
        faces = shown(msgspec.structs.replace(report, findings=[finding], verdict=verdict)).stage_faces
        assert [words for words, face in faces.items() if face == "k1"] == [names.STAGE_WORDS[stage]]
        assert len(set(faces.values())) == len(faces)
