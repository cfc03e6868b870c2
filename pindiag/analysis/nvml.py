"""What NVML said of the GPU over the counted parts of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from pindiag.model import Sample

_REASONS = {
    0x4: "the power cap",
    0x8: "a hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "the power brake",
    0x2: "an application clock setting",
    0x10: "synchronised boost",
    0x100: "the display clock setting",
    0x1: "nothing to do",
}
"""Bits of NVML's clock event reasons (nvml.h), those that slow work down first."""
HELD_BACK = 0x8 | 0x20 | 0x40 | 0x80
SLOWING = HELD_BACK | 0x4
NOTHING_HELD = "nothing"


def gpu_figures(samples: Sequence[Sample]) -> dict[str, Any]:
    """The GPU's fields of `SamplerFigures`, each None where no sample has it."""
    reasons = _levels(samples, lambda sample: sample.gpu_throttle_reasons)
    gens = _levels(samples, lambda sample: sample.pcie_gen)
    widths = _levels(samples, lambda sample: sample.pcie_width)
    used = _levels(samples, lambda sample: sample.gpu_memory_bytes)
    return {
        "gpu_memory_bytes": None if not used else int(max(used)),
        "gpu_memory_utilization": _mean(_levels(samples, lambda sample: sample.gpu_memory_utilization)),
        "gpu_sm_clock_mhz": _mean(_levels(samples, lambda sample: sample.gpu_sm_clock_mhz)),
        "gpu_memory_clock_mhz": _mean(_levels(samples, lambda sample: sample.gpu_memory_clock_mhz)),
        "gpu_power_w": _mean(_levels(samples, lambda sample: sample.gpu_power_w)),
        "gpu_slowed_share": _share(reasons, SLOWING),
        "gpu_held_back_share": _share(reasons, HELD_BACK),
        "gpu_clock_reasons": _in_words([int(bits) for bits in reasons]) if reasons else None,
        "pcie_rx_bytes_per_s": _mean(_levels(samples, lambda sample: sample.pcie_rx_bytes_per_s)),
        "pcie_gen": max((int(gen) for gen in gens), default=None),
        "pcie_width": max((int(width) for width in widths), default=None),
    }


def _in_words(reasons: Sequence[int]) -> str:
    """Each reason with the share of the samples that had it."""
    found = {words: fmean(bool(bits & bit) for bits in reasons) for bit, words in _REASONS.items()}
    said = [f"{words} in {100 * share:.0f} % of the samples" for words, share in found.items() if share > 0]
    return ", ".join(said) or NOTHING_HELD


def _share(reasons: Sequence[float], bits: int) -> float | None:
    return _mean([float(bool(int(named) & bits)) for named in reasons])


def _levels(samples: Sequence[Sample], reading: Callable[[Sample], float | None]) -> list[float]:
    return [value for sample in samples if (value := reading(sample)) is not None]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
