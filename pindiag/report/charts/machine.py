"""The machine over the run: small multiples, blocks as grey bands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.model import Series
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import INK, LINE, MUTED

SAMPLES = "rec-samples"
"""The place in the page that names the files behind the lines."""
MOST_POINTS = 2000
"""Above it a series is drawn as the least and the largest value of each bin."""
_FACES = ((INK, "-", "——"), (MUTED, (0, (3, 1)), "– –"), (MUTED, (0, (1, 1)), "····"))
"""Colour, dashes, and the mark that shows both: no line is told by its colour alone."""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One small multiple: its title, unit and lines."""

    title: str
    text: Callable[[float], str]
    lines: tuple[tuple[str, Sequence[float | None]], ...]


def panels(series: Series) -> tuple[list[Panel], list[str]]:
    """Panels that have any value, and the names of those that have none."""

    def percent(value: float) -> str:
        return f"{value:.0f} %"

    wanted = [
        Panel("Memory of the script's processes", figures.byte_size, (("resident", series.rss_bytes),)),
        Panel(
            "CPU (100 % is one core)",
            percent,
            (("main process", series.main_cpu_percent), ("workers together", series.workers_cpu_percent)),
        ),
        Panel("GPU: time with any kernel", figures.share, (("GPU", series.gpu_utilization),)),
        Panel(
            "Pressure: time some task stalled",
            figures.share,
            (("CPU", series.psi_cpu_share), ("I/O", series.psi_io_share), ("memory", series.psi_memory_share)),
        ),
    ]
    kept = [
        dataclasses.replace(panel, lines=tuple(line for line in panel.lines if _measured(line[1]))) for panel in wanted
    ]
    return [one for one in kept if one.lines], [one.title for one in kept if not one.lines]


def binned(series: Series) -> bool:
    """Whether the lines are drawn from bins rather than from every sample."""
    return len(series.t_s) > MOST_POINTS


def chart(series: Series, shown: Sequence[Panel], title: str) -> Markup:
    """All panels in one drawing, two in a row where there is room."""
    names = ", ".join(panel.title for panel in shown)
    return _svg.draw(
        "machine", title, f"Over the run's seconds: {names}.", lambda narrow: _figure(series, shown, narrow)
    )


def _measured(values: Sequence[float | None]) -> bool:
    return any(value is not None for value in values)


def _figure(series: Series, shown: Sequence[Panel], narrow: bool) -> Figure:
    width, columns, height = (_svg.NARROW_WIDTH, 1, 150.0) if narrow else (_svg.WIDE_WIDTH, 2, 176.0)
    rows = -(-len(shown) // columns)
    figure = _svg.canvas(width, rows * height)
    cell = width / columns
    for index, panel in enumerate(shown):
        row, column = divmod(index, columns)
        left = column * cell + 58
        bottom = (rows - 1 - row) * height + 26
        box = (left / width, bottom / (rows * height), (cell - 58 - 24) / width, (height - 66) / (rows * height))
        _panel(figure.add_axes(box), series, panel, last=row == rows - 1 or narrow, wide=not narrow)
    return figure


def _panel(ax: Axes, series: Series, panel: Panel, *, last: bool, wide: bool) -> None:
    """A panel; in the narrow drawing, whose blocks are too thin for a finger, these lead nowhere."""
    end = series.t_s[-1] if series.t_s else 1.0
    bands = [(band.start_s, band.end_s - band.start_s) for band in series.bands]
    top = max(value for _, values in panel.lines for value in values if value is not None) or 1.0
    blocks = ax.broken_barh(bands, (0, top * 1.12), facecolors=LINE, linewidth=0, zorder=0)
    if wide:
        blocks.set_urls([_svg.address(f"block-{band.block}") for band in series.bands])
    for (_, values), (colour, dashes, _) in zip(panel.lines, _FACES, strict=False):
        times, drawn = _drawn(series.t_s, values)
        ax.plot(times, drawn, color=colour, linestyle=dashes, linewidth=1.5, solid_joinstyle="round")
    ax.set(xlim=(0, end or 1.0), ylim=(0, top * 1.12))
    ticks = _svg.nice_ticks(top * 1.12, 3)
    ax.set_yticks(ticks, [panel.text(tick) for tick in ticks])
    ax.grid(axis="y")
    seconds = _svg.nice_ticks(end, 4)
    texts = [f"{tick:g}" for tick in seconds]
    ax.set_xticks(seconds, [*texts[:-1], f"{texts[-1]} s"] if last else texts)
    _titles(ax, panel)


def _titles(ax: Axes, panel: Panel) -> None:
    title = ax.annotate(
        panel.title, (0, 1), xycoords="axes fraction", xytext=(-50, 22), textcoords="offset pixels", weight="bold"
    )
    _svg.leads(title, SAMPLES)
    if len(panel.lines) == 1:
        return
    at = -50.0
    for (name, _), (colour, _, mark) in zip(panel.lines, _FACES, strict=False):
        ax.annotate(
            mark, (0, 1), xycoords="axes fraction", xytext=(at, 6), textcoords="offset pixels", color=colour, size=11
        )
        ax.annotate(
            name,
            (0, 1),
            xycoords="axes fraction",
            xytext=(at + 28, 6),
            textcoords="offset pixels",
            color=MUTED,
            size=11,
        )
        at += 49 + 6.6 * len(name)


def _drawn(times: Sequence[float], values: Sequence[float | None]) -> tuple[list[float], list[float]]:
    """Points to draw; a gap is not a number, so that no line bridges it."""
    numbers = [float("nan") if value is None else value for value in values]
    size = -(-2 * len(numbers) // MOST_POINTS)
    if len(numbers) <= MOST_POINTS:
        return list(times), numbers
    at, drawn = [], []
    for start in range(0, len(numbers), size):
        bin_ = [value for value in numbers[start : start + size] if not math.isnan(value)]
        at += [times[start]] * 2
        drawn += [min(bin_), max(bin_)] if bin_ else [float("nan")] * 2
    return at, drawn
