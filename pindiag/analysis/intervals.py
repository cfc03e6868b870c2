"""Spans of time, and what they share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Spans = npt.NDArray[np.float64]
"""Start and end of each span; shape (n, 2)."""


class Timed(Protocol):
    """Something that began and lasted."""

    @property
    def ts(self) -> float: ...  # noqa: D102
    @property
    def dur(self) -> float: ...  # noqa: D102


def spans(events: Iterable[Timed]) -> Spans:
    """Start and end of events."""
    return np.array([(event.ts, event.ts + event.dur) for event in events], dtype=float).reshape(-1, 2)


def union(found: Spans, gap: float = 0.0) -> Spans:
    """Spans without overlaps; those closer than `gap` become one."""
    if not len(found):
        return found
    found = found[np.argsort(found[:, 0])]
    ends = np.maximum.accumulate(found[:, 1])
    first = np.concatenate(([True], found[1:, 0] > ends[:-1] + gap))
    last = np.concatenate((first[1:], [True]))
    return np.column_stack((found[first, 0], ends[last]))


def length(found: Spans) -> float:
    """Summed length of spans that do not overlap."""
    return float((found[:, 1] - found[:, 0]).sum())


def outside(found: Spans, start: float, end: float) -> Spans:
    """What a union leaves of the time from `start` to `end`."""
    edges = np.concatenate(([start], np.clip(found, start, end).ravel(), [end])).reshape(-1, 2)
    return edges[edges[:, 1] > edges[:, 0]]


def intersection(one: Spans, other: Spans) -> Spans:
    """Where both unions have a span."""
    if not len(one) or not len(other):
        return np.empty((0, 2))
    start = min(one[0, 0], other[0, 0])
    end = max(one[-1, 1], other[-1, 1])
    neither = np.concatenate((outside(one, start, end), outside(other, start, end)))
    return outside(union(neither), start, end)


def shared(one: Spans, other: Spans) -> float:
    """Length of what two unions share."""
    return length(intersection(one, other))
