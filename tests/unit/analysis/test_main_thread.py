import random
from pathlib import Path

import pytest

from pindiag.analysis.gpu import gpu_step
from pindiag.analysis.intervals import length
from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.trace import monotonic_us, window
from pindiag.store import read_trace

from .test_trace import Event, step

H200 = Path(__file__).parents[2] / "data" / "h200"
MAIN, ENGINE, PIN = 1, 2, 3


def calls(name, ts, dur, correlation=None, tid=MAIN):
    return Event("cuda_runtime", name, ts, dur, tid, {"correlation": correlation})


def one_step():
    """1000 us: loader to 300, a pageable transfer to 500, forward, backward in its own thread, optimizer, item()."""
    return [
        step(1, 0, 1000),
        Event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 300),
        Event("cpu_op", "aten::stack", 100, 50),
        Event("cpu_op", "aten::to", 300, 200),
        Event("cpu_op", "aten::copy_", 310, 180),
        calls("cudaMemcpyAsync", 320, 150, 7),
        Event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 340, 120, 7, {"correlation": 7, "bytes": 64}),
        Event("cpu_op", "aten::to", 500, 10),
        Event("cpu_op", "aten::linear", 510, 90),
        calls("cudaLaunchKernel", 560, 20, 8),
        Event("kernel", "gemm", 580, 60, 7),
        Event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 640, 60, ENGINE),
        calls("cudaLaunchKernel", 660, 10, 9, ENGINE),
        Event("kernel", "gemm", 680, 60, 7),
        Event("cpu_op", "autograd::engine::evaluate_function: AccumulateGrad", 720, 30, ENGINE),
        Event("user_annotation", "Optimizer.step#SGD.step", 780, 60),
        Event("cpu_op", "aten::add_", 790, 40),
        calls("cudaLaunchKernel", 800, 10, 10),
        Event("kernel", "void at::native::add<float>", 815, 20, 7),
        Event("cpu_op", "aten::item", 860, 100),
        calls("cudaMemcpyAsync", 870, 10, 11),
        Event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 875, 80, 7, {"correlation": 11}),
        calls("cudaStreamSynchronize", 885, 70, 12),
        Event("cpu_op", "aten::pin_memory", 0, 900, PIN),
    ]


def parts(which, events):
    start, end, _ = window(events)
    return {name: length(found) for name, found in getattr(MainThread(events, start, end), which).items()}


def test_the_stages_of_a_step_by_hand():
    stages = parts("stages", one_step())
    assert stages == {
        "wait": 300,
        "transfer": 200,
        "synchronise": 70,
        "optimizer": 60,
        "launch": 20 + 10 + 10,
        "backward": 110 - 10,
        "operators": 10 + 70 + 20,
        "python": 1000 - 870,
    }
    assert sum(stages.values()) == 1000


def test_a_blocking_copy_is_a_wait_and_one_that_returns_at_once_is_a_launch():
    feeding = parts("feeding", one_step())
    assert feeding["synchronise"] == 150 + 70
    assert feeding["launch"] == 20 + 10 + 10 + 10


def test_launches_belong_to_what_launched_them_in_the_lane():
    lane = parts("lane", one_step())
    assert "launch" not in lane
    assert lane["backward"] == 110
    assert sum(lane.values()) == 1000


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_events_the_stages_fill_the_window_and_none_overlap(seed):
    chance = random.Random(seed)
    kinds = [
        ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("user_annotation", "Optimizer.step#SGD.step"),
        ("cpu_op", "aten::to"),
        ("cpu_op", "aten::mm"),
        ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0"),
        ("cuda_runtime", "cudaLaunchKernel"),
        ("cuda_runtime", "cudaStreamSynchronize"),
    ]
    events = [
        Event(*chance.choice(kinds), chance.uniform(-100, 1000), chance.uniform(0, 200), chance.choice([MAIN, ENGINE]))
        for _ in range(60)
    ]
    for which in ("stages", "lane", "feeding"):
        found = parts(which, [step(1, 0, 1000), *events])
        start, end, _ = window([step(1, 0, 1000), *events])
        assert sum(found.values()) == pytest.approx(end - start)
        assert min(found.values()) >= 0


