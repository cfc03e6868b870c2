"""What each configuration reached: samples/s from 0."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import BAR, Row

_NARROW_ROWS = 6


def chart(rows: Sequence[Row], title: str) -> Markup:
    """A bar for each measured configuration, its 95 % interval over the bar's end."""
    numbers = "; ".join(f"{row.label}: {figures.rate(_rate(row))}" for row in rows)
    return _svg.draw("reached", title, f"Samples per second. {numbers}.", lambda narrow: _figure(rows, narrow))


def _rate(row: Row) -> float:
    return row.trial.samples_per_second.median if row.trial.samples_per_second else 0.0


def _few(rows: Sequence[Row]) -> list[Row]:
    """What a phone's first screen can hold; the recommended row and the baseline stay."""
    room = _NARROW_ROWS - sum(row.role != "other" for row in rows)
    kept = {row.trial.id for row in [row for row in rows if row.role == "other"][:room]}
    return [row for row in rows if row.role != "other" or row.trial.id in kept]


def _figure(rows: Sequence[Row], narrow: bool) -> Figure:
    if narrow:
        rows = _few(rows)
    height = 32.0 if narrow else max(22.0, min(34.0, 330 / len(rows)))
    width, left = (_svg.NARROW_WIDTH, 0.0) if narrow else (660, _svg.label_width(rows))
    figure, ax, ys = _svg.rows_axes(rows, width=width, row=height, left=left, right=20)
    reach = 0.0
    for row, y in zip(rows, ys, strict=True):
        rate = row.trial.samples_per_second
        if rate is None:
            continue
        colour = BAR if row.role == "other" else row.colour
        ax.barh(y, rate.median, 0.24 if narrow else 0.5, color=colour)
        end = max(rate.ci95[1], rate.median) if rate.ci95 else rate.median
        if rate.ci95:
            _svg.interval_line(ax, rate.ci95, y)
        ax.annotate(
            figures.significant(rate.median),
            (end, y),
            xytext=(7, 0),
            textcoords="offset pixels",
            va="center_baseline",
            size=12 if narrow else 13,
            color=row.colour,
            weight="normal" if row.role == "other" else "bold",
        )
        reach = max(reach, end)
    limit = reach * (1.22 if narrow else 1.17) or 1.0
    ticks = _svg.nice_ticks(limit * 0.8, 3)
    texts = [figures.significant(tick) for tick in ticks]
    _svg.finish_x(ax, (0, limit), ticks, [*texts[:-1], f"{texts[-1]} samples/s"])
    return figure
