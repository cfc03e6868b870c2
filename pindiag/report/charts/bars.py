"""Bars of samples/s from 0, a 95 % interval over the end of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from pindiag import figures
from pindiag.model import Estimate
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import ACCENT, BAR, INK, MUTED
from pindiag.report.text import clean

WIDE_WIDTH = 660
_REASON_LENGTH = 56


@dataclasses.dataclass(frozen=True)
class Bar:
    """A row of the chart."""

    label: str
    rate: Estimate | None
    role: Literal["accent", "ink", "grey"]
    """accent: what the verdict speaks of; ink: what it is compared with."""
    reason: str = ""
    """Why there is no rate."""
    trial: str = ""
    """Whose blocks it was measured in."""

    @property
    def colour(self) -> str:
        """Of its words."""
        return ACCENT if self.role == "accent" else INK

    @property
    def fill(self) -> str:
        """Of the bar itself."""
        return {"accent": ACCENT, "ink": INK, "grey": BAR}[self.role]

    @property
    def weight(self) -> str:
        """The accent never stands alone: what has it is bold as well."""
        return "bold" if self.role == "accent" else "normal"


def numbers(bars: Sequence[Bar]) -> str:
    """The chart's description: every bar in words."""
    said = [f"{bar.label}: {figures.rate(bar.rate.median) if bar.rate else _missing(bar)}" for bar in bars]
    return f"Samples per second. {'; '.join(said)}."


def figure(bars: Sequence[Bar], narrow: bool, gap_before: int | None = None) -> Figure:
    """The drawing; a bar without a rate keeps its row and says why."""
    height = (29.0 if gap_before else 32.0) if narrow else max(22.0, min(33.0, 315 / len(bars)))
    width, left = (_svg.NARROW_WIDTH, 0.0) if narrow else (WIDE_WIDTH, _svg.label_width(bars))
    drawn, ax, ys = _svg.rows_axes(bars, width=width, row=height, left=left, right=20, gap_before=gap_before)
    reach = _svg.reach([bar.rate for bar in bars if bar.rate])
    for bar, y in zip(bars, ys, strict=True):
        if bar.rate is None:
            _say(ax, _missing(bar), (0, y), 0, narrow, color=MUTED, style="italic")
            continue
        record = _svg.record_of(bar.trial)
        _svg.leads(ax.barh(y, bar.rate.median, 0.24 if narrow else 0.5, color=bar.fill), record)
        end = bar.rate.median
        if bar.rate.ci95:
            low, high = bar.rate.ci95
            end = max(end, min(high, reach))
            _svg.interval_line(ax, (low, min(high, reach)), y)
        weight = "normal" if bar.role == "grey" else "bold"
        text = figures.significant(bar.rate.median)
        _svg.leads(_say(ax, text, (end, y), 7, narrow, color=bar.colour, weight=weight), record)
    limit = reach * (1.22 if narrow else 1.17)
    ticks = _svg.nice_ticks(limit * 0.8, 3)
    texts = [figures.significant(tick) for tick in ticks]
    _svg.finish_x(ax, (0, limit), ticks, [*texts[:-1], f"{texts[-1]} samples/s"])
    return drawn


def _say(ax: Axes, text: str, at: tuple[float, float], offset: float, narrow: bool, **look: str) -> Annotation:
    return ax.annotate(
        text,
        at,
        xytext=(offset, 0),
        textcoords="offset pixels",
        va="center_baseline",
        size=12 if narrow else 13,
        **look,  # type: ignore[arg-type]
    )


def _missing(bar: Bar) -> str:
    reason = bar.reason if len(bar.reason) <= _REASON_LENGTH else f"{bar.reason[: _REASON_LENGTH - 1]}…"
    return str(clean(f"not measured ({reason})" if reason else "not measured"))
