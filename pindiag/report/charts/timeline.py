"""Some steps in a row: who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag.model import Span
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import ACCENT, BAR, BG, INK, LINE, MUTED

_LANES = ("pin thread", "main", "copies", "kernels")
_MOST_LANES = 12
_IDLE = frozenset(("wait", "idle", "synchronise"))


def chart(spans: Sequence[Span], spoken: str, title: str) -> Markup:
    """A lane for each worker, thread and stream; waiting is hollow."""
    lanes = _lanes(spans)
    return _svg.draw(
        "timeline",
        title,
        f"Milliseconds over some steps. Lanes from above: {', '.join(lanes)}. Hollow bars are waits.",
        lambda narrow: _figure(spans, lanes, spoken, narrow),
    )


def _lanes(spans: Sequence[Span]) -> list[str]:
    """Workers first, then what stands behind them on a batch's way to the GPU."""
    found = sorted({span.lane for span in spans}, key=_by_way)
    known = [lane for lane in found if lane in _LANES]
    return [lane for lane in found if lane not in _LANES][: _MOST_LANES - len(known)] + known


def _by_way(lane: str) -> tuple[int, str, int]:
    if lane in _LANES:
        return (1 + _LANES.index(lane), lane, 0)
    number = re.search(r"\d+$", lane)
    return (0, lane[: number.start()] if number else lane, int(number[0]) if number else 0)


def _figure(spans: Sequence[Span], lanes: Sequence[str], spoken: str, narrow: bool) -> Figure:
    width, lane_height, left = (_svg.NARROW_WIDTH, 26, 72) if narrow else (_svg.WIDE_WIDTH, 28, 92)
    height = len(lanes) * lane_height + _svg.AXIS_HEIGHT
    figure = _svg.canvas(width, height)
    box = (left / width, _svg.AXIS_HEIGHT / height, 1 - (left + 40) / width, 1 - _svg.AXIS_HEIGHT / height)
    ax = figure.add_axes(box)
    start = min(span.start_ms for span in spans)
    end = max(span.end_ms for span in spans)
    for index, lane in enumerate(lanes):
        ax.axhline(-index, color=LINE, linewidth=1, zorder=0)
        ax.annotate(
            lane,
            (0, -index),
            xycoords=("axes fraction", "data"),
            xytext=(-10, 0),
            textcoords="offset pixels",
            ha="right",
            va="center_baseline",
            color=INK if lane in _LANES else MUTED,
            size=11 if narrow else 12,
        )
        for hollow in (False, True):
            _bars(
                ax, [one for one in spans if one.lane == lane and (one.name in _IDLE) == hollow], index, start, spoken
            )
    ax.set(ylim=(0.5 - len(lanes), 0.5), yticks=[])
    ticks = _svg.nice_ticks(end - start, 3 if narrow else 6)
    texts = [f"{tick:g}" for tick in ticks]
    _svg.finish_x(ax, (0, (end - start) or 1.0), ticks, [*texts[:-1], f"{texts[-1]} ms"])
    return figure


def _bars(ax: Axes, spans: Sequence[Span], index: int, start: float, spoken: str) -> None:
    if not spans:
        return
    ax.broken_barh(
        [(span.start_ms - start, span.end_ms - span.start_ms) for span in spans],
        (-index - 0.3, 0.6),
        facecolors=[BG if span.name in _IDLE else ACCENT if span.name == spoken else BAR for span in spans],
        edgecolors=[ACCENT if span.name == spoken else BAR for span in spans],
        linewidth=1,
    )
