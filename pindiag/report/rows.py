"""Trials as charts and tables show them: labelled, in order, with what each of their rounds gave."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import structs

from pindiag.model import BlockFigures, Estimate, Isolation, Report, Trial
from pindiag.report import about, names
from pindiag.report.charts._svg import Row
from pindiag.report.charts.stages import Steps

LEAST_REST = 0.005
"""Share of a step below which what the stages leave over is rounding."""


def configurations(report: Report, labels: Mapping[str, str]) -> list[Row]:
    """Configurations, fastest first; those without figures last. Other batch sizes have rows of their own."""
    chosen = report.recommendation.trial if report.recommendation else None
    found = []
    for trial in report.trials:
        if not about.competes(report, trial):
            continue
        role: Literal["chosen", "baseline", "other"] = "baseline" if trial.id == report.baseline else "other"
        if trial.id == chosen and chosen != report.baseline:
            role = "chosen"
        label = labels[trial.id] + (" (as written)" if role == "baseline" else "")
        found.append(Row(trial, label, role, _round_ratios(report, trial), _at_most(report, trial)))
    return sorted(found, key=lambda row: -_speed(row.trial))


def batch_sizes(report: Report) -> list[Row]:
    """The script as written among other batch sizes, the smallest first; empty where no other was asked for.

    They run fresh, so the script as written stands here with what it reached in the same rounds.
    """
    sizes = [one for one in report.trials if one.kind == "configuration" and not about.competes(report, one)]
    baseline = about.trial(report, report.baseline)
    if not sizes or baseline is None:
        return []
    rounds = {block.round for block in report.blocks if block.trial in {one.id for one in sizes}}
    reference = _by_round(report, report.baseline)
    beside = [reference[number] for number in sorted(rounds & reference.keys())]
    rate = Estimate(median=statistics.median(beside), ci95=None) if beside else baseline.samples_per_second
    found = [Row(structs.replace(baseline, samples_per_second=rate), _size(baseline) + " (as written)", "baseline")]
    found += [Row(one, _size(one), "other", _round_ratios(report, one)) for one in sizes]
    return sorted(found, key=lambda row: row.trial.configuration.batch_size or 0)


def _size(trial: Trial) -> str:
    size = trial.configuration.batch_size
    return names.configuration(trial.configuration) + (", no batch size" if size is None else f", batch {size}")


def _speed(trial: Trial) -> float:
    if trial.versus_baseline is not None:
        return trial.versus_baseline.ratio
    return median_rate(trial) * 1e-9 if trial.samples_per_second else -1.0


def median_rate(trial: Trial) -> float:
    """Median samples/s, 0 where nothing was measured: for sorting."""
    return trial.samples_per_second.median if trial.samples_per_second else 0.0


def _at_most(report: Report, trial: Trial) -> float | None:
    """What a trial that was not run could have brought over the script as written at most."""
    baseline = about.trial(report, report.baseline)
    if (
        trial.samples_per_second
        or trial.predicted_samples_per_second is None
        or baseline is None
        or baseline.samples_per_second is None
    ):
        return None
    return trial.predicted_samples_per_second / baseline.samples_per_second.median


def _round_ratios(report: Report, trial: Trial) -> tuple[float, ...]:
    """Throughput over the baseline's of the same round."""
    own, reference = _by_round(report, trial.id, trial.blocks), _by_round(report, report.baseline)
    return tuple(own[number] / reference[number] for number in sorted(own) if reference.get(number))


def _by_round(report: Report, trial: str | None, among: Collection[int] | None = None) -> dict[int, float]:
    logs: dict[int, list[float]] = {}
    for block in report.blocks:
        wanted = block.trial == trial and block.purpose != "verify" and (among is None or block.id in among)
        if wanted and counts(block):
            logs.setdefault(block.round, []).append(math.log(block.samples / block.seconds))
    return {number: math.exp(sum(values) / len(values)) for number, values in logs.items()}


def counts(block: BlockFigures) -> bool:
    """Whether a block's throughput counts."""
    return block.seconds > 0 and block.samples > 0 and block.status == "counted"


def isolation_of(report: Report) -> dict[int, Isolation]:
    """How each block ran: in a launch of many treatments, or of its own."""
    launches = {launch.id: launch.isolation for launch in report.launches}
    return {block.id: launches[block.launch] for block in report.blocks if block.launch in launches}


def steps(report: Report, measured: Sequence[Row]) -> list[Steps]:
    """Mean steps of configurations, and of the step alone where it was measured."""
    alone = about.trial(report, report.ceilings.compute_only)
    rows = [*measured, *([Row(alone, names.ALONE, "other")] if alone else [])]
    return [one for row in rows if (one := _steps(report, row))]


def _steps(report: Report, row: Row) -> Steps | None:
    """Measured stages of a mean step; what is missing of the whole is `rest`."""
    known = {name: value for name in names.STAGES if (value := getattr(row.trial.stage_ms, name)) is not None}
    blocks = [block for block in report.blocks if block.id in set(row.trial.blocks) and block.steps]
    if len(known) < len(names.STAGES) and blocks:
        whole = 1e3 * sum(block.seconds for block in blocks) / sum(block.steps for block in blocks)
        rest = whole - sum(known.values())
        if known and rest > LEAST_REST * whole:
            known["rest"] = rest
    shown = {name: value for name, value in known.items() if value > 0}
    return Steps(row, shown) if shown else None
