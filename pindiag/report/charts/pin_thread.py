"""What more workers bring: the loader alone, with the pin thread and without, and training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.model import Estimate, Trial
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import ACCENT, BAR, BG, INK, MUTED

FEWEST = 2
"""Numbers of workers that make a line."""
_COLOURS = {"accent": ACCENT, "ink": INK, "grey": BAR}


@dataclasses.dataclass(frozen=True)
class Line:
    """Samples/s by number of workers."""

    label: str
    role: Literal["accent", "ink", "grey"]
    points: Mapping[int, Trial]

    @property
    def rates(self) -> dict[int, Estimate]:
        """What was measured, the fewest workers first."""
        found = {workers: self.points[workers].samples_per_second for workers in sorted(self.points)}
        return {workers: rate for workers, rate in found.items() if rate is not None}


def chart(lines: Sequence[Line], title: str) -> Markup:
    """A line each, labelled at its end."""
    return _svg.draw(
        "workers",
        title,
        "Samples per second by number of workers: " + "; ".join(map(_words, lines)) + ".",
        lambda narrow: _figure(lines, narrow),
    )


def _words(line: Line) -> str:
    values = ", ".join(f"{figures.significant(rate.median)} with {n}" for n, rate in line.rates.items())
    return f"{line.label} {values}"


def _figure(lines: Sequence[Line], narrow: bool) -> Figure:
    (width, right), height = ((_svg.NARROW_WIDTH, 14.0) if narrow else (560, 190.0)), 300.0
    figure = _svg.canvas(width, height)
    ax = figure.add_axes((52 / width, 42 / height, 1 - (52 + right) / width, 1 - 68 / height))
    counts = sorted({workers for line in lines for workers in line.rates})
    top = _svg.reach([rate for line in lines for rate in line.rates.values()])
    for line in lines:
        _draw(ax, line)
    reach = max(counts[-1], 1)
    ax.set(xlim=(-0.04 * reach, 1.04 * reach), ylim=(0, top * 1.05), xlabel="num_workers", xticks=counts)
    ticks = _svg.nice_ticks(top * 1.05)
    ax.set_yticks(ticks, [figures.significant(tick) for tick in ticks])
    ax.grid(axis="y")
    ax.text(0, 1.05, "samples/s", transform=ax.transAxes, color=MUTED, size=11, ha="center")
    lowest = min(lines, key=_last)
    for line, y in zip(lines, _apart([_last(line) for line in lines], top * 0.075), strict=True):
        if narrow:
            _label(ax, line, _last(line), (0, -9 if line is lowest else 9))
        else:
            _label(ax, line, y, (12, 0))
    return figure


def _draw(ax: Axes, line: Line) -> None:
    colour, shape = _COLOURS[line.role], "D" if line.role == "ink" else "o"
    ax.plot(list(line.rates), [rate.median for rate in line.rates.values()], color=colour, linewidth=2)
    for workers, rate in line.rates.items():
        if rate.ci95 is not None:
            ax.plot((workers, workers), rate.ci95, color=colour, linewidth=1.5)
        dot = ax.plot([workers], [rate.median], shape, color=colour, markersize=6, markeredgecolor=BG)
        _svg.leads(dot, _svg.record_of(line.points[workers].id))


def _last(line: Line) -> float:
    return next(reversed(line.rates.values())).median if line.rates else 0.0


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights of labels, moved down where they would touch the one above."""
    moved: dict[int, float] = {}
    above = float("inf")
    for index in sorted(range(len(heights)), key=lambda index: -heights[index]):
        above = moved[index] = min(heights[index], above - least)
    return [moved[index] for index in range(len(heights))]


def _label(ax: Axes, line: Line, y: float, offset: tuple[float, float]) -> None:
    """Beside its end; on phones, where there is no room, above or below it."""
    (aside, up), last = offset, max(line.rates, default=0)
    said = ax.annotate(
        line.label,
        (last, y),
        xytext=offset,
        textcoords="offset pixels",
        ha="left" if aside else "right",
        va="bottom" if up > 0 else "top" if up < 0 else "center_baseline",
        color=MUTED if line.role == "grey" else _COLOURS[line.role],
        weight="normal" if line.role == "grey" else "bold",
    )
    _svg.leads(said, _svg.record_of(line.points[last].id if line.rates else ""))
