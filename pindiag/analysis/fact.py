"""How a fact is made."""

from __future__ import annotations

from pindiag.model import Fact, Scalar


def fact(name: str, value: Scalar, unit: str | None, source: str, reason: str, *, trial: str | None = None) -> Fact:
    """A fact; the reason is kept where the value is None."""
    return Fact(name=name, value=value, unit=unit, trial=trial, source=source, reason=reason if value is None else None)
