import dataclasses

import msgspec
import pytest

from pindiag import model as m
from pindiag.report import conclusions, names
from pindiag.report.charts.stages import Steps
from pindiag.report.rows import configurations as configuration_rows

from . import example


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
        ([(1.4, (1.2, 1.6)), (0.9, None)], "Only “no workers, pin, non_blocking” lies wholly above"),
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


def test_a_recommendations_step_is_told_by_its_whole_and_what_moved_most():
    baseline, chosen = rows_with((1.5, (1.4, 1.6)))
    chosen = dataclasses.replace(chosen, role="chosen")
    parts = {"wait": 1.0, "transfer": 7.0, "optimizer": 0.1, "script": 7.0}
    moved = {"wait": 9.4, "transfer": 0.1, "optimizer": 0.1, "script": 1.0}
    assert conclusions.stages([Steps(baseline, parts), Steps(chosen, moved)]) == (
        "As recommended a step takes 10.6 instead of 15.1 ms: 6.9 ms less for the transfer, 6.0 ms less for the "
        "script's own part and 8.4 ms more for the wait for the batch"
    )


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
