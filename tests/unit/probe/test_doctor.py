"""Doctor's measurements on a device and a worker that are none; what they write is what the parent decodes."""

import json
import multiprocessing
import platform
from types import SimpleNamespace

import msgspec
import pytest
import torch

from pindiag import doctor_model
from pindiag.probe import doctor, doctor_copies, doctor_hand_off, doctor_torch, repeated
from pindiag.rules.known_versions import known_faults


def test_no_torch_is_said_in_words():
    assert doctor.reason(ModuleNotFoundError("No module named 'torch'", name="torch")) == "the interpreter has no torch"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("CUDA error: out of memory\nCompile with ..."), "RuntimeError: CUDA error: out of memory"),
        (ValueError(), "ValueError"),
        (doctor.Unavailable("no accelerator"), "no accelerator"),
        (ModuleNotFoundError("No module named 'numpy'", name="numpy"), "ModuleNotFoundError: No module named 'numpy'"),
    ],
)
def test_a_reason_is_one_line(error, said):
    assert doctor.reason(error) == said


def test_parts_are_announced_and_told_in_order(monkeypatch, capsys):
    def part(name):
        return lambda: 1 / 0 if name == "bad" else {"name": name}

    left = []
    monkeypatch.setattr(doctor, "_doer", part)
    monkeypatch.setattr(doctor.os, "_exit", left.append)
    doctor.main(["good", "bad", "last"])
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"part": "good", "began": True},
        {"part": "good", "value": {"name": "good"}},
        {"part": "bad", "began": True},
        {"part": "bad", "reason": "ZeroDivisionError: division by zero"},
        {"part": "last", "began": True},
        {"part": "last", "value": {"name": "last"}},
    ]
    assert left == [0]


def test_a_spread_tells_its_middle_and_its_ends():
    assert repeated.per_second(10.0, [1.0, 2.0, 5.0]) == {"median": 5.0, "min": 2.0, "max": 10.0, "repetitions": 3}


@pytest.mark.parametrize(("once_s", "number"), [(0.004, 3), (1.0, 1), (0.0, 50), (1e-5, 50)])
def test_a_timing_lasts_long_enough(once_s, number):
    assert repeated.long_enough(lambda: once_s, 0.01, 50) == number


def test_torch_is_described():
    found = msgspec.convert(doctor_torch.describe(), doctor_model.Torch)
    assert found.version == torch.__version__
    assert found.python_version == platform.python_version()
    assert found.start_method in found.start_methods
    assert (found.accelerator is None) == (found.no_accelerator is not None)
    assert known_faults(found.version, found.python_version) is not None


@pytest.mark.parametrize(
    ("cuda", "visible", "said"),
    [
        (None, "0", "is built without CUDA"),
        ("13.0", "", "CUDA_VISIBLE_DEVICES hides all GPUs"),
        ("13.0", "-1", "CUDA_VISIBLE_DEVICES hides all GPUs"),
        ("13.0", "0", "The driver is too old (found 11040)."),
    ],
)
def test_why_there_is_no_accelerator(monkeypatch, cuda, visible, said):
    def init():
        raise RuntimeError("The driver is too old\n(found 11040).")

    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(doctor_torch.device, "accelerator", lambda: None)
    assert said in doctor_torch.describe()["no_accelerator"]


@pytest.mark.parametrize(("kind", "said"), [(None, "no accelerator"), ("mps", "CUDA devices, not on mps")])
def test_copies_need_cuda(monkeypatch, kind, said):
    monkeypatch.setattr(doctor_copies.device, "accelerator", lambda: kind)
    with pytest.raises(doctor.Unavailable, match=said):
        doctor_copies.measure()


