"""Student's t and the normal distribution by the standard library alone: loading scipy is felt in every command.

Source: the incomplete beta function and its continued fraction, Abramowitz and Stegun, 26.5.8 and 26.7.1.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

_TINY = 1e-300
_EXACT = 1e-14
_NORMAL = NormalDist()


def normal_cdf(value: float) -> float:
    """Probability of at most this value under the standard normal distribution."""
    return 0.5 * math.erfc(-value / math.sqrt(2))


def cdf(value: float, freedom: float) -> float:
    """Probability of at most this value under Student's t.

    Args:
        value: of t.
        freedom: degrees of freedom, above 0; no whole number is needed.
    """
    square = value * value
    tail = 0.5 * _incomplete_beta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5)
    return tail if value < 0 else 1 - tail


@functools.lru_cache(maxsize=4096)
def quantile(probability: float, freedom: float) -> float:
    """The value of t that has this probability below it.

    Args:
        probability: between 0 and 1.
        freedom: degrees of freedom, at least 1.
    """
    if probability < 0.5:
        return -quantile(1 - probability, freedom)
    # Newton's steps from the normal quantile, which is nearer 0: the function bends down, so none goes too far.
    value = _NORMAL.inv_cdf(probability)
    while (step := (probability - cdf(value, freedom)) / _density(value, freedom)) > _EXACT * value:
        value += step
    return value


def _density(value: float, freedom: float) -> float:
    height = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi * freedom)
    return height * math.pow(1 + value * value / freedom, -(freedom + 1) / 2)


def _incomplete_beta(below: float, above: float, a: float, b: float) -> float:
    """The regularised incomplete beta function at `below`; `above` is what it lacks of 1, without rounding."""
    if below == 0 or above == 0:
        return float(above == 0)
    if below > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(above, below, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(below) + b * math.log(above)
    return math.exp(front) / (a * _fraction(below, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), from the front, until another term changes nothing (Lentz)."""
    value, numerator, denominator, term = 1.0, 1.0, 0.0, 0
    change = 0.0
    while abs(change - 1) > _EXACT:
        term += 1
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / ((1 + d * denominator) or _TINY)
        numerator = (1 + d / numerator) or _TINY
        change = numerator * denominator
        value *= change
    return value
