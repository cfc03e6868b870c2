from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pindiag.analysis.gpu import gpu_step, with_cure
from pindiag.analysis.trace import window
from pindiag.store import read_trace

H200 = Path(__file__).parents[2] / "data" / "h200"
BATCH_BYTES = 38_535_168
LABEL_BYTES = 512


@dataclass
class Event:
    cat: str
    name: str
    ts: float
    dur: float
    tid: int = 1
    args: dict = field(default_factory=dict)


def step(number, ts, dur):
    return Event("user_annotation", f"ProfilerStep#{number}", ts, dur)


def test_h200_pageable_blocking():
    gpu = gpu_step(read_trace(H200 / "trace_pin0_nb0.json.gz"))
    assert gpu.pageable_bytes == BATCH_BYTES + LABEL_BYTES
    assert gpu.pinned_bytes == 0
    assert gpu.copy_ms == pytest.approx(8.5, abs=0.7)
    assert gpu.copy_gb_per_s == pytest.approx(4.5, abs=0.4)
    assert gpu.overlap_share == 0.0
    assert gpu.launches == 47
    assert gpu.idle_share < 1 - gpu.busy_share


def test_h200_pinned_non_blocking():
    gpu = gpu_step(read_trace(H200 / "trace_pin1_nb1.json.gz"))
    assert (gpu.pageable_bytes, gpu.pinned_bytes) == (0, BATCH_BYTES + LABEL_BYTES)
    assert gpu.copy_ms == pytest.approx(0.7, abs=0.05)
    assert gpu.copy_gb_per_s == pytest.approx(55, abs=1)
    assert gpu.idle_share > 0.7


def test_h200_bounds():
    start, end, steps = window(read_trace(H200 / "trace_pin1_nb1.json.gz"))
    assert steps == 8
    assert (end - start) / 1e3 == pytest.approx(147, abs=10)


def test_figures_by_hand():
    """Two steps of 100 us; copies 10-30 and 110-130, kernels 20-60 (two that overlap) and 120-160."""
    copy = {"bytes": 4000}
    events = [
        step(2, 0, 100),
        step(3, 100, 100),
        Event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10, 20, args=copy),
        Event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 110, 20, args=copy),
        Event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 180, 10, args=copy),
        Event("kernel", "a", 20, 30),
        Event("kernel", "b", 30, 30),
        Event("kernel", "c", 120, 40),
        Event("kernel", "of the warm-up", -50, 40),
        Event("cuda_runtime", "cudaStreamSynchronize", 150, 30),
        Event("cuda_runtime", "cudaLaunchKernel", 15, 2),
        Event("cuda_driver", "cuLaunchKernel", 16, 2),
    ]
    gpu = gpu_step(events)
    assert gpu.kernel_ms == pytest.approx(0.040)
    assert gpu.copy_ms == pytest.approx(0.020)
    assert gpu.busy_share == pytest.approx(80 / 200)
    assert gpu.idle_share == pytest.approx(1 - 110 / 200)
    assert gpu.overlap_share == pytest.approx(20 / 40)
    assert (gpu.pinned_bytes, gpu.pageable_bytes) == (2000, 2000)
    assert gpu.copy_gb_per_s == pytest.approx(8000 / 40 / 1e3)
    assert gpu.synchronise_ms == pytest.approx(0.015)
    assert gpu.launches == 1


def test_rocm_does_not_tell_pinned_from_pageable():
    events = [
        step(1, 0, 100),
        Event("kernel", "k", 50, 10),
        Event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 0, 10, args={"bytes": 100}),
    ]
    gpu = gpu_step(events)
    assert (gpu.pinned_bytes, gpu.pageable_bytes) == (None, None)
    assert gpu.copy_ms == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "marks no step"),
        ([step(1, 0, 100)], "refuses CUPTI to this user. Run as root"),
        ([step(1, 0, 100), Event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 10)], "holds no kernel"),
        ([step(1, 0, 100), Event("cuda_runtime", "cudaMemcpyAsync", 50, 10)], "holds no kernel"),
        ([Event("kernel", "k", 0, 1)], "marks no step"),
    ],
)
def test_a_trace_that_tells_nothing_says_why(events, reason):
    assert reason in gpu_step(events)


def test_a_profiler_that_was_refused_says_what_to_do():
    told = with_cure("RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
    assert told.startswith("RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES. Run as root")
    assert with_cure("no trace") == "no trace"


def test_other_accelerators_have_no_driver_to_blame():
    assert gpu_step([step(1, 0, 100)], "mps") == "the trace shows nothing of a device of type mps"


def test_without_copies_there_is_no_overlap():
    gpu = gpu_step([step(1, 0, 100), Event("kernel", "k", 50, 10)])
    assert (gpu.overlap_share, gpu.copy_gb_per_s, gpu.copy_ms) == (None, None, 0.0)
