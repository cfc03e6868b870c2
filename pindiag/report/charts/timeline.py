"""Some steps in a row: who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag.model import Span
from pindiag.report import names
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import ACCENT, BAR, BG, INK, LINE, MUTED, SOFT

_LANES = ("pin thread", "main", "copies", "kernels")
_MOST_LANES = 12
_IDLE = frozenset(("wait", "idle", "blocked", "synchronise"))
_LIGHT = frozenset(("collate", "python", "step"))
"""Told from their neighbours by a lighter fill."""
_SCRIPT = frozenset(("operators", "backward", "python"))
_BESIDE = frozenset(("hand-off", "blocked"))
"""In a thread of its own, beside the rest of its lane: at the lower edge of it."""
_LETTER_PX = 6.9


def chart(
    spans: Sequence[Span], marks_ms: Sequence[float], spoken: str, title: str, *, slug: str = "timeline"
) -> Markup:
    """A lane for each worker, thread and stream; waiting is hollow.

    Args:
        spans: the bars.
        marks_ms: where steps begin and end, milliseconds.
        spoken: the stage that the verdict speaks of.
        title: the conclusion.
        slug: prefix of all ids.
    """
    lanes = _lanes(spans)
    return _svg.draw(
        slug,
        title,
        f"Milliseconds over some steps. Lanes from above: {', '.join(lanes)}. Hollow bars are waits.",
        lambda narrow: _figure(spans, lanes, marks_ms, spoken, narrow),
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


def _figure(
    spans: Sequence[Span], lanes: Sequence[str], marks_ms: Sequence[float], spoken: str, narrow: bool
) -> Figure:
    width, lane_height, left = (_svg.NARROW_WIDTH, 26, 72) if narrow else (_svg.WIDE_WIDTH, 28, 92)
    height = len(lanes) * lane_height + _svg.AXIS_HEIGHT
    figure = _svg.canvas(width, height)
    box = (left / width, _svg.AXIS_HEIGHT / height, 1 - (left + 40) / width, 1 - _svg.AXIS_HEIGHT / height)
    ax = figure.add_axes(box)
    end = max([span.end_ms for span in spans] + list(marks_ms[-1:])) or 1.0
    px_per_ms = (width - left - 40) / end
    for mark in (mark for mark in marks_ms[1:-1] if mark > 0):
        ax.axvline(mark, color=MUTED, linewidth=1, linestyle=(0, (2, 3)), zorder=1)
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
        # the narrow drawing's letters have a halo, in which light ones are lost
        words = INK if narrow else BG
        for bar in sorted((one for one in spans if one.lane == lane), key=_paint_order):
            _bar(ax, bar, index, px_per_ms, words if _is_spoken(bar.name, spoken) else None)
    ax.set(ylim=(0.5 - len(lanes), 0.5), yticks=[])
    ticks = _svg.nice_ticks(end, 3 if narrow else 6)
    texts = [f"{tick:g}" for tick in ticks]
    _svg.finish_x(ax, (0, end), ticks, [*texts[:-1], f"{texts[-1]} ms"])
    return figure


def _is_spoken(name: str, spoken: str) -> bool:
    return name == spoken or (spoken == "script" and name in _SCRIPT)


def _paint_order(bar: Span) -> int:
    """Hollow bars over filled ones, and what runs beside a lane over both."""
    return 2 if bar.name in _BESIDE else int(bar.name in _IDLE)


def _bar(ax: Axes, bar: Span, index: int, px_per_ms: float, on_accent: str | None) -> None:
    """A bar and, where it has room, its name (whose colour on the accent is given where the verdict speaks of it)."""
    hollow, beside = bar.name in _IDLE, bar.name in _BESIDE
    filled = (ACCENT, on_accent) if on_accent else (SOFT if bar.name in _LIGHT else BAR, INK)
    face, words = (BG, INK) if hollow else filled
    edge = (ACCENT if on_accent else BAR) if hollow else BG
    bottom, height = (-index - 0.38, 0.26) if beside else (-index - 0.3, 0.6)
    length = bar.end_ms - bar.start_ms
    thin = length * px_per_ms < 3
    ax.broken_barh(
        [(bar.start_ms, length)],
        (bottom, height),
        facecolors=face,
        edgecolors=face if thin and not hollow else edge,
        linewidth=1,
        zorder=2,
    )
    if beside or bar.name == bar.lane:
        return
    said = names.span(bar.name)
    if length * px_per_ms > _LETTER_PX * len(said) + 6:
        middle = bar.start_ms + length / 2
        ax.text(middle, -index, said, color=words, ha="center", va="center_baseline", size=11, zorder=3)
