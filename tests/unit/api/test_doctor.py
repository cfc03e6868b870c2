"""What was read and measured is put together; what is missing keeps its reason."""

import os
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from pindiag.api.doctor import Links, assemble
from pindiag.doctor_model import Doctor
from pindiag.launch.doctor import Reading
from pindiag.launch.machine import read_machine
from pindiag.launch.nvml import Nvml
from pindiag.rules.machine_limits import limits
from tests.unit import doctor_example as example

DATA = Path(__file__).parents[2] / "data"


def readings(**changes):
    usual = {
        "torch": Reading(msgspec.to_builtins(example.torch(version="2.13.0")), None),
        "hand_off fork": Reading(msgspec.to_builtins(example.hand_off()), None),
        "copies": Reading(msgspec.to_builtins(example.copies()), None),
    }
    return usual | changes


def put_together(machine=None, **changes) -> Doctor:
    gpus = [{key: value for key, value in example.gpu().items() if key != "pcie_under_load"}]
    return assemble(machine or example.machine(gpus=gpus), readings(**changes), python="/usr/bin/python3", seconds=9.0)


def reasons(found: Doctor) -> dict[str, str]:
    return {each.key: each.reason for each in found.not_measured}


def test_everything_measured():
    found = put_together()
    assert found.hand_off == [example.hand_off()]
    assert found.copies == example.copies()
    assert found.not_measured == []
    assert "192722" in found.known_faults[0].source
    assert found.limits == []


def test_it_survives_json():
    found = put_together()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Doctor) == found


def test_a_part_that_failed_is_null_with_its_reason():
    found = put_together(
        **{"hand_off spawn": Reading(None, "it took too long and was ended"), "copies": Reading(None, "no accelerator")}
    )
    assert found.copies is None
    assert [each.start_method for each in found.hand_off] == ["fork"]
    assert reasons(found) == {"hand_off.spawn": "it took too long and was ended", "copies": "no accelerator"}


def test_without_torch_the_machine_is_told():
    found = put_together(torch=Reading(None, "the interpreter has no torch"))
    assert found.torch is None
    assert found.known_faults == []
    assert found.machine.usable_cpus == 16


def test_a_probe_that_tells_nonsense():
    found = put_together(torch=Reading({"version": 2}, None))
    assert found.torch is None
    assert "the probe told something else than expected" in reasons(found)["torch"]


def test_a_platform_without_shm_and_gpu(tmp_path):
    def load():
        raise ImportError

    found = put_together(read_machine(Nvml(load), root=tmp_path))
    assert found.machine.shm_bytes is None
    assert reasons(found)["machine.shm_bytes"] == "there is no /dev/shm"
    assert "nvidia-ml-py is not installed" in reasons(found)["machine.gpus"]


def test_windows_has_neither_limits_nor_affinity(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "statvfs", raising=False)
    monkeypatch.setattr(platform, "platform", lambda: "Windows-11")
    found = put_together(read_machine(Nvml(lambda: None), root=tmp_path))
    assert found.machine.usable_cpus_reason == "all"
    assert reasons(found)["machine.open_files_limit"] == "the platform has no such limit"
    assert reasons(found)["machine.locked_memory_limit_bytes"] == "the platform has no such limit"
    assert reasons(found)["machine.shm_bytes"] == "there is no /dev/shm"
    assert found.limits == []


@pytest.mark.parametrize(
    ("uuids", "measured", "loaded"),
    [
        (["GPU-aaa", "GPU-bbb"], "bbb", [False, True]),
        (["GPU-aaa", "GPU-bbb"], None, [False, False]),
        (["GPU-aaa"], None, [True]),
    ],
    ids=["by its number", "which one is not known", "the only one"],
)
def test_the_gpu_whose_link_was_loaded(uuids, measured, loaded):
    machine = example.machine(gpus=[example.gpu(uuid=uuid, pcie_under_load=None) for uuid in uuids])
    copies = Reading(msgspec.to_builtins(example.copies(device_uuid=measured)), None)
    found = put_together(machine, copies=copies)
    assert [gpu["pcie_under_load"] for gpu in found.machine.gpus] == loaded


def test_without_copies_no_link_was_loaded():
    machine = example.machine(gpus=[example.gpu(pcie_gen=1, pcie_under_load=None)])
    found = put_together(machine, copies=Reading(None, "its process ended early"))
    assert [gpu["pcie_under_load"] for gpu in found.machine.gpus] == [False]
    assert found.limits == []


def test_a_link_is_told_at_its_best():
    looks = iter([[example.gpu(pcie_gen=5)], [example.gpu(pcie_gen=2, pcie_width=None)], []])
    links = Links(SimpleNamespace(gpus=lambda: next(looks)), [example.gpu(pcie_gen=1, pcie_width=None)])
    for _ in range(3):
        links.look()
    assert links.gpus == [example.gpu(pcie_gen=5, pcie_width=16)]


def test_home_is_not_told(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    found = assemble(example.machine(), readings(), python="/home/ann/venv/bin/python", seconds=1.0)
    assert found.python == "~/venv/bin/python"


def test_the_recorded_h200():
    found = msgspec.json.decode((DATA / "h200" / "doctor.json").read_bytes(), type=Doctor)
    large = found.copies.sizes[-1]
    assert large.bytes == 256 << 20
    assert large.pinned_bytes_per_s.median > 50e9
    assert 4e9 < large.pageable_bytes_per_s.median < 8e9
    assert large.first_pin_ms.median > 10 * large.cached_pin_ms.median
    assert found.machine.gpus[0]["pcie_under_load"]
    assert limits(found) == found.limits == []
