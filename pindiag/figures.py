"""Numbers as the reader sees them (REPORT.md section 8): one formatter a kind of number, for all outputs.

Every function takes a measured number and returns text; what was not measured never comes here. Units stand
behind an ordinary space, thousands are parted by a narrow no-break space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

THIN = "\u202f"
BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def significant(value: float, digits: int = 3) -> str:
    """A number with three significant digits: 3 240, 25 900, 3.24, 0.0324."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "0"
    rounded, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    decimals = digits - 1 - int(exponent)
    return _fixed(float(f"{rounded}e{exponent}"), max(decimals, 0))


def rate(samples_per_second: float) -> str:
    """Throughput with its unit: 3 240 samples/s."""
    return f"{significant(samples_per_second)} samples/s"


def count(value: float) -> str:
    """A whole number: 38 535 168."""
    return f"{value:,.0f}".replace(",", THIN) if math.isfinite(value) else _not_finite(value)


def ratio(value: float) -> str:
    """A ratio of throughputs: 1.43 ×."""
    return f"{_fixed(value, 2)} ×"


def interval(bounds: tuple[float, float]) -> str:
    """A 95 % interval of a ratio, without brackets: 1.11–1.85."""
    return f"{_fixed(bounds[0], 2)}–{_fixed(bounds[1], 2)}"


def ratio_with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    """A ratio, and its interval where there is one: 1.43 × (1.11–1.85)."""
    return ratio(value) if bounds is None else f"{ratio(value)} ({interval(bounds)})"


def milliseconds(value: float) -> str:
    """Milliseconds for a column, without the unit: 8.5, or "< 0.1" for what is measured but rounds to nothing."""
    return "< 0.1" if 0 < value < 0.05 else _fixed(value, 1)


def duration(seconds: float) -> str:
    """A time that a person waits: 0.24 s, 4.2 s, 41 s, 2.1 min, 3.4 h."""
    if 0 < seconds < 0.995:
        return f"{_fixed(seconds, 2)} s"
    if seconds < 10:
        return f"{_fixed(seconds, 1)} s"
    if seconds < 60:
        return f"{_fixed(seconds, 0)} s"
    if seconds < 3600:
        return f"{_fixed(seconds / 60, 1)} min"
    return f"{_fixed(seconds / 3600, 1)} h"


def byte_size(value: float) -> str:
    """Decimal bytes with three digits: 38.5 MB."""
    power = 0
    while abs(value) >= 999.5 and power < len(BYTE_UNITS) - 1:
        value /= 1000
        power += 1
    return f"{significant(value)} {BYTE_UNITS[power]}"


def share(value: float) -> str:
    """A share of 1 in per cent: 97 %, one decimal below 10: 4.3 %."""
    percent = value * 100
    return f"{_fixed(percent, 1 if 0 < abs(percent) < 9.95 else 0)} %"


def off(ratio: float) -> str:
    """How far a value lies from what was expected of it, from their ratio: +3.1 %, −12 %."""
    percent = (ratio - 1) * 100
    return f"{'−' if percent < 0 else '+'}{share(abs(percent) / 100)}"


def floor(noise_ratio: float) -> str:
    """A noise floor, given as a ratio of at least 1, in per cent: 3.0 %."""
    return share(noise_ratio - 1)


def p_value(value: float) -> str:
    """A probability: 0.13, or "< 0.01"."""
    return "< 0.01" if value < 0.01 else _fixed(value, 2)


def arguments(changes: Mapping[str, object]) -> str:
    """Arguments as they are written in code: num_workers=0, pin_memory=True."""
    return ", ".join(f"{name}={value!r}" for name, value in changes.items())


def _fixed(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN) if math.isfinite(value) else _not_finite(value)


def _not_finite(value: float) -> str:
    return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
