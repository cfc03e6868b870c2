"""Two runs beside each other, as msgspec structs; `pindiag compare --json -` prints one `Comparison`."""

from __future__ import annotations

from typing import Literal

from pindiag.model import Base, Scalar

COMPARISON_SCHEMA_VERSION = 1

Role = Literal["as written", "recommended"]


class Side(Base, frozen=True, kw_only=True):
    """One of the two runs."""

    source: str
    """As it was named on the command line."""
    target: str | None
    """File name of the script, or the module's name; None: an older report.json, which does not tell."""
    started_utc: str | None
    """None: a report.json without its run directory."""
    status: Literal["ok", "failed", "interrupted"]
    headline: str
    primary_cause: str | None
    confidence: Literal["confirmed", "suspected", "none"]
    recommended: str | None
    """In words; None: keep what you have, or nothing was measured."""


class ComparedRate(Base, frozen=True, kw_only=True):
    """Throughput of the same role in both runs."""

    name: Role
    base_samples_per_second: float | None
    """Geometric mean of its values."""
    new_samples_per_second: float | None
    ratio: float | None
    """New over base: below 1 the new run is slower."""
    ci95: tuple[float, float] | None
    """Welch's interval of the logarithms; None below three values on a side."""
    source: str
    """What its values are, and how many on each side."""
    reason: str | None = None
    """Why the ratio or its interval is missing."""


class ComparedFigure(Base, frozen=True, kw_only=True):
    """A figure of the script as written in both runs; None: not measured there."""

    name: str
    unit: Literal["ms", "bytes", "s"]
    base: float | None
    new: float | None


class Difference(Base, frozen=True, kw_only=True):
    """Something that both environments tell, and tell differently."""

    name: str
    base: Scalar
    new: Scalar


class Comparison(Base, frozen=True, kw_only=True):
    """Two runs of one target on one machine, or what `--force` made of others."""

    schema_version: int = COMPARISON_SCHEMA_VERSION
    base: Side
    new: Side
    throughput: list[ComparedRate]
    stages: list[ComparedFigure]
    """A mean step of the script as written."""
    memory: list[ComparedFigure]
    differences: list[Difference]
    notes: list[str]
    """What must be known to read it: unlike machines, other arguments, too few values."""
