import msgspec
import pytest

from pindiag.report import names
from pindiag.report.view import view

from . import example


def shown(report, spec=example.SPEC, drawing=example.NO_DRAWING):
    return view(report, drawing, spec)


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


def test_the_accent_is_on_the_stage_that_the_verdict_speaks_of():
    report = example.confirmed()
    for cause, stage in (("pageable_copy", "transfer"), ("compute_bound", "script"), ("cpu_bound", "wait")):
        finding = msgspec.structs.replace(report.findings[0], cause=cause)
        verdict = msgspec.structs.replace(report.verdict, primary_cause=cause)
        faces = shown(msgspec.structs.replace(report, findings=[finding], verdict=verdict)).stage_faces
        assert [words for words, face in faces.items() if face == "k1"] == [names.STAGE_WORDS[stage]]
        assert len(set(faces.values())) == len(faces)
