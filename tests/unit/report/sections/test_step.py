"""Notes under the stages of a step."""

from __future__ import annotations

from msgspec.structs import replace

from pindiag.model import Fact
from pindiag.report.sections import step

from .. import example
from ..test_view import shown

SOURCE = "events around the wait in 120 of 800 steps; blocks 3, 17"


def starved(trial, ms, step_ms):
    values = (("gpu_starved_ms", ms, "ms"), ("step_ms", step_ms, "ms"), ("gpu_starved_share", ms / step_ms, "1"))
    return [Fact(name=name, value=value, unit=unit, trial=trial, source=SOURCE) for name, value, unit in values]


def test_the_starved_gpu_is_told_as_written_and_as_recommended():
    report = example.confirmed()
    written, chosen = starved(report.baseline, 5.1, 12.3), starved(report.recommendation.trial, 0.24, 6.1)
    assert step.notes(report) == []
    assert step.notes(replace(report, facts=[*report.facts, *written, *chosen])) == [
        "As written the GPU had nothing to do for 5.1 ms of a step's 12.3 ms while the script waited for a batch; as "
        f"recommended, for 0.2 ms of a step's 6.1 ms ({SOURCE})."
    ]
    assert step.notes(replace(report, facts=[*report.facts, *written])) == [
        "As written the GPU had nothing to do for 5.1 ms of a step's 12.3 ms while the script waited for a batch "
        f"({SOURCE})."
    ]


def test_the_share_stands_beside_what_the_profiler_says_of_the_gpu():
    report = example.confirmed()
    assert "GPU starved" not in shown(report).beside_table.columns
    table = shown(replace(report, facts=[*report.facts, *starved(report.baseline, 5.1, 12.0)])).beside_table
    line = next(line for line in table.lines if line.row.trial.id == report.baseline)
    assert line.cells[table.columns.index("GPU starved")].text == "42 %"
