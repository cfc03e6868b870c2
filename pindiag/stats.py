"""Numbers from repeated measurements: intervals, ratios paired within rounds, corrections, noise floor.

The unit is the block. All intervals are t-intervals of logarithms: throughput is positive and its disturbances
multiply. Below three values there is no interval, since two values say next to nothing about their own spread.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

CONFIDENCE = 0.95
FEWEST_FOR_INTERVAL = 3

Interval = tuple[float, float]


@dataclass(frozen=True)
class Rate:
    """The throughput of one block: samples a second."""

    round: int
    trial: str
    value: float


@dataclass(frozen=True)
class Mean:
    """A geometric mean with its 95 % interval and the p of "it is 1"."""

    value: float
    ci95: Interval | None
    count: int
    p: float | None

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width on the log scale: 0.05 is about 5 %."""
        return None if self.ci95 is None else (math.log(self.ci95[1]) - math.log(self.ci95[0])) / 2


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t."""
    return float(special.stdtrit(freedom, probability))


def geometric_mean(values: Sequence[float]) -> Mean:
    """Geometric mean of positive values, with the t-interval of their logarithms.

    Raises:
        ValueError: there is no value, or one is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError("a geometric mean needs positive values")
    logs = [math.log(value) for value in values]
    mean, count = math.fsum(logs) / len(logs), len(logs)
    if count < FEWEST_FOR_INTERVAL:
        return Mean(math.exp(mean), None, count, None)
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (count - 1))
    error = spread / math.sqrt(count)
    half = student_quantile((1 + CONFIDENCE) / 2, count - 1) * error
    return Mean(math.exp(mean), (math.exp(mean - half), math.exp(mean + half)), count, _p_value(mean, error, count - 1))


def _p_value(mean: float, error: float, freedom: float) -> float:
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * special.stdtr(freedom, -abs(mean / error)))


def expected_gain(ratio: Mean) -> float:
    """What the better of two gains over the reference, as a log ratio, on average over what is likely.

    Half of the half-width stands for the standard error, since few values hardly know their own.
    """
    mean, error = math.log(ratio.value), (ratio.half_width or 0.0) / 2
    if error == 0:
        return max(mean, 0.0)
    density = math.exp(-((mean / error) ** 2) / 2) / math.sqrt(2 * math.pi)
    return error * density + mean * float(special.ndtr(mean / error))


def median(values: Sequence[float]) -> float:
    """The median.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("a median needs a value")
    return float(np.median(np.asarray(values, dtype=float)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Two-sided p corrected for having looked at all of them (Holm's step-down method)."""
    corrected: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        corrected[name] = highest
    return corrected


def paired_ratios(rates: Iterable[Rate], baseline: str) -> dict[str, list[float]]:
    """Ratios to the baseline of the same round, by trial, in the order of rounds.

    A round's baseline is the geometric mean of its baseline blocks; rounds without one give no ratio. What all
    treatments of a round have in common (a busy machine, a warm cache) cancels.
    """
    rounds: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for rate in rates:
        rounds[rate.round][rate.trial].append(rate.value)
    ratios: dict[str, list[float]] = defaultdict(list)
    for number in sorted(rounds):
        if baseline not in rounds[number]:
            continue
        reference = _middle(rounds[number][baseline])
        for trial, values in rounds[number].items():
            if trial != baseline:
                ratios[trial].append(_middle(values) / reference)
    return dict(ratios)


def _middle(values: Sequence[float]) -> float:
    return math.prod(values) ** (1 / len(values))


def compare(rates: Iterable[Rate], baseline: str) -> dict[str, Mean]:
    """Mean ratio of every trial over the baseline; the p values are corrected over all that are compared."""
    means = {trial: geometric_mean(ratios) for trial, ratios in paired_ratios(rates, baseline).items()}
    corrected = holm({trial: mean.p for trial, mean in means.items() if mean.p is not None})
    return {trial: Mean(mean.value, mean.ci95, mean.count, corrected.get(trial)) for trial, mean in means.items()}


