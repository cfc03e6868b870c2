"""The sweep: gains with their intervals, and what they cost in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pindiag import figures
from pindiag.model import Report, RunSpec
from pindiag.report import about, conclusions, tables
from pindiag.report.charts import frontier, sweep
from pindiag.report.charts._svg import Chart, Row
from pindiag.report.rows import batch_sizes

MOST_NOT_RUN = 6
"""Rows of the chart, or of the table, that were not run: more would hide those that were."""


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
    shown = _shown(rows)
    floor = report.noise_floor.ratio
    band = f" Grey band: the noise floor, {figures.floor(floor)}." if floor else ""
    others = [row.trial.versus_baseline for row in rows if row.role != "baseline" and row.trial.versus_baseline]
    drawn = "; line: 95 % t-interval, not corrected; ticks: the rounds" if any(one.ci95 for one in others) else ""
    hollow = " Hollow: not run, at most this much." if any(row.at_most for row in rows) else ""
    if len(shown) < len(rows):
        hollow += f" {len(rows) - len(shown)} more were not run and promised no more; the table has them."
    caption = (
        "Throughput relative to the script as written, paired by round. "
        f"Dot: geometric mean{drawn}.{hollow} The scale is logarithmic.{band}"
    )
    return Chart(sweep.chart(shown, floor, title), title, caption)


def parted(table: tables.Table | None) -> tuple[tables.Table | None, list[tables.Line]]:
    """A table without the rows of what was not run, and these, where they are so many that they would hide the rest."""
    if table is None:
        return None, []
    not_run = [line for line in table.lines if line.row.trial.status in ("skipped", "predicted")]
    if len(not_run) <= MOST_NOT_RUN:
        return table, []
    return tables.Table(table.columns, [line for line in table.lines if line not in not_run]), not_run


def _shown(rows: Sequence[Row]) -> list[Row]:
    """All that ran or failed, and of those that were not run the ones that promised most."""
    promised = sorted((row.at_most for row in rows if row.at_most is not None), reverse=True)
    least = promised[MOST_NOT_RUN - 1] if len(promised) > MOST_NOT_RUN else 0.0
    room = MOST_NOT_RUN
    shown = []
    for row in rows:
        if row.at_most is not None and (row.at_most < least or not room):
            continue
        room -= row.at_most is not None
        shown.append(row)
    return shown


def frontier_chart(measured: Sequence[Row], report: Report) -> Chart | None:
    """Memory against throughput; None where memory was read for fewer than two configurations."""
    rows = [row for row in measured if row.trial.memory_bytes.total is not None]
    subject = _subject(rows)
    if len(rows) < 2 or report.recommendation is None or subject is None:
        return None
    title = conclusions.frontier(subject, rows)
    caption = (
        "Memory of all processes, shared pages counted once, pinned memory included. "
        "Line: configurations that no other one beats in both."
    )
    return Chart(frontier.chart(rows, report.recommendation.frontier, title), title, caption)


def frontier_table(measured: Sequence[Row], report: Report) -> tables.Table | None:
    """What the chart's line passes through, the smallest first, and beside it what is written and recommended."""
    on_line = report.recommendation.frontier if report.recommendation else []
    rows = [
        row
        for row in measured
        if row.trial.memory_bytes.total is not None and (row.role != "other" or row.trial.id in on_line)
    ]
    rows.sort(key=lambda row: row.trial.memory_bytes.total or 0)
    return tables.trials(rows, {}, tables.FRONTIER)


def _subject(rows: Sequence[Row]) -> Row | None:
    """What is recommended: another configuration, or the script as written."""
    roles = {row.role: row for row in rows}
    return roles.get("chosen") or roles.get("baseline")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Other batch sizes, which stand apart from the sweep."""

    title: str
    table: tables.Table | None
    """None: none could be tried."""
    why_none: str = ""


def sizes(report: Report, spec: RunSpec) -> Sizes | None:
    """The table of batch sizes; None where no other size was asked for."""
    rows = batch_sizes(report)
    if rows:
        return Sizes(conclusions.batch_sizes(rows), tables.trials(rows, {}, tables.SIZES))
    if spec.batch_sizes is None:
        return None
    return Sizes("No other batch size was tried", None, _why_no_size(report, spec.batch_sizes))


def _why_no_size(report: Report, asked: Sequence[int]) -> str:
    baseline = about.trial(report, report.baseline)
    own = None if baseline is None else baseline.configuration.batch_size
    if not asked and baseline is not None and own is None:
        return "the script's own batch size is not known, so name some: --sweep-batch-size 32,64"
    if asked and set(asked) == {own}:
        return "none but the script's own was named"
    return "the run ended, or its budget was spent, before their turn"