def test_idle_gaps_go_to_what_the_main_thread_did():
    gpu = gpu_step(one_step())
    idle = gpu.idle
    assert gpu.idle_share == pytest.approx(0.66)
    assert idle.wait == pytest.approx(0.3)
    assert idle.synchronise == pytest.approx(0.03)
    assert idle.launch == pytest.approx(0.02 + 0.01 + 0.01 + 0.005)
    shares = (idle.wait, idle.synchronise, idle.launch, idle.operators, idle.python)
    assert sum(shares) == pytest.approx(gpu.idle_share)


def test_launches_and_the_longest_kernels():
    gpu = gpu_step(one_step())
    assert gpu.launch_share == pytest.approx(0.05)
    first, second = gpu.longest_kernels
    assert (first.name, first.calls, first.ms) == ("gemm", 2, pytest.approx(0.12))
    assert first.share == pytest.approx(120 / 140)
    assert second.name == "add"


def test_kernels_of_cutlass_keep_the_name_inside():
    kernel = Event("kernel", f"void cutlass::Kernel2<cutlass_80_{'x' * 99}>(x)", 50, 10)
    assert gpu_step([step(1, 0, 100), kernel]).longest_kernels[0].name == f"cutlass::Kernel2<cutlass_80_{'x' * 32}"


def test_without_calls_to_the_runtime_idle_is_not_attributed():
    gpu = gpu_step([step(1, 0, 100), Event("kernel", "k", 50, 10)])
    assert (gpu.idle, gpu.launch_share) == (None, None)
    assert gpu.idle_share == pytest.approx(0.9)


def test_rocm_calls_are_told_apart_as_well():
    events = [
        step(1, 0, 100),
        calls("hipLaunchKernel", 10, 20),
        calls("hipDeviceSynchronize", 40, 30),
        Event("kernel", "k", 30, 40, 7),
    ]
    assert {name: us for name, us in parts("feeding", events).items() if us} == {
        "synchronise": 30,
        "launch": 20,
        "python": 50,
    }
    assert gpu_step(events).idle.launch == pytest.approx(0.2)


def test_backward_of_the_cpu_runs_in_the_main_thread():
    events = [
        step(1, 0, 100),
        Event("cpu_op", "aten::linear", 0, 30),
        Event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 40, 20),
        Event("cpu_op", "aten::mm", 45, 10),
    ]
    stages = parts("stages", events)
    assert (stages["operators"], stages["backward"], stages["python"]) == (30, 20, 50)


def test_h200_pageable_main_thread_is_held_by_copies():
    idle = gpu_step(read_trace(H200 / "trace_pin0_nb0.json.gz")).idle
    start, end, steps = window(events := read_trace(H200 / "trace_pin0_nb0.json.gz"))
    stages = MainThread(events, start, end).stages
    assert length(stages["transfer"]) / steps / 1e3 == pytest.approx(9.2, abs=0.1)
    assert idle.wait < 0.1


def test_h200_pinned_gpu_idles_while_the_loader_is_waited_for():
    gpu = gpu_step(read_trace(H200 / "trace_pin1_nb1.json.gz"))
    assert gpu.idle.wait > 0.85 * gpu.idle_share
    assert (gpu.longest_kernels[0].name, gpu.longest_kernels[0].calls) == ("multi_tensor_apply_kernel", 28)
    assert [kernel.ms for kernel in gpu.longest_kernels] == sorted((k.ms for k in gpu.longest_kernels), reverse=True)
    assert all(len(kernel.name) <= 60 for kernel in gpu.longest_kernels)


def test_the_clock_is_that_of_the_anchor_whose_span_began_soonest():
    anchors = [
        Event("user_annotation", f"pindiag monotonic_ns={ns}", ts, 5) for ns, ts in ((9_000, 3.0), (19_000, 17.5))
    ]
    assert monotonic_us(anchors) == 6.0
    assert monotonic_us([step(1, 0, 100)]) is None
