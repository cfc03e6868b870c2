from types import SimpleNamespace
from typing import Any

import pytest

from pindiag.launch.nvml import NOTHING, Nvml
from pindiag.model import Sample

UUIDS = ["GPU-aaa", "GPU-bbb", "GPU-ccc"]


class Library:
    """pynvml with three GPUs; handles are their numbers."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __getattr__(self, name: str) -> Any:
        def answer(*words: Any) -> Any:
            raise RuntimeError("Not Supported")

        return answer

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return UUIDS[handle].encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA Test"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(total=100, used=10 * handle)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=50, memory=25)

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=b"00000000:18:00.0")

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: int) -> int:
        return 5

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 350_500

    def nvmlDeviceGetPcieThroughput(self, handle: int, counter: int) -> int:
        return 3


def test_not_installed() -> None:
    def load() -> Any:
        raise ImportError

    nvml = Nvml(load)
    assert "nvidia-ml-py is not installed" in (nvml.reason or "")
    assert nvml.gpus() == []
    assert nvml.watch("cuda:0") is None


def test_no_driver() -> None:
    def init() -> None:
        raise RuntimeError("Driver Not Loaded")

    assert Nvml(lambda: SimpleNamespace(nvmlInit=init)).reason == "NVML does not work: Driver Not Loaded"


def test_gpus() -> None:
    gpus = Nvml(Library).gpus()
    assert [gpu["uuid"] for gpu in gpus] == UUIDS
    assert gpus[0] == {
        "name": "NVIDIA Test",
        "uuid": "GPU-aaa",
        "memory_bytes": 100,
        "driver": None,
        "pcie_gen": 5,
        "pcie_width": None,
        "pcie_gen_max": None,
        "pcie_width_max": None,
        "sm_clock_max_mhz": None,
        "pci_bus_id": "00000000:18:00.0",
        "ordinal": 0,
    }


@pytest.mark.parametrize(
    ("visible", "ordinals"),
    [
        (None, [0, 1, 2]),
        ("2,0", [1, None, 0]),
        ("GPU-bbb", [None, 0, None]),
        ("1,GPU-zzz,0", [None, 0, None]),
        ("", [None] * 3),
    ],
)
def test_numbers_in_cuda(monkeypatch: pytest.MonkeyPatch, visible: str | None, ordinals: list[int | None]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu["ordinal"] for gpu in Nvml(Library).gpus()] == ordinals


@pytest.mark.parametrize(
    ("device", "visible", "number"),
    [
        (None, None, 0),
        ("cuda", None, 0),
        ("cuda:2", None, 2),
        ("1", None, 1),
        ("cuda:0", "2,0", 2),
        ("cuda:1", "2, 0", 0),
        ("cuda:0", "GPU-bbb", 1),
        ("cuda:1", "GPU-aaa,GPU-c", 2),
    ],
)
def test_watch(monkeypatch: pytest.MonkeyPatch, device: str | None, visible: str | None, number: int) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = Nvml(Library).watch(device, visible)
    assert gpu is not None
    assert gpu.read()["gpu_memory_bytes"] == 10 * number


@pytest.mark.parametrize("visible", ["0", "", "-1", "GPU-aaa,GPU-zzz"])
def test_device_that_is_not_there(visible: str) -> None:
    nvml = Nvml(Library)
    assert nvml.watch("cuda:1", visible) is None
    assert "cuda:1" in (nvml.reason or "")


def test_reading() -> None:
    gpu = Nvml(Library).watch("cuda:1", "0,1")
    assert gpu is not None
    first = gpu.read()
    assert first == {
        "gpu_utilization": 0.5,
        "gpu_memory_utilization": 0.25,
        "gpu_memory_bytes": 10,
        "gpu_sm_clock_mhz": None,
        "gpu_memory_clock_mhz": None,
        "gpu_power_w": 350.5,
        "gpu_throttle_reasons": None,
        "pcie_rx_bytes_per_s": 3072,
        "pcie_gen": 5,
        "pcie_width": None,
    }
    assert first.keys() == NOTHING.keys() <= set(Sample.__struct_fields__)
    assert [gpu.read()["pcie_rx_bytes_per_s"] for _ in range(5)] == [None] * 4 + [3072]


CALLS = [name for name in vars(Library) if name.startswith("nvml")]


@pytest.mark.parametrize("name", CALLS)
def test_any_call_may_fail(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delattr(Library, name)
    nvml = Nvml(Library)
    gpus, gpu = nvml.gpus(), nvml.watch("cuda:0")
    if name in ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
        assert (gpus, gpu) == ([], None)
        assert "Not Supported" in (nvml.reason or "")
    else:
        assert len(gpus) == 3
        assert gpu is not None
        assert gpu.read().keys() == NOTHING.keys()
