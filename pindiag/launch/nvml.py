"""What NVIDIA's management library tells about GPUs; `nvidia-ml-py` is optional (the `[gpu]` extra)."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from pindiag.model import Scalar

PCIE_EVERY = 5
"""NVML counts PCIe traffic over 20 ms and holds the caller so long: not at every sample."""


NOTHING: Mapping[str, None] = dict.fromkeys(
    (
        "gpu_utilization",
        "gpu_memory_utilization",
        "gpu_memory_bytes",
        "gpu_sm_clock_mhz",
        "gpu_memory_clock_mhz",
        "gpu_power_w",
        "gpu_throttle_reasons",
        "pcie_rx_bytes_per_s",
        "pcie_gen",
        "pcie_width",
    )
)
_NO_PCIE: Mapping[str, None] = dict.fromkeys(("pcie_rx_bytes_per_s", "pcie_gen", "pcie_width"))


class Nvml:
    """The library, loaded once; `reason` says why where it cannot be used."""

    def __init__(self, load: Callable[[], Any] = lambda: importlib.import_module("pynvml")) -> None:
        self.reason: str | None = None
        self._library: Any = None
        try:
            library = load()
            library.nvmlInit()
            self._library = library
        except ImportError:
            self.reason = "nvidia-ml-py is not installed (pip install 'pindiag[gpu]')"
        except Exception as error:  # NVML raises kinds of its own, one for each driver fault
            self.reason = f"NVML does not work: {error}"

    def gpus(self) -> list[dict[str, Scalar]]:
        """One dictionary a GPU of the machine: the fields that `Machine.gpus` names, and `pci_bus_id` for its node."""
        if self._library is None:
            return []
        with contextlib.suppress(Exception):
            ordinals = self._ordinals()
            found = [self._describe(handle) for handle in self._handles()]
            return [{**gpu, "ordinal": ordinals.get(gpu["uuid"])} for gpu in found]
        return []

    def _ordinals(self) -> dict[Scalar, int]:
        """The numbers that CUDA gives the GPUs which it may see, by their uuid."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        found: dict[Scalar, int] = {}
        with contextlib.suppress(Exception):  # CUDA ends the list where a name means nothing
            for ordinal in range(self._count()):
                found[self._uuid(self._handle(ordinal, visible))] = ordinal
        return found

    def _count(self) -> int:
        return int(self._library.nvmlDeviceGetCount())

    def _describe(self, handle: Any) -> dict[str, Scalar]:
        nvml = self._library
        return {
            "name": _read(lambda: _text(nvml.nvmlDeviceGetName(handle))),
            "uuid": _read(lambda: _text(nvml.nvmlDeviceGetUUID(handle))),
            "memory_bytes": _read(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
            "driver": _read(lambda: _text(nvml.nvmlSystemGetDriverVersion())),
            "pcie_gen": _read(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
            "pcie_width": _read(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
            "pcie_gen_max": _read(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))),
            "pcie_width_max": _read(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
            "sm_clock_max_mhz": _read(lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))),
            "pci_bus_id": _read(lambda: _text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        }

    def watch(self, device: str | None, visible: str | None = None) -> Gpu | None:
        """The GPU that a torch device name means to the target, or None where there is none to watch.

        Args:
            device: "cuda", "cuda:1", "1" or None for the first.
            visible: CUDA_VISIBLE_DEVICES; read from the environment if None.
        """
        if self._library is None:
            return None
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        try:
            return Gpu(self._library, self._handle(_ordinal(device), visible))
        except Exception as error:
            self.reason = f"NVML does not know the device {device or 'cuda:0'}: {error}"
            return None

    def _handle(self, ordinal: int, visible: str | None) -> Any:
        names = [str(index) for index in range(self._count())] if visible is None else visible.split(",")
        name = names[ordinal].strip()
        if name.isdigit():
            return self._library.nvmlDeviceGetHandleByIndex(int(name))
        if name.startswith("MIG-"):
            return self._library.nvmlDeviceGetHandleByUUID(name)
        if not name.startswith("GPU-"):
            raise LookupError(f"CUDA_VISIBLE_DEVICES is {visible!r}")
        return next(handle for handle in self._handles() if self._uuid(handle).startswith(name))

    def _handles(self) -> list[Any]:
        return [self._library.nvmlDeviceGetHandleByIndex(index) for index in range(self._count())]

    def _uuid(self, handle: Any) -> str:
        return _text(self._library.nvmlDeviceGetUUID(handle))


class Gpu:
    """One GPU, read at every sample."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self._reads = 0

    def read(self) -> Mapping[str, Any]:
        """The GPU's fields of a `Sample`."""
        nvml, handle = self._library, self._handle
        rates = _read(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        pcie_turn = self._reads % PCIE_EVERY == 0
        self._reads += 1
        return {
            "gpu_utilization": rates and rates.gpu / 100,
            "gpu_memory_utilization": rates and rates.memory / 100,
            "gpu_memory_bytes": _read(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
            "gpu_sm_clock_mhz": _read(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            "gpu_memory_clock_mhz": _read(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            "gpu_power_w": _read(lambda: int(nvml.nvmlDeviceGetPowerUsage(handle)) / 1000),
            "gpu_throttle_reasons": _read(lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
            **(self._pcie() if pcie_turn else _NO_PCIE),
        }

    def _pcie(self) -> dict[str, int | None]:
        nvml, handle = self._library, self._handle
        return {
            "pcie_rx_bytes_per_s": _read(
                lambda: 1024 * int(nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES))
            ),
            "pcie_gen": _read(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))),
            "pcie_width": _read(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
        }


def _ordinal(device: str | None) -> int:
    last = (device or "").rpartition(":")[2]
    return int(last) if last.isdigit() else 0


def _read(read: Callable[[], Any]) -> Any:
    """One reading; None where this GPU or driver lacks it."""
    try:
        return read()
    except Exception:
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
