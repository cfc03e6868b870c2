"""The steps of one block, one after another: how long each took, and how long it waited for its batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pindiag.report.charts import _svg
from pindiag.report.charts._svg import BAR, BG, INK

MOST_STEPS = 240
"""More would be narrower than their outlines."""
_HEIGHT = 150


def chart(
    step_ms: Sequence[float], wait_ms: Sequence[float], first: int, marked: Collection[int], title: str
) -> Markup:
    """A column a step: hollow the wait for its batch, filled the rest; a triangle over each of the slowest.

    Args:
        step_ms: of steps in a row, at most `MOST_STEPS`.
        wait_ms: the part of each that waited.
        first: number of the first of them.
        marked: numbers of the slowest.
        title: the conclusion.
    """
    return _svg.draw(
        "strip",
        title,
        f"Milliseconds of steps {first} to {first + len(step_ms) - 1}, the longest {max(step_ms):.1f}; "
        "the table of the slowest steps has their values.",
        lambda narrow: _figure(step_ms, wait_ms, first, marked, narrow),
    )


def shown(lengths: Sequence[float], around: int) -> range:
    """The places of at most `MOST_STEPS` steps, one of them in their middle where there is room."""
    start = max(0, min(around - MOST_STEPS // 2, len(lengths) - MOST_STEPS))
    return range(start, min(start + MOST_STEPS, len(lengths)))


def _figure(
    step_ms: Sequence[float], wait_ms: Sequence[float], first: int, marked: Collection[int], narrow: bool
) -> Figure:
    width = _svg.NARROW_WIDTH if narrow else _svg.WIDE_WIDTH
    left, right = (56, 12) if narrow else (92, 40)
    figure = _svg.canvas(width, _HEIGHT)
    ax = figure.add_axes((left / width, 40 / _HEIGHT, 1 - (left + right) / width, 1 - 50 / _HEIGHT))
    numbers = np.arange(first, first + len(step_ms))
    steps, waits = np.array(step_ms), np.minimum(wait_ms, step_ms)
    room = (width - left - right) / len(steps)
    wide, edge = (0.8, 1.0) if room > 5 else (1.0, 0.0)
    hollow = _columns(numbers, np.zeros(len(steps)), waits, wide)
    filled = _columns(numbers, waits, steps, wide)
    ax.add_collection(PolyCollection(hollow, facecolor=BG, edgecolor=BAR, linewidth=max(edge, 0.4)))
    ax.add_collection(PolyCollection(filled, facecolor=BAR, edgecolor=BG, linewidth=edge * 0.5))
    top = float(steps.max()) * 1.15 or 1.0
    slowest = [number for number in marked if first <= number < first + len(steps)]
    ax.plot(slowest, [steps[number - first] + 0.05 * top for number in slowest], "v", color=INK, markersize=5)
    ticks = _svg.nice_ticks(top, 3)
    ax.set(xlim=(first - 0.6, first + len(steps) - 0.4), ylim=(0, top))
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks[:-1]] + [f"{ticks[-1]:g} ms"])
    ax.grid(axis="y")
    apart = max(1, len(steps) // (6 if narrow else 16))
    later = _svg.nice_ticks(first + len(steps) - 1, 3 if narrow else 5, start=first)
    at = [first, *(int(tick) for tick in later if tick > first + apart)]
    ax.set_xticks(at, [f"step {at[0]}", *(str(number) for number in at[1:])])
    return figure


def _columns(
    at: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64], wide: float
) -> list[NDArray[np.float64]]:
    """The corners of a column at each place; one collection of them is drawn far faster than as many bars."""
    left, right = at - wide / 2, at + wide / 2
    corners = ((left, low), (left, high), (right, high), (right, low))
    return list(np.stack([np.stack(corner, axis=1) for corner in corners], axis=1))
