"""A machine with a GPU on which everything could be measured, to be changed as a test needs."""

from __future__ import annotations

from typing import Any

from pindiag.doctor_model import Copies, CopySize, Doctor, HandOff, HandOffSize, Spread, Torch
from pindiag.model import Machine

MB = 10**6
GB = 10**9


def machine(**changes: Any) -> Machine:
    usual = {
        "launch": 0,
        "t_ns": 1,
        "platform": "Linux-6.1",
        "kernel": "6.1",
        "logical_cpus": 16,
        "physical_cpus": 8,
        "usable_cpus": 16,
        "usable_cpus_reason": "all",
        "memory_bytes": 128 * GB,
        "memory_available_bytes": 100 * GB,
        "cgroup_memory_limit_bytes": None,
        "swap_bytes": 0,
        "shm_bytes": 64 * GB,
        "shm_free_bytes": 60 * GB,
        "open_files_limit": 65536,
        "locked_memory_limit_bytes": None,
        "gpus": [gpu()],
        "fingerprint": "abc",
    }
    return Machine(**(usual | changes))


def gpu(**changes: Any) -> dict[str, Any]:
    usual = {
        "name": "NVIDIA H200",
        "uuid": "GPU-aaa",
        "memory_bytes": 150 * GB,
        "driver": "580.1",
        "pcie_gen": 5,
        "pcie_width": 16,
        "pcie_gen_max": 5,
        "pcie_width_max": 16,
        "pcie_under_load": True,
    }
    return usual | changes


def torch(**changes: Any) -> Torch:
    usual = {
        "version": "2.12.1",
        "python_version": "3.12.1",
        "cuda_version": "13.0",
        "hip_version": None,
        "accelerator": "cuda",
        "no_accelerator": None,
        "intraop_threads": 16,
        "start_method": "fork",
        "start_methods": ["fork", "spawn", "forkserver"],
        "sharing_strategy": "file_descriptor",
    }
    return Torch(**(usual | changes))


def spread(median: float) -> Spread:
    return Spread(median=median, min=0.9 * median, max=1.1 * median, repetitions=7)


def copies(pinned: float = 55e9, device_uuid: str | None = "aaa") -> Copies:
    size = CopySize(
        bytes=64 << 20,
        pageable_bytes_per_s=spread(8e9),
        pinned_bytes_per_s=spread(pinned),
        first_pin_ms=spread(57.5),
        cached_pin_ms=spread(2.53),
    )
    sizes = [size, CopySize(bytes=256 << 20, reason="CUDA error: out of memory")]
    return Copies(device_name="NVIDIA H200", device_uuid=device_uuid, sizes=sizes)


def hand_off(start_method: str = "fork") -> HandOff:
    sizes = [
        HandOffSize(batch_bytes=64 << 10, bytes_per_s=spread(116e6)),
        HandOffSize(batch_bytes=16 << 20, bytes_per_s=None, reason="/dev/shm has 64 MB free"),
    ]
    return HandOff(start_method=start_method, startup_s=0.8, sizes=sizes)


def doctor(**changes: Any) -> Doctor:
    usual = {
        "pindiag_version": "0",
        "python": "/usr/bin/python3",
        "machine": machine(),
        "torch": torch(),
        "copies": copies(),
        "hand_off": [hand_off()],
        "seconds": 20.0,
    }
    return Doctor(**(usual | changes))


def on_cpu(**changes: Any) -> Doctor:
    """The same without any GPU."""
    no_gpu = torch(accelerator=None, no_accelerator="torch 2.12.1 is built without CUDA")
    return doctor(**({"machine": machine(gpus=[]), "torch": no_gpu, "copies": None} | changes))