@pytest.fixture
def gpu(monkeypatch):
    """The host plays the device; `emptied` and `pinned` count what was asked of the allocator."""
    calls = {"emptied": 0, "pinned": 0, "synchronised": 0, "empties": True}

    def pin(tensor):
        calls["pinned"] += 1
        if tensor.nbytes == 8 << 10:
            raise RuntimeError("CUDA error: out of memory\nmore")
        return tensor.clone()

    def empty():
        calls["emptied"] += 1
        return calls["empties"]

    def synchronise():
        calls["synchronised"] += 1

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (64 << 10, 1 << 30))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid="aaa"))
    monkeypatch.setattr(doctor_copies, "DEVICE", "cpu")
    monkeypatch.setattr(doctor_copies, "SIZES_BYTES", (4 << 10, 8 << 10, 32 << 10))
    monkeypatch.setattr(doctor_copies, "ROOM_BYTES", 64 << 10)
    monkeypatch.setattr(doctor_copies, "TIMING_S", 1e-5)
    monkeypatch.setattr(doctor_copies.device, "accelerator", lambda: "cuda")
    monkeypatch.setattr(doctor_copies.device, "empty_host_cache", empty)
    monkeypatch.setattr(doctor_copies.device, "synchronise", synchronise)
    return calls


def test_copies_by_size(gpu):
    found = msgspec.convert(doctor_copies.measure(), doctor_model.Copies)
    assert (found.device_name, found.device_uuid) == ("NVIDIA H200", "aaa")
    small, unpinnable, large = found.sizes
    assert small.reason is None
    assert small.pinned_bytes_per_s.repetitions == small.pageable_bytes_per_s.repetitions == 7
    assert small.pageable_bytes_per_s.min <= small.pageable_bytes_per_s.median <= small.pageable_bytes_per_s.max
    assert small.first_pin_ms.repetitions == doctor_copies.FIRST_PINS
    assert unpinnable.reason == "CUDA error: out of memory"
    assert unpinnable.pageable_bytes_per_s is None
    assert "the GPU has 0 MB free" in large.reason
    assert gpu["synchronised"] > 0
    assert gpu["synchronised"] % 2 == 0


def test_one_first_pin_where_the_cache_cannot_be_emptied(gpu):
    gpu["empties"] = False
    found = msgspec.convert(doctor_copies.measure(), doctor_model.Copies)
    assert found.sizes[0].first_pin_ms.repetitions == 1


@pytest.mark.parametrize("size", [64 << 10, 1 << 20])
def test_sources_begin_on_a_page(size):
    source = doctor_copies.aligned(size)
    assert source.data_ptr() % 4096 == 0
    assert source.nbytes == size
    assert source.is_contiguous()


@pytest.mark.parametrize(
    ("free_bytes", "said"), [(None, None), (1 << 30, None), (64 << 20, "5 batches hold 84 MB, and /dev/shm has 67 MB")]
)
def test_batches_that_do_not_fit_into_shm(free_bytes, said):
    found = doctor_hand_off.too_large(16 << 20, free_bytes)
    assert (found is None) if said is None else said in found


def test_no_size_fits(monkeypatch):
    monkeypatch.setattr(doctor_hand_off, "_free_shm", lambda: 1000)
    with pytest.raises(doctor.Unavailable, match="/dev/shm has 0 MB free"):
        doctor_hand_off.hand_off("fork")


def test_a_start_method_that_the_platform_lacks(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(doctor.Unavailable, match="the platform has no fork"):
        doctor_hand_off.hand_off("fork")


def test_only_batches_of_the_wanted_size_are_timed(monkeypatch):
    """The queue still holds batches of the size before."""
    taken = []

    def batches():
        for size in [4, 4, 4, *[8] * 1000]:
            taken.append(size)
            yield torch.ones(size, dtype=torch.uint8)

    moments = iter(range(100_000))
    monkeypatch.setattr(doctor_hand_off.time, "perf_counter", lambda: float(next(moments)))
    found = doctor_hand_off._rate(batches(), 8)
    # Each take lasts one second of that clock, and takes 2 * PREFETCH batches.
    assert found["median"] == 2 * doctor_hand_off.PREFETCH * 8
    assert taken[:4] == [4, 4, 4, 8]


def test_a_sample_is_made_once():
    ready = doctor_hand_off.Ready()
    assert ready[16] is ready[16]
    assert ready[16].nbytes == 16
