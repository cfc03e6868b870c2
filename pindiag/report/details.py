"""What runs beside the main thread, in detail: tables of facts, a row each configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from pindiag import figures
from pindiag.model import Configuration, Report
from pindiag.report.charts._svg import Row
from pindiag.report.tables import Cell, Line, Table


@dataclasses.dataclass(frozen=True)
class Detail:
    """A table of facts."""

    title: str
    note: str
    columns: Mapping[str, tuple[str, Callable[[float], str]]]
    """Each with the fact that it shows, and how that reads."""
    exists: Callable[[Configuration], bool] = lambda _: True
    """Whether a configuration has it at all: a dash where not."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """One that has figures."""

    detail: Detail
    table: Table


WORKERS = Detail(
    title="Workers in detail",
    note="A mean batch of one worker, from the records that it writes itself; times in milliseconds. On a CPU, queued "
    "for one: of fetching and collating, the part that was on a CPU; of the CPU time that it wanted, the part that it "
    "waited for one. CPUs: all its threads over its time, and those of them that neither fetch nor hand off, such as "
    "native threads of libraries. Blocked: its batch is ready, and the pipe to the main process is taken or full. "
    "Started in: the time in iter(loader); pickled in: the part of that in which the dataset was pickled for workers "
    "that are not forked.",
    columns={
        "a sample": ("worker_fetch_sample_ms", figures.milliseconds),
        "waits for an index": ("worker_idle_ms", figures.milliseconds),
        "busy": ("worker_busy_share", figures.share),
        "on a CPU": ("worker_fetch_cpu_share", figures.share),
        "queued for one": ("worker_run_delay_share", figures.share),
        "CPUs": ("worker_cpus", figures.significant),
        "of other threads": ("worker_other_threads_cpus", figures.significant),
        "threads": ("worker_threads", figures.count),
        "blocked": ("worker_blocked_ms", figures.milliseconds),
        "through the pipe": ("worker_sent_bytes", figures.byte_size),
        "page faults": ("worker_minor_faults", figures.significant),
        "that read": ("worker_major_faults", figures.significant),
        "memory of all (PSS)": ("worker_pss_bytes", figures.byte_size),
        "started in": ("worker_start_ms", figures.milliseconds),
        "pickled in": ("worker_pickle_ms", figures.milliseconds),
        "pickled": ("worker_pickle_bytes", figures.byte_size),
    },
    exists=lambda configuration: configuration.num_workers > 0,
)
PINNING = Detail(
    title="Pinning in detail",
    note="A mean batch of the pin thread (without workers: of the main thread), in milliseconds. Receives: reads a "
    "batch that is there, unpickles it and maps its memory. Allocates, copies: pinning is both in one call, and "
    "torch's allocator tells its part. Live: pinned memory in use at the end of a block, at most; cached: pinned "
    "memory kept for the next batch.",
    columns={
        "busy": ("pin_busy_share", figures.share),
        "waits for a batch": ("pin_idle_ms", figures.milliseconds),
        "receives": ("pin_receive_ms", figures.milliseconds),
        "allocates": ("pin_allocate_ms", figures.milliseconds),
        "copies": ("pin_copy_ms", figures.milliseconds),
        "allocations": ("host_allocations", figures.count),
        "a step's allocating": ("host_alloc_ms_per_step", figures.milliseconds),
        "live": ("pinned_active_bytes", figures.byte_size),
        "cached": ("pinned_cached_bytes", figures.byte_size),
    },
    exists=lambda configuration: configuration.pin_memory,
)
MACHINE = Detail(
    title="The machine meanwhile",
    note="While blocks counted. Held back: seconds a second in which the CPU quota of the control group stopped it. "
    "Pressure: the share of the time in which something waited for CPU, storage or memory (PSI). Read calls: what "
    "those who make batches got from them; of it from the page cache, not from storage.",
    columns={
        "all CPUs": ("target_cpu_share", figures.share),
        "held back": ("throttled_share", figures.share),
        "pressure: CPU": ("psi_cpu_share", figures.share),
        "storage": ("psi_io_share", figures.share),
        "memory": ("psi_memory_share", figures.share),
        "read calls, a second": ("fetched_bytes_per_s", figures.byte_size),
        "page cache": ("page_cache_share", figures.share),
        "storage, a second": ("storage_bytes_per_s", figures.byte_size),
        "/dev/shm, most": ("shm_used_max_bytes", figures.byte_size),
        "swap, most": ("swap_used_max_bytes", figures.byte_size),
    },
)


def shown(report: Report, rows: Sequence[Row], *details: Detail) -> list[Shown]:
    """Those in which anything was measured.

    Args:
        report: whose facts they are.
        rows: one a trial.
        details: in their order.
    """
    known = {(fact.name, fact.trial): fact.value for fact in report.facts}
    values = {key: float(value) for key, value in known.items() if isinstance(value, (int, float))}
    tables = [(detail, _table(detail, rows, values)) for detail in details]
    return [Shown(detail, table) for detail, table in tables if table is not None]


def _table(detail: Detail, rows: Sequence[Row], values: Mapping[tuple[str, str | None], float]) -> Table | None:
    columns = [
        column
        for column, (name, _) in detail.columns.items()
        if any((name, row.trial.id) in values for row in rows if detail.exists(row.trial.configuration))
    ]
    if not columns:
        return None
    lines = [Line(row, [_cell(detail, column, row, values) for column in columns], failed=None) for row in rows]
    return Table(columns=columns, lines=lines)


def _cell(detail: Detail, column: str, row: Row, values: Mapping[tuple[str, str | None], float]) -> Cell:
    if not detail.exists(row.trial.configuration):
        return Cell("–")
    name, text = detail.columns[column]
    value = values.get((name, row.trial.id))
    return Cell(None) if value is None else Cell(text(value), value)
