"""The sweep: gains with their intervals, and what they cost in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pindiag import figures
from pindiag.model import Report
from pindiag.report import conclusions
from pindiag.report.charts import frontier, sweep
from pindiag.report.charts._svg import Chart, Row


def heading(rows: Sequence[Row], report: Report) -> str:
    """What the sweep shows."""
    if len(rows) > 1:
        return conclusions.sweep(rows, report.noise_floor)
    return "No other configuration was measured" if rows else "Nothing was measured"


def chart(rows: Sequence[Row], report: Report) -> Chart | None:
    """Throughput relative to the script as written; None without another configuration."""
    if len(rows) < 2:
        return None
    title = conclusions.sweep(rows, report.noise_floor)
    floor = report.noise_floor.ratio
    band = f" Grey band: the noise floor, {figures.floor(floor)}." if floor else ""
    others = [row.trial.versus_baseline for row in rows if row.role != "baseline" and row.trial.versus_baseline]
    drawn = "; line: 95 % t-interval, not corrected; ticks: the rounds" if any(one.ci95 for one in others) else ""
    hollow = " Hollow: not run, at most this much." if any(row.at_most for row in rows) else ""
    caption = (
        "Throughput relative to the script as written, paired by round. "
        f"Dot: geometric mean{drawn}.{hollow} The scale is logarithmic.{band}"
    )
    return Chart(sweep.chart(rows, floor, title), title, caption)


def frontier_chart(measured: Sequence[Row], report: Report) -> Chart | None:
    """Memory against throughput; None where memory was read for fewer than two configurations."""
    rows = [row for row in measured if frontier.memory_bytes(row) is not None]
    if len(rows) < 2 or report.recommendation is None:
        return None
    chosen = next((row for row in rows if row.trial.id == report.recommendation.trial), None)
    if chosen is None:
        return None
    used = figures.byte_size(frontier.memory_bytes(chosen) or 0)
    title = f"The {'recommended configuration' if chosen.role == 'chosen' else 'script as written'} needs {used}"
    caption = "Proportional, pinned and shared memory. Line: configurations that no other one beats in both."
    return Chart(frontier.chart(rows, report.recommendation.frontier, title), title, caption)
