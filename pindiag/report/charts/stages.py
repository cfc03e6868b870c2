"""Where a step goes: main-thread stages, stacked for each configuration."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag import figures
from pindiag.report.charts import _svg
from pindiag.report.charts._svg import ACCENT, BAR, BG, INK, LINE, MUTED, SOFT, Row

_FACES = {
    "pin": (LINE, INK),
    "synchronise": (MUTED, BG),
    "optimizer": (BG, INK),
    "rest": (SOFT, INK),
}


@dataclasses.dataclass(frozen=True)
class Steps:
    """A mean step of one trial, in milliseconds: measured stages, and what is left as `rest`."""

    row: Row
    parts: dict[str, float]

    @property
    def total(self) -> float:
        """The whole step."""
        return sum(self.parts.values())


def faces(spoken: str) -> dict[str, tuple[str, str]]:
    """Fill and text colour of each stage; the accent marks the one that the verdict speaks of."""
    grey = iter(((BAR, INK), (SOFT, INK)))
    return {
        **_FACES,
        **{part: (ACCENT, BG) if part == spoken else next(grey) for part in ("wait", "transfer", "script")},
    }


def chart(steps: Sequence[Steps], spoken: str, title: str) -> Markup:
    """A stacked bar for each trial; means, so that the parts add up to the step."""
    return _svg.draw(
        "stages",
        title,
        f"Milliseconds of a mean step in the main thread for {len(steps)} configurations, by stage; "
        "the table of all configurations has the values.",
        lambda narrow: _stacked(steps, faces(spoken), narrow),
    )


def breakdown(steps: Steps, spoken: str, title: str) -> Markup:
    """One bar for each stage of a single trial."""
    numbers = ", ".join(f"{part} {figures.milliseconds(value)}" for part, value in steps.parts.items())
    return _svg.draw(
        "breakdown", title, f"Milliseconds of a mean step: {numbers}.", lambda narrow: _apart(steps, spoken, narrow)
    )


def _stacked(steps: Sequence[Steps], colours: dict[str, tuple[str, str]], narrow: bool) -> Figure:
    width, height, left = (
        (_svg.NARROW_WIDTH, 36, 0) if narrow else (_svg.WIDE_WIDTH, 29, _svg.label_width([one.row for one in steps]))
    )
    figure, ax, ys = _svg.rows_axes([one.row for one in steps], width=width, row=height, left=left, right=56)
    longest = max(one.total for one in steps) or 1.0
    for part, found in _by_part(steps, ys).items():
        _bars(ax, found, *colours[part], narrow=narrow, least=longest * 0.045)
    for one, y in zip(steps, ys, strict=True):
        whole = ax.annotate(
            figures.milliseconds(one.total),
            (one.total, y),
            xytext=(7, 0),
            textcoords="offset pixels",
            va="center_baseline",
            weight="bold",
        )
        _svg.leads(whole, _svg.record_of(one.row.trial.id))
    _milliseconds_axis(ax, longest)
    return figure


@dataclasses.dataclass(frozen=True)
class _Bar:
    y: float
    start: float
    length: float
    record: str


def _by_part(steps: Sequence[Steps], ys: Sequence[float]) -> dict[str, list[_Bar]]:
    """The bars of all rows: those of a part are drawn at once, which is much faster than one by one."""
    found: dict[str, list[_Bar]] = defaultdict(list)
    for one, y in zip(steps, ys, strict=True):
        starts = itertools.accumulate(one.parts.values(), initial=0.0)
        for (part, length), start in zip(one.parts.items(), starts, strict=False):
            found[part].append(_Bar(y, start, length, _svg.record_of(one.row.trial.id)))
    return found


def _bars(ax: Axes, bars: Sequence[_Bar], face: str, text: str, *, narrow: bool, least: float) -> None:
    """Bars of one part; their milliseconds stand in those that are longer than `least`."""
    hollow = face == BG
    drawn = ax.barh(
        [bar.y for bar in bars],
        [bar.length for bar in bars],
        0.32 if narrow else 0.62,
        left=[bar.start for bar in bars],
        color=face,
        edgecolor=BAR if hollow else BG,
        linewidth=1,
        zorder=3 if hollow else 2,
    )
    for bar, patch in zip(bars, drawn, strict=True):
        _svg.leads(patch, bar.record)
        if bar.length > least and not narrow:
            at, words = bar.start + bar.length / 2, figures.milliseconds(bar.length)
            said = ax.text(at, bar.y, words, color=text, ha="center", va="center_baseline", size=11)
            _svg.leads(said, bar.record)


def _apart(steps: Steps, spoken: str, narrow: bool) -> Figure:
    rows = [
        dataclasses.replace(steps.row, label=part, role="chosen" if part == spoken else "other") for part in steps.parts
    ]
    width, height, left = (_svg.NARROW_WIDTH, 36, 0) if narrow else (640, 44, 116)
    figure, ax, ys = _svg.rows_axes(rows, width=width, row=height, left=left, right=70)
    longest = max(steps.parts.values()) or 1.0
    for row, y, length in zip(rows, ys, steps.parts.values(), strict=True):
        bar = ax.barh(y, length, 0.3 if narrow else 0.5, color=ACCENT if row.role == "chosen" else BAR)
        said = ax.annotate(
            figures.milliseconds(length),
            (length, y),
            xytext=(7, 0),
            textcoords="offset pixels",
            va="center_baseline",
            size=13,
            color=row.colour,
            weight=row.weight,
        )
        _svg.leads([*bar, said], _svg.record_of(row.trial.id))
    _milliseconds_axis(ax, longest)
    return figure


def _milliseconds_axis(ax: Axes, longest: float) -> None:
    ticks = _svg.nice_ticks(longest)
    texts = [f"{tick:g}" for tick in ticks]
    _svg.finish_x(ax, (0, longest * 1.01), ticks, [*texts[:-1], f"{texts[-1]} ms"])
