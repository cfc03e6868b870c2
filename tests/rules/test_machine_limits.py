"""Each limit of a machine: when it is said, with its numbers, and when it is not."""

import pytest

from pindiag.rules.machine_limits import limits
from tests.unit import doctor_example as example

MB, GB = example.MB, example.GB

CASES = {
    "affinity": (
        {"machine": example.machine(usable_cpus=4, usable_cpus_reason="affinity")},
        "usable_cpus",
        ["4 of 16 CPUs", "affinity mask"],
    ),
    "quota": (
        {"machine": example.machine(usable_cpus=2, usable_cpus_reason="cgroup quota")},
        "usable_cpus",
        ["2 of 16 CPUs", "CPU quota"],
    ),
    "memory limit": (
        {"machine": example.machine(cgroup_memory_limit_bytes=8 * GB)},
        "memory",
        ["8.00 GB", "128 GB"],
    ),
    "small shm": (
        {"machine": example.machine(shm_bytes=64 * MB, shm_free_bytes=64 * MB)},
        "shm",
        ["/dev/shm holds 64.0 MB: room for 8 batches of 8 MB", "--shm-size=1g"],
    ),
    "full shm": (
        {"machine": example.machine(shm_bytes=64 * GB, shm_free_bytes=80 * MB)},
        "shm",
        ["80.0 MB of its 64.0 GB free", "10 batches"],
    ),
    "no shm on Linux": (
        {"machine": example.machine(shm_bytes=None, shm_free_bytes=None)},
        "shm",
        ["There is no /dev/shm", "num_workers=0"],
    ),
    "open files": (
        {"machine": example.machine(open_files_limit=1024)},
        "open_files",
        ["1\u202f024 files", "10 batches", "ulimit -n"],
    ),
    "a GPU that torch cannot use": (
        {"torch": example.torch(accelerator=None, no_accelerator="torch 2.12.1 is built without CUDA"), "copies": None},
        "accelerator",
        ["torch cannot use the GPU (NVIDIA H200): torch 2.12.1 is built without CUDA."],
    ),
    "narrow link": (
        {"machine": example.machine(gpus=[example.gpu(pcie_gen=4, pcie_width=8)]), "copies": example.copies(13e9)},
        "pcie_link",
        ["generation 4 with 8 lanes", "generation 5 with 16", "15.8 GB/s instead of 63.0 GB/s"],
    ),
    "slow copies over a full link": ({"copies": example.copies(20e9)}, "copies", ["20.0 GB/s of the 63.0 GB/s"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_said_with_its_numbers(case):
    changes, name, words = CASES[case]
    (limit,) = limits(example.doctor(**changes))
    assert limit.name == name
    for word in words:
        assert word in f"{limit.what} {limit.do}"


NONE = {
    "as it should be": {},
    "an idle link may have slowed down": {
        "machine": example.machine(gpus=[example.gpu(pcie_gen=1, pcie_under_load=False)])
    },
    "a link that is not known": {"machine": example.machine(gpus=[example.gpu(pcie_gen=None, pcie_width_max=None)])},
    "a generation of the future": {"machine": example.machine(gpus=[example.gpu(pcie_gen=9, pcie_gen_max=9)])},
    "few files, but tensors are shared by name": {
        "machine": example.machine(open_files_limit=1024),
        "torch": example.torch(sharing_strategy="file_system"),
    },
    "macOS has no /dev/shm": {
        "machine": example.machine(platform="macOS-15", shm_bytes=None, shm_free_bytes=None),
    },
    "a limit above the machine's memory": {"machine": example.machine(cgroup_memory_limit_bytes=256 * GB)},
    "no torch": {"torch": None, "copies": None},
}


@pytest.mark.parametrize("case", NONE)
def test_no_limit_is_said(case):
    assert limits(example.doctor(**NONE[case])) == []


def test_without_a_gpu_there_is_nothing_to_say_of_it():
    assert limits(example.on_cpu()) == []
