"""Tables of the report, put together with pandas: columns that hold nothing are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from pindiag import figures
from pindiag.model import BlockFigures, Drawing, Fact, Report, Trial
from pindiag.report import names
from pindiag.report.charts._svg import Row
from pindiag.report.charts.machine import SAMPLES
from pindiag.report.charts.stages import Steps
from pindiag.report.rows import isolation_of


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


def _stage(name: str) -> Callable[[Row, Steps | None], float | None]:
    return lambda _, steps: steps.parts.get(name) if steps else None


_Getter = Callable[[Row, Steps | None], float | None]
_Column = tuple[_Getter, Callable[[float], str]]


def _of_trial(get: Callable[[Trial], float | None]) -> _Getter:
    return lambda row, _: get(row.trial)


def _two_decimals(value: float) -> str:
    return f"{value:.2f}"


def _whole(value: float) -> str:
    return figures.count(value)


def _over_prediction(trial: Trial) -> float | None:
    """What a trial reached of what was predicted before it ran."""
    most, rate = trial.predicted_samples_per_second, trial.samples_per_second
    return rate.median / most if most and rate else None


PREDICTED, OFF = "predicted at most", "off by"
SPEED: Mapping[str, _Column] = {
    "samples/s": (
        _of_trial(lambda trial: trial.samples_per_second.median if trial.samples_per_second else None),
        figures.significant,
    ),
    "× as written": (
        _of_trial(lambda trial: trial.versus_baseline.ratio if trial.versus_baseline else None),
        _two_decimals,
    ),
    "Holm p": (
        _of_trial(lambda trial: trial.versus_baseline.p_corrected if trial.versus_baseline else None),
        figures.p_value,
    ),
    PREDICTED: (
        _of_trial(lambda trial: trial.predicted_samples_per_second if trial.samples_per_second else None),
        figures.significant,
    ),
    OFF: (_of_trial(_over_prediction), figures.off),
    **{stage: (_stage(stage), figures.milliseconds) for stage in (*names.STAGES, "rest")},
    "step, ms": (lambda _, steps: steps.total if steps else None, figures.milliseconds),
}
COST: Mapping[str, _Column] = {
    "memory": (_of_trial(lambda trial: trial.memory_bytes.total), figures.byte_size),
    "pinned": (_of_trial(lambda trial: trial.memory_bytes.pinned), figures.byte_size),
    "shared": (_of_trial(lambda trial: trial.memory_bytes.shm), figures.byte_size),
    "CPU, % of a core": (_of_trial(lambda trial: trial.sampler.cpu_percent if trial.sampler else None), _whole),
    "main process": (_of_trial(lambda trial: trial.sampler.main_cpu_percent if trial.sampler else None), _whole),
    "one worker": (_of_trial(lambda trial: trial.sampler.worker_cpu_percent if trial.sampler else None), _whole),
    "queued for a CPU": (
        _of_trial(lambda trial: trial.sampler.run_delay_share if trial.sampler else None),
        figures.share,
    ),
    "start-up, s": (_of_trial(lambda trial: trial.startup_s), _two_decimals),
    "epoch": (_of_trial(lambda trial: trial.epoch_s), figures.duration),
}
FRONTIER: Mapping[str, _Column] = {
    "memory": COST["memory"],
    "of it pinned or shared": (_of_trial(lambda trial: trial.memory_bytes.pinned_and_shared), figures.byte_size),
    "samples/s": SPEED["samples/s"],
    "start-up, s": COST["start-up, s"],
    "epoch": COST["epoch"],
}
SIZES: Mapping[str, _Column] = {
    "samples/s": SPEED["samples/s"],
    "× as written": SPEED["× as written"],
    "memory": COST["memory"],
    "of it pinned or shared": FRONTIER["of it pinned or shared"],
    "GPU memory": (
        _of_trial(lambda trial: trial.sampler.gpu_memory_bytes if trial.sampler else None),
        figures.byte_size,
    ),
    "start-up, s": COST["start-up, s"],
}
BESIDE: Mapping[str, _Column] = {
    "worker: fetch": (
        _of_trial(lambda trial: trial.worker_ms.fetch if trial.worker_ms else None),
        figures.milliseconds,
    ),
    "collate": (_of_trial(lambda trial: trial.worker_ms.collate if trial.worker_ms else None), figures.milliseconds),
    "hand-off": (_of_trial(lambda trial: trial.worker_ms.hand_off if trial.worker_ms else None), figures.milliseconds),
    "pin thread: receive": (
        _of_trial(lambda trial: trial.pin_thread_ms.receive if trial.pin_thread_ms else None),
        figures.milliseconds,
    ),
    "pin": (_of_trial(lambda trial: trial.pin_thread_ms.pin if trial.pin_thread_ms else None), figures.milliseconds),
    "GPU: kernels": (_of_trial(lambda trial: trial.gpu.kernel_ms if trial.gpu else None), figures.milliseconds),
    "copies": (_of_trial(lambda trial: trial.gpu.copy_ms if trial.gpu else None), figures.milliseconds),
    "copies, GB/s": (_of_trial(lambda trial: trial.gpu.copy_gb_per_s if trial.gpu else None), figures.significant),
    "copies under kernels": (_of_trial(lambda trial: trial.gpu.overlap_share if trial.gpu else None), figures.share),
    "GPU busy": (_of_trial(lambda trial: trial.gpu.busy_share if trial.gpu else None), figures.share),
}
STARVED = "GPU starved"
_RATIO, _INTERVAL = "× as written", "95 % interval"
_AGAINST_ITSELF = Cell("–")


def beside(report: Report) -> Mapping[str, _Column]:
    """What runs beside the main thread, and how long the GPU was starved by it: that is a fact of the trial."""
    shares = {fact.trial: fact.value for fact in report.facts if fact.name == "gpu_starved_share"}

    def starved(row: Row, _: Steps | None) -> float | None:
        share = shares.get(row.trial.id)
        return share if isinstance(share, float) else None

    return {**BESIDE, STARVED: (starved, figures.share)}


def trials(
    rows: Sequence[Row], steps: Mapping[str, Steps], wanted: Mapping[str, _Column], *, with_isolation: bool = False
) -> Table | None:
    """A table of trials with those of the wanted columns in which anything was measured; None where nothing was.

    Args:
        rows: one a trial.
        steps: their stages, by the trial's id.
        wanted: the columns, in their order.
        with_isolation: say last whether each was measured live or fresh, where not all were alike.
    """
    frame = pd.DataFrame(
        [[get(row, steps.get(row.trial.id)) for get, _ in wanted.values()] for row in rows],
        columns=list(wanted),
        dtype="float64",
    ).dropna(axis="columns", how="all")
    if frame.empty or not len(frame.columns):
        return None
    lines = []
    for row, values in zip(rows, frame.itertuples(index=False), strict=True):
        cells = [
            _cell(row, column, wanted[column][1], value) for column, value in zip(frame.columns, values, strict=True)
        ]
        lines.append(Line(row=row, cells=cells, failed=names.without_figures(row.trial)))
    table = _with_intervals(Table(columns=list(frame.columns), lines=lines))
    alike = len({row.trial.isolation for row in rows}) == 1
    return _with_isolation(table) if with_isolation and not alike else table


def _cell(row: Row, column: str, text: Callable[[float], str], value: float) -> Cell:
    if row.role == "baseline" and column in (_RATIO, "Holm p"):
        return Cell("1", 1.0) if column == _RATIO else _AGAINST_ITSELF
    if pd.isna(value):
        return Cell("–") if _cannot_exist(row, column) else Cell(None)
    return Cell(text(value), value)


def _cannot_exist(row: Row, column: str) -> bool:
    """No worker without workers, no pin thread without pinning, no error without a prediction: a dash, not a gap."""
    configuration = row.trial.configuration
    if column in (PREDICTED, OFF):
        return True
    if column in ("one worker", "worker: fetch", "collate", "hand-off"):
        return configuration.num_workers == 0
    return column in ("pin thread: receive", "pin") and not configuration.pin_memory


def _with_intervals(table: Table) -> Table:
    if _RATIO not in table.columns:
        return table
    at = table.columns.index(_RATIO) + 1
    lines = [
        dataclasses.replace(line, cells=[*line.cells[:at], _interval(line.row), *line.cells[at:]])
        for line in table.lines
    ]
    return Table(columns=[*table.columns[:at], _INTERVAL, *table.columns[at:]], lines=lines)


def _with_isolation(table: Table) -> Table:
    lines = [dataclasses.replace(line, cells=[*line.cells, Cell(line.row.trial.isolation)]) for line in table.lines]
    return Table(columns=[*table.columns, "measured"], lines=lines)


def _interval(row: Row) -> Cell:
    if row.role == "baseline":
        return _AGAINST_ITSELF
    measured = row.trial.versus_baseline
    if measured is None or measured.ci95 is None:
        return Cell(None)
    return Cell(figures.interval(measured.ci95), measured.ci95[0])


@dataclasses.dataclass(frozen=True)
class BlockLine:
    """A block as the records show it."""

    block: BlockFigures
    isolation: str | None
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
    isolation = isolation_of(report)
    by_trial: dict[str, list[BlockLine]] = {trial.id: [] for trial in report.trials}
    for block in sorted(report.blocks, key=lambda one: one.id):
        rate = figures.significant(block.samples / block.seconds) if block.seconds > 0 else None
        started = f"{starts[block.id]:.1f}" if block.id in starts else None
        by_trial.setdefault(block.trial, []).append(BlockLine(block, isolation.get(block.id), rate, started))
    reasons = {trial.id: names.without_figures(trial) or "" for trial in report.trials}
    return [
        RecordGroup(id=trial, label=labels.get(trial, ""), note=reasons.get(trial, ""), blocks=blocks)
        for trial, blocks in by_trial.items()
    ]


@dataclasses.dataclass(frozen=True)
class FileRow:
    """Files of the run directory that a part of the page is drawn from."""

    id: str
    what: str
    where: str
    trial: str | None = None


def files(report: Report, drawing: Drawing) -> list[FileRow]:
    """Where the records lie that are no blocks: samples of the machine, profiler windows, workers' rings."""
    found = []
    if drawing.series is not None:
        found.append(FileRow(SAMPLES, "Samples of the machine and of each process", "journal/sampler-*.jsonl"))
    if any(trial.worker_ms is not None for trial in report.trials):
        found.append(FileRow("rec-rings", "What each worker did with its newest batches", "rings/*.ring"))
    windows = [(trial.id, window.trace) for trial in report.trials if (window := trial.profiler) and window.trace]
    return found + [FileRow(f"trace-{trial}", "Profiler window", trace, trial) for trial, trace in windows]


def facts(report: Report) -> dict[str | None, list[Fact]]:
    """What the rules read, by treatment, those of the run first."""
    found: dict[str | None, list[Fact]] = {None: []}
    for fact in report.facts:
        found.setdefault(fact.trial, []).append(fact)
    return {trial: of_trial for trial, of_trial in found.items() if of_trial}
