"""Several repetitions of one measurement, as doctor tells them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

REPETITIONS = 7
"""An odd number: the median is one of them."""


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median, smallest and largest value, and how many there are."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "repetitions": len(values),
    }


def per_second(amount: float, seconds: Sequence[float]) -> dict[str, Any]:
    """The spread of a rate, of an amount that took these times."""
    return spread([amount / each for each in seconds])


def long_enough(once: Callable[[], float], at_least_s: float, most: int) -> int:
    """How often something is to be done for one timing to last long enough, reckoned from one that is thrown away."""
    return max(1, min(most, round(at_least_s / max(once(), 1e-9) + 0.5)))