def unpaired(base: Sequence[float], new: Sequence[float]) -> Mean:
    """Ratio of two geometric means whose values have nothing in common, with Welch's interval; `count` is the fewer.

    Raises:
        ValueError: a side has no value, or one is not positive.
    """
    sides = [[math.log(value) for value in values] for values in (base, new) if values and min(values) > 0]
    if len(sides) < 2:
        raise ValueError("a ratio needs positive values on both sides")
    means = [math.fsum(logs) / len(logs) for logs in sides]
    mean, count = means[1] - means[0], min(map(len, sides))
    if count < FEWEST_FOR_INTERVAL:
        return Mean(math.exp(mean), None, count, None)
    errors = [float(np.var(logs, ddof=1)) / len(logs) for logs in sides]
    error = math.sqrt(sum(errors))
    if error == 0:
        return Mean(math.exp(mean), (math.exp(mean), math.exp(mean)), count, _p_value(mean, 0, 1))
    # Welch and Satterthwaite: sides of unlike spread have the degrees of freedom of neither.
    freedom = sum(errors) ** 2 / sum(one**2 / (len(logs) - 1) for one, logs in zip(errors, sides, strict=True))
    half = student_quantile((1 + CONFIDENCE) / 2, freedom) * error
    return Mean(math.exp(mean), (math.exp(mean - half), math.exp(mean + half)), count, _p_value(mean, error, freedom))


def differ(one: Mean, other: Mean) -> bool | None:
    """Whether the 95 % interval of the ratio of two means, which share no values, excludes 1; None without intervals.

    The standard errors are those that their own intervals were made of, the degrees of freedom Welch's.
    """
    errors = [_error(mean) for mean in (one, other)]
    if errors[0] is None or errors[1] is None:
        return None
    squares = [error**2 for error in errors if error is not None]
    apart = abs(math.log(one.value / other.value))
    if sum(squares) == 0:
        return apart > 0
    spread = zip(squares, (one.count, other.count), strict=True)
    freedom = sum(squares) ** 2 / sum(square**2 / (count - 1) for square, count in spread)
    return apart > student_quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(sum(squares))


def _error(mean: Mean) -> float | None:
    """The standard error of the logarithm."""
    half = mean.half_width
    return None if half is None else half / student_quantile((1 + CONFIDENCE) / 2, mean.count - 1)


@dataclass(frozen=True)
class Trend:
    """A straight line through values in their order."""

    total: float
    """From the first to the last value, as the line has it."""
    p: float
    """Two-sided p of "it is level"."""


def trend(values: Sequence[float]) -> Trend:
    """The straight line through values in their order (least squares).

    Raises:
        ValueError: there are fewer than three values.
    """
    if len(values) < FEWEST_FOR_INTERVAL:
        raise ValueError("a trend needs three values")
    x = np.arange(len(values)) - (len(values) - 1) / 2
    y = np.asarray(values, dtype=float)
    slope = float(x @ y) / float(x @ x)
    rest = y - y.mean() - slope * x
    freedom = len(values) - 2
    error = math.sqrt(float(rest @ rest) / freedom / float(x @ x))
    return Trend(slope * (len(values) - 1), _p_value(slope, error, freedom))


def noise_floor(rates: Iterable[Rate], baseline: str) -> tuple[float | None, int]:
    """How far two equal things differ here, as a ratio >= 1, and the number of rounds it rests on.

    Every round has the baseline twice. The log ratios of these pairs are 0 in truth, so their spread is taken about
    0, not about their mean: a drift within rounds counts as noise, and each pair keeps its degree of freedom. The
    floor is the half-width that a comparison over as many rounds has where there is nothing to find; a smaller
    effect cannot be told from none. None below three pairs.
    """
    rounds: dict[int, list[float]] = defaultdict(list)
    for rate in rates:
        if rate.trial == baseline:
            rounds[rate.round].append(rate.value)
    logs = [math.log(values[1] / values[0]) for values in rounds.values() if len(values) >= 2]
    if len(logs) < FEWEST_FOR_INTERVAL:
        return None, len(logs)
    spread = math.sqrt(sum(value * value for value in logs) / len(logs))
    half = student_quantile((1 + CONFIDENCE) / 2, len(logs)) * spread / math.sqrt(len(logs))
    return math.exp(half), len(logs)
