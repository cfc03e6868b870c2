"""What each configuration reached: samples/s from 0."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pindiag.report.charts import _svg, bars
from pindiag.report.charts._svg import Row

_NARROW_ROWS = 6
_ROLES = {"chosen": "accent", "baseline": "ink", "other": "grey"}


def chart(rows: Sequence[Row], title: str) -> Markup:
    """A bar for each measured configuration."""
    return _svg.draw(
        "reached",
        title,
        bars.numbers(_bars(rows)),
        lambda narrow: bars.figure(_bars(_few(rows) if narrow else rows), narrow),
    )


def _bars(rows: Sequence[Row]) -> list[bars.Bar]:
    return [
        bars.Bar(row.label, row.trial.samples_per_second, _ROLES[row.role], trial=row.trial.id)  # type: ignore[arg-type]
        for row in rows
    ]


def _few(rows: Sequence[Row]) -> list[Row]:
    """What a phone's first screen can hold; the recommended row and the baseline stay."""
    room = _NARROW_ROWS - sum(row.role != "other" for row in rows)
    kept = {row.trial.id for row in [row for row in rows if row.role == "other"][:room]}
    return [row for row in rows if row.role != "other" or row.trial.id in kept]
