from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pindiag.launch.machine import read_machine
from pindiag.launch.nvml import Nvml


def no_library() -> Any:
    raise ImportError


class TwoGpus(Nvml):
    """Says what NVML would of two GPUs, one of them on a bus that sysfs does not know."""

    def __init__(self) -> None:
        super().__init__(lambda: SimpleNamespace(nvmlInit=lambda: None))

    def gpus(self) -> list[dict[str, Any]]:
        return [{"name": "Test", "pci_bus_id": bus} for bus in ("00000000:18:00.0", None)]


def test_gpus_beside_the_cpus_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    for node, cpus in ((0, "0-3"), (1, "4-7")):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus)
    device = tmp_path / "sys/bus/pci/devices/0000:18:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    machine = read_machine(TwoGpus(), tmp_path)
    assert machine.affinity == [0, 1, 5]
    assert machine.numa_cpus == {"0": [0, 1, 2, 3], "1": [4, 5, 6, 7]}
    assert machine.gpus == [
        {"name": "Test", "numa_node": 1, "local_cpus": 1},
        {"name": "Test", "numa_node": None, "local_cpus": None},
    ]


def test_a_platform_without_proc_and_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    machine = read_machine(Nvml(no_library), tmp_path)
    assert (machine.affinity, machine.numa_cpus, machine.shm_bytes, machine.gpus) == (None, None, None, [])
    assert machine.missing["affinity"] == "the platform has no affinity masks"
    assert machine.missing["numa_cpus"] == "the platform does not tell NUMA nodes"
    assert "nvidia-ml-py is not installed" in machine.missing["gpus"]
    assert machine.not_sampled["storage"] == "there is no /proc on this platform"
    assert machine.usable_cpus >= 1
