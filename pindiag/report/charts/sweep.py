"""The sweep: throughput over that of the script as written, with intervals and the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.model import Ratio
from pindiag.report import names
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import BAR, BG, LINE, MUTED, Row
from pindiag.report.text import clean

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 50, 100)
_FINE_TICKS = (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25)
_REASON_LENGTH = 72


def chart(rows: Sequence[Row], floor: float | None, title: str) -> Markup:
    """A row for each configuration; what failed or was not run keeps its row and says why."""
    return _svg.draw(
        "sweep",
        title,
        f"Ratios of throughput with 95 percent intervals for {len(rows)} configurations; the table has all values.",
        lambda narrow: _figure(rows, floor, narrow),
    )


def _figure(rows: Sequence[Row], floor: float | None, narrow: bool) -> Figure:
    width, height, left, right = (
        (_svg.NARROW_WIDTH, 38, 0, 8) if narrow else (_svg.WIDE_WIDTH, 29, _svg.label_width(rows), 150)
    )
    figure, ax, ys = _svg.rows_axes(rows, width=width, row=height, left=left, right=right)
    ax.set_xscale("log")
    bounds = [Ratio(ratio=row.at_most, ci95=None, rounds=0) for row in rows if row.at_most is not None]
    limits = _limits([row.trial.versus_baseline for row in rows if row.trial.versus_baseline] + bounds, floor)
    ax.set_xlim(limits)
    if floor is not None:
        ax.axvspan(1 / floor, floor, color=LINE, zorder=0, linewidth=0)
    ax.axvline(1, color=BAR, linewidth=1.5, zorder=1)
    _rounds(ax, rows, ys)
    for row, y in zip(rows, ys, strict=True):
        _mark(ax, row, y)
        _say(ax, row, y, (0, 0.44 * height) if narrow else (right, 0), narrow)
    ticks = _ticks(limits)
    texts = [f"{tick:g}" for tick in ticks]
    _svg.finish_x(ax, limits, ticks, [*texts[:-1], texts[-1] + (" ×" if narrow else " × as written")])
    return figure


def _rounds(ax: Axes, rows: Sequence[Row], ys: Sequence[float]) -> None:
    """A tick for each round, those of all rows at once, which is much faster than row by row."""
    shown = [
        (ratio, y)
        for row, y in zip(rows, ys, strict=True)
        if row.trial.status == "measured" and row.role != "baseline"
        for ratio in row.ratios
    ]
    ratios, places = [ratio for ratio, _ in shown], [y for _, y in shown]
    ax.plot(ratios, places, "|", color=MUTED, markersize=9, markeredgewidth=1, zorder=3)


def _mark(ax: Axes, row: Row, y: float) -> None:
    measured, record = row.trial.versus_baseline, _svg.record_of(row.trial.id)
    if row.at_most is not None:
        bound = ax.plot(
            [row.at_most], [y], "o", color=BG, markersize=7, markeredgecolor=row.colour, markeredgewidth=1.5
        )
        _svg.leads(bound, record)
    if row.trial.status != "measured" or measured is None:
        return
    if row.role != "baseline" and measured.ci95 is not None:
        style = "-" if measured.rounds >= 3 else "--"
        ax.plot(measured.ci95, (y, y), color=row.colour, linewidth=2, solid_capstyle="butt", linestyle=style)
    shape = "D" if row.role == "baseline" else "o"
    dot = ax.plot([measured.ratio], [y], shape, color=row.colour, markersize=7, markeredgecolor=BG, markeredgewidth=1.5)
    dot[0].set_zorder(4)
    _svg.leads(dot, record)


def _say(ax: Axes, row: Row, y: float, offset: tuple[float, float], narrow: bool) -> None:
    measured = row.trial.versus_baseline
    if row.trial.status != "measured" or measured is None:
        text = _in_place_of_a_dot(row)
        length = 44 if narrow else _REASON_LENGTH
        text = str(clean(text if len(text) <= length else text[: length - 1] + "…"))
        said = ax.annotate(
            text,
            (0 if row.at_most is None else row.at_most, y),
            xycoords="data" if row.at_most is not None else ("axes fraction", "data"),
            xytext=(0 if narrow and row.at_most is None else 12, 0),
            textcoords="offset pixels",
            va="center_baseline",
            color=MUTED,
            style="italic",
            size=11,
        )
        _svg.leads(said, _svg.record_of("" if row.at_most is None else row.trial.id))
        return
    text = "as written = 1" if row.role == "baseline" else figures.ratio_with_interval(measured.ratio, measured.ci95)
    said = ax.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=offset,
        textcoords="offset pixels",
        ha="right",
        va="center_baseline",
        color=row.colour,
        weight=row.weight,
    )
    _svg.leads(said, _svg.record_of(row.trial.id))


def _in_place_of_a_dot(row: Row) -> str:
    if row.at_most is not None:
        return f"not run: at most {figures.ratio(row.at_most)}"
    return names.without_figures(row.trial) or row.trial.reason or ""


def _limits(ratios: Sequence[Ratio], floor: float | None) -> tuple[float, float]:
    """What all points and most of their intervals need: one wild interval must not flatten the rest."""
    points = [one.ratio for one in ratios] or [1.0]
    lows = [one.ci95[0] if one.ci95 else one.ratio for one in ratios]
    highs = [one.ci95[1] if one.ci95 else one.ratio for one in ratios]
    band = floor or 1.0
    low = max(min([*lows, *points, 1 / band]), min(points) / 1.8)
    high = min(max([*highs, *points, band]), max(points) * 1.8)
    return min(low / 1.04, 0.93), max(high * 1.04, 1.07)


def _ticks(limits: tuple[float, float]) -> list[float]:
    low, high = limits
    candidates = _FINE_TICKS if high / low < 1.6 else _TICKS
    inside = [tick for tick in candidates if low <= tick <= high]
    apart = math.log(high / low) / 9
    chosen = [1.0]
    for tick in sorted(inside, key=lambda one: abs(math.log(one))):
        if all(abs(math.log(tick / other)) >= apart for other in chosen):
            chosen.append(tick)
    return sorted(chosen)
