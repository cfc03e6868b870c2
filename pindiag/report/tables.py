"""Tables of the report, put together with pandas: columns that hold nothing are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from pindiag import figures
from pindiag.model import BlockFigures, Drawing, Report, Trial
from pindiag.report import names
from pindiag.report.charts._svg import Row
from pindiag.report.charts.frontier import memory_bytes
from pindiag.report.charts.stages import Steps


@dataclasses.dataclass(frozen=True)
class Cell:
    """A figure of a table: how it reads, and what it is sorted by."""

    text: str | None
    """None: not measured."""
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class Line:
    """A table's row."""

    row: Row
    cells: list[Cell]
    failed: str | None
    """Why there are no figures."""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of trials."""

    columns: list[str]
    lines: list[Line]


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "samples/s": figures.significant,
    "× as written": lambda value: figures.ratio(value).removesuffix(" ×"),
    "Holm p": figures.p_value,
    **{stage: figures.milliseconds for stage in (*names.STAGES, "rest")},
    "step, ms": figures.milliseconds,
    "start-up, s": lambda value: f"{value:.2f}",
    "epoch": figures.duration,
    "CPU, %": lambda value: f"{value:.0f}",
    "GPU busy": figures.share,
    "memory": figures.byte_size,
}
_INTERVAL = "95 % interval"


def sweep(rows: Sequence[Row], steps: Mapping[str, Steps]) -> Table:
    """All configurations with all that was measured of each."""
    frame = pd.DataFrame([_figures(row, steps.get(row.trial.id)) for row in rows], dtype="float64")
    frame = frame.dropna(axis="columns", how="all")
    columns = list(frame.columns)
    at = columns.index("× as written") + 1 if "× as written" in columns else None
    lines = []
    for row, values in zip(rows, frame.itertuples(index=False), strict=True):
        cells = [_cell(column, value, row) for column, value in zip(columns, values, strict=True)]
        if at is not None:
            cells.insert(at, _interval(row))
        lines.append(Line(row=row, cells=cells, failed=_failure(row.trial)))
    if at is not None:
        columns.insert(at, _INTERVAL)
    return Table(columns=columns, lines=lines)


def _figures(row: Row, steps: Steps | None) -> dict[str, float | None]:
    trial = row.trial
    parts = steps.parts if steps else {}
    return {
        "samples/s": trial.samples_per_second.median if trial.samples_per_second else None,
        "× as written": trial.versus_baseline.ratio if trial.versus_baseline else None,
        "Holm p": trial.versus_baseline.p_corrected if trial.versus_baseline else None,
        **{stage: parts.get(stage) for stage in (*names.STAGES, "rest")},
        "step, ms": steps.total if steps else None,
        "start-up, s": trial.startup_s,
        "epoch": trial.epoch_s,
        "CPU, %": trial.sampler.cpu_percent if trial.sampler else None,
        "GPU busy": trial.gpu.busy_share if trial.gpu else None,
        "memory": memory_bytes(row),
    }


def _cell(column: str, value: float, row: Row) -> Cell:
    if row.role == "baseline" and column in ("× as written", "Holm p"):
        return Cell("1", 1.0) if column == "× as written" else Cell("–")
    return Cell(None) if pd.isna(value) else Cell(_FORMATS[column](value), value)


def _interval(row: Row) -> Cell:
    if row.role == "baseline":
        return Cell("–")
    measured = row.trial.versus_baseline
    if measured is None or measured.ci95 is None:
        return Cell(None)
    return Cell(figures.interval(measured.ci95), measured.ci95[0])


def _failure(trial: Trial) -> str | None:
    if trial.samples_per_second is not None:
        return None
    word = "not run" if trial.status in ("skipped", "predicted") else trial.status
    most = trial.predicted_samples_per_second
    at_most = "" if most is None else f", at most {figures.rate(most)} expected"
    return f"{word}{at_most}: {trial.reason}" if trial.reason else f"{word}{at_most}"


@dataclasses.dataclass(frozen=True)
class BlockLine:
    """A block as the records show it."""

    block: BlockFigures
    rate: str | None
    started: str | None


@dataclasses.dataclass(frozen=True)
class RecordGroup:
    """All blocks of one trial."""

    id: str
    label: str
    note: str
    blocks: list[BlockLine]


def records(report: Report, drawing: Drawing, labels: Mapping[str, str]) -> list[RecordGroup]:
    """Every block, by trial, in the order in which they ran."""
    starts = {band.block: band.start_s for band in drawing.series.bands} if drawing.series else {}
    by_trial: dict[str, list[BlockLine]] = {trial.id: [] for trial in report.trials}
    for block in sorted(report.blocks, key=lambda one: one.id):
        rate = figures.significant(block.samples / block.seconds) if block.seconds > 0 else None
        started = f"{starts[block.id]:.1f}" if block.id in starts else None
        by_trial.setdefault(block.trial, []).append(BlockLine(block, rate, started))
    reasons = {trial.id: _failure(trial) or "" for trial in report.trials}
    return [
        RecordGroup(id=trial, label=labels.get(trial, ""), note=reasons.get(trial, ""), blocks=blocks)
        for trial, blocks in by_trial.items()
    ]
