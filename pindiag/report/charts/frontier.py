"""What throughput costs in memory."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import BAR, BG, MUTED, Row

Point = tuple[int, float, Row]
_LABEL_HEIGHT = 30.0
"""Points nearer than this, in drawn pixels, leave no room for a label of their own."""


def chart(rows: Sequence[Row], frontier: Sequence[str], title: str) -> Markup:
    """A dot for each configuration, a line through those that no other one beats in both."""
    return _svg.draw(
        "frontier",
        title,
        f"Memory against samples per second for {len(rows)} configurations; the table below has both.",
        lambda narrow: _figure(rows, frontier, narrow),
    )


def _figure(rows: Sequence[Row], frontier: Sequence[str], narrow: bool) -> Figure:
    width, height, right = (_svg.NARROW_WIDTH, 300.0, 16) if narrow else (560, 320.0, 30)
    figure = _svg.canvas(width, height)
    ax = figure.add_axes((52 / width, 42 / height, 1 - (52 + right) / width, 1 - 68 / height))
    points = [
        (row.trial.memory_bytes.total or 0, rate.median, row) for row in rows if (rate := row.trial.samples_per_second)
    ]
    line = sorted((x, y) for x, y, row in points if row.trial.id in frontier)
    ax.plot([x for x, _ in line], [y for _, y in line], color=BAR, linewidth=1.5, zorder=1)
    for x, y, row in points:
        spread = row.trial.samples_per_second.ci95 if row.trial.samples_per_second else None
        colour = BAR if row.role == "other" else row.colour
        if spread is not None:
            ax.plot((x, x), spread, color=colour, linewidth=1)
        shape = "D" if row.role == "baseline" else "o"
        dot = ax.plot([x], [y], shape, color=colour, markersize=8, markeredgecolor=BG, markeredgewidth=1.5)
        _svg.leads(dot, _svg.record_of(row.trial.id))
    reach = max(x for x, _, _ in points)
    top = _svg.reach([rate for _, _, row in points if (rate := row.trial.samples_per_second)])
    lowest = min(y for _, y, _ in points)
    least = min(x for x, _, _ in points)
    margin = max((reach - least) * 0.08, reach * 0.02)
    ax.set(xlim=(least - margin, reach + margin), ylim=(0.75 * lowest, top * 1.05))
    named = [point for point in points if point[2].role != "other"]
    on_line = [point for point in points if point[2].trial.id in frontier and point not in named]
    for x, y, row in [*named, *_apart(ax, on_line, named)]:
        _label(ax, x, y, row, at_right=x < (least + reach) / 2)
    unit, size = ("GB", 1e9) if reach >= 1e9 else ("MB", 1e6)
    xs = _svg.nice_ticks(reach + margin, 3 if narrow else 4, start=least - margin)
    ax.set_xticks(xs, [f"{tick / size:g}" for tick in xs])
    ys = _svg.nice_ticks(top * 1.05, start=0.75 * lowest)
    ax.set_yticks(ys, [figures.significant(tick) for tick in ys])
    ax.set_xlabel(f"memory of all processes, {unit}")
    ax.grid(axis="y")
    ax.text(0, 1.05, "samples/s", transform=ax.transAxes, color=MUTED, size=11, ha="center")
    return figure


def _apart(ax: Axes, points: Sequence[Point], named: Sequence[Point]) -> list[Point]:
    """Those of some points whose label would cross none of a named point or of each other."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda one: -one[1]):
        _, y = ax.transData.transform(point[:2])
        others = [ax.transData.transform(other[:2]) for other in (*named, *kept)]
        if all(abs(y - other_y) > _LABEL_HEIGHT for _, other_y in others):
            kept.append(point)
    return kept


def _label(ax: Axes, x: float, y: float, row: Row, *, at_right: bool) -> None:
    """Above the dot what was chosen, below it all else."""
    above = row.role == "chosen"
    said = ax.annotate(
        "as written" if row.role == "baseline" else row.label,
        (x, y),
        xytext=(9 if at_right else -9, 9 if above else -9),
        textcoords="offset pixels",
        ha="left" if at_right else "right",
        va="bottom" if above else "top",
        color=MUTED if row.role == "other" else row.colour,
        weight=row.weight,
    )
    _svg.leads(said, _svg.record_of(row.trial.id))
