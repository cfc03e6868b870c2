from __future__ import annotations

import pytest

from pindiag.analysis.nvml import gpu_figures
from pindiag.model import Sample


def sample(**levels):
    names = (name for name in Sample.__struct_fields__ if name not in ("launch", "t_ns", "rank", "processes"))
    return Sample(launch=1, t_ns=1, processes=[], **(dict.fromkeys(names) | {"sampler_cpu_s": 0.0} | levels))


@pytest.mark.parametrize(
    ("reasons", "words", "slowed", "held_back"),
    [
        ([0, 0], "nothing", 0.0, 0.0),
        ([1, 0], "nothing to do in 50 % of the samples", 0.0, 0.0),
        ([0x4, 0x24, 0, 0], "the power cap in 50 % of the samples, heat (software) in 25 % of the samples", 0.5, 0.25),
        ([0x2], "an application clock setting in 100 % of the samples", 0.0, 0.0),
        ([0x8, 0x40, 0x80, None], None, 1.0, 1.0),
    ],
)
def test_what_held_the_clocks_down(reasons, words, slowed, held_back):
    figures = gpu_figures([sample(gpu_throttle_reasons=bits) for bits in reasons])
    assert figures["gpu_slowed_share"] == slowed
    assert figures["gpu_held_back_share"] == held_back
    if words is not None:
        assert figures["gpu_clock_reasons"] == words
    else:
        assert "None" not in figures["gpu_clock_reasons"]
        assert "a hardware slowdown in 33 % of the samples" in figures["gpu_clock_reasons"]


def test_the_link_that_is_read_now_and_then():
    samples = [
        sample(pcie_gen=1, pcie_width=16, pcie_rx_bytes_per_s=10, gpu_power_w=100.0),
        sample(gpu_power_w=300.0),
        sample(pcie_gen=5, pcie_width=16, pcie_rx_bytes_per_s=30),
    ]
    figures = gpu_figures(samples)
    assert (figures["pcie_gen"], figures["pcie_width"], figures["pcie_rx_bytes_per_s"]) == (5, 16, 20)
    assert figures["gpu_power_w"] == 200


def test_without_a_gpu_all_is_none():
    assert set(gpu_figures([sample(), sample()]).values()) == {None}
