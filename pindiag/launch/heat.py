"""How long heat has held the CPUs' clocks down, as the kernel counts it by package. Linux on x86 only."""

from __future__ import annotations

from pathlib import Path

SPENT = "thermal_throttle/package_throttle_total_time_ms"


class CpuHeat:
    """Reads one counter a package, whichever CPU of it offers one; what a clock does by itself is no heat.

    Args:
        root: where /sys lies.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        by_package: dict[str, Path] = {}
        for cpu in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*")):
            package = _text(cpu / "topology/physical_package_id")
            if package is not None and _text(cpu / SPENT) is not None:
                by_package.setdefault(package, cpu / SPENT)
        self._counters = list(by_package.values())

    def spent_s(self) -> float | None:
        """Cumulative seconds, the mean over packages; None where the kernel does not count them."""
        told = [text for counter in self._counters if (text := _text(counter)) is not None]
        known = [int(text) for text in told if text.isdecimal()]
        return sum(known) / len(known) / 1e3 if known else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
