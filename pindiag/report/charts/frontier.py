"""What throughput costs in memory."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import BAR, BG, INK, MUTED, Row


def memory_bytes(row: Row) -> int | None:
    """PSS, pinned and shared memory of a trial; None where the process's own share was not read."""
    used = row.trial.memory_bytes
    return None if used.pss is None else used.pss + (used.pinned or 0) + (used.shm or 0)


def chart(rows: Sequence[Row], frontier: Sequence[str], title: str) -> Markup:
    """A dot for each configuration, a line through those that no other one beats in both."""
    return _svg.draw(
        "frontier",
        title,
        f"Memory against samples per second for {len(rows)} configurations; the table of all configurations has both.",
        lambda narrow: _figure(rows, frontier, narrow),
    )


def _figure(rows: Sequence[Row], frontier: Sequence[str], narrow: bool) -> Figure:
    width, height, right = (_svg.NARROW_WIDTH, 300.0, 16) if narrow else (560, 320.0, 30)
    figure = _svg.canvas(width, height)
    ax = figure.add_axes((52 / width, 42 / height, 1 - (52 + right) / width, 1 - 68 / height))
    points = [(memory_bytes(row) or 0, rate.median, row) for row in rows if (rate := row.trial.samples_per_second)]
    line = sorted((x, y) for x, y, row in points if row.trial.id in frontier)
    ax.plot([x for x, _ in line], [y for _, y in line], color=BAR, linewidth=1.5, zorder=1)
    for x, y, row in points:
        spread = row.trial.samples_per_second.ci95 if row.trial.samples_per_second else None
        colour = BAR if row.role == "other" else row.colour
        if spread is not None:
            ax.plot((x, x), spread, color=colour, linewidth=1)
        shape = "D" if row.role == "baseline" else "o"
        ax.plot([x], [y], shape, color=colour, markersize=8, markeredgecolor=BG, markeredgewidth=1.5)
    reach = max(x for x, _, _ in points)
    top = _svg.reach([rate for _, _, row in points if (rate := row.trial.samples_per_second)])
    lowest = min(y for _, y, _ in points)
    least = min(x for x, _, _ in points)
    margin = max((reach - least) * 0.08, reach * 0.02)
    ax.set(xlim=(least - margin, reach + margin), ylim=(0.75 * lowest, top * 1.05))
    for x, y, row in points:
        if row.role != "other":
            _label(ax, x, y, row, at_right=x < (least + reach) / 2)
    unit, size = ("GB", 1e9) if reach >= 1e9 else ("MB", 1e6)
    xs = _svg.nice_ticks(reach + margin, 3 if narrow else 4, start=least - margin)
    ax.set_xticks(xs, [f"{tick / size:g}" for tick in xs])
    ys = _svg.nice_ticks(top * 1.05, start=0.75 * lowest)
    ax.set_yticks(ys, [figures.significant(tick) for tick in ys])
    ax.set_xlabel(f"{unit}: proportional, pinned and shared")
    ax.grid(axis="y")
    ax.text(0, 1.05, "samples/s", transform=ax.transAxes, color=MUTED, size=11, ha="center")
    return figure


def _label(ax: Axes, x: float, y: float, row: Row, *, at_right: bool) -> None:
    """Above the dot what was chosen, below it what is written."""
    above = row.role == "chosen"
    ax.annotate(
        "as written" if row.role == "baseline" else row.label,
        (x, y),
        xytext=(9 if at_right else -9, 9 if above else -9),
        textcoords="offset pixels",
        ha="left" if at_right else "right",
        va="bottom" if above else "top",
        color=row.colour if row.role == "chosen" else INK,
        weight=row.weight,
    )
