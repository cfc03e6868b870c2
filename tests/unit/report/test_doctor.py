"""The text of `pindiag doctor`: every value, and every missing value with its reason."""

import pytest

from pindiag.model import NotMeasured
from pindiag.report.doctor import sections
from pindiag.rules.known_versions import known_faults
from pindiag.rules.machine_limits import limits
from tests.unit import doctor_example as example


def text(found) -> dict[str, str]:
    return {
        section.title: "\n".join([" | ".join(row) for row in [section.header, *section.rows]] + list(section.notes))
        for section in sections(found)
    }


MACHINE, TORCH = "Machine", "torch"
COPIES = "Copies from host to GPU, and pinning"
HAND_OFF = "Hand-off of batches by one worker, by their size"
FAULTS = "Known faults of these versions"


def test_what_was_measured_stands_there():
    shown = text(example.doctor())
    assert "CPUs | 16 usable of 16 on 8 cores" in shown[MACHINE]
    assert "driver 580.1, PCIe gen 5 x16 of at most gen 5 x16 (under load)" in shown[MACHINE]
    assert "locked memory | unlimited" in shown[MACHINE]
    assert "open files | 65\u202f536" in shown[MACHINE]
    assert "2.12.1, built for CUDA 13.0" in shown[TORCH]
    assert "accelerator | cuda, NVIDIA H200" in shown[TORCH]
    assert "64 MiB | 8.00 GB/s | 55.0 GB/s | 57.5 ms | 2.53 ms" in shown[COPIES]
    assert "256 MiB | not measured: CUDA error: out of memory" in shown[COPIES]
    assert "Host clock between two device synchronisations" in shown[COPIES]
    assert "fork (default) | 800 ms | 116 MB/s | not measured: /dev/shm has 64 MB free" in shown[HAND_OFF]
    assert shown["Limits"].endswith("None found in what could be read and measured.")


def test_limits_and_faults_are_sentences():
    found = example.doctor(machine=example.machine(usable_cpus=2, usable_cpus_reason="affinity"))
    found = example.doctor(machine=found.machine, limits=limits(found), known_faults=known_faults("2.13.0", "3.12.0"))
    shown = text(found)
    assert "- This process may use 2 of 16 CPUs" in shown["Limits"]
    assert "16 on 8 cores (limited by affinity)" in shown[MACHINE]
    assert "pytorch/pull/192722" in shown[FAULTS]


def test_what_was_not_measured_says_why():
    missing = [
        NotMeasured(key="torch", reason="the interpreter has no torch"),
        NotMeasured(key="copies", reason="no accelerator"),
        NotMeasured(key="hand_off.fork", reason="its process ended early (killed by SIGSEGV)"),
    ]
    shown = text(example.on_cpu(torch=None, hand_off=[], not_measured=missing))
    assert "Not measured: the interpreter has no torch." in shown[TORCH]
    assert "Not measured: the interpreter has no torch." in shown[FAULTS]
    assert "Not measured: no accelerator." in shown[COPIES]
    assert "fork: its process ended early (killed by SIGSEGV)." in shown[HAND_OFF]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"missing": {"gpus": "nvidia-ml-py is not installed"}}, "GPU | nvidia-ml-py is not installed"),
        ({}, "GPU | none"),
        ({"shm_bytes": None, "missing": {"shm_bytes": "there is no /dev/shm"}}, "/dev/shm | there is no /dev/shm"),
        (
            {"open_files_limit": None, "missing": {"open_files_limit": "the platform has no such limit"}},
            "open files | the platform has no such limit",
        ),
        ({"physical_cpus": None}, "CPUs | 16 usable of 16\n"),
        ({"cgroup_memory_limit_bytes": 4 * example.GB}, "memory limit | 4.00 GB"),
    ],
)
def test_a_machine_that_does_not_tell_everything(changes, line):
    assert line in text(example.on_cpu(machine=example.machine(gpus=[], **changes)))[MACHINE]


def test_a_gpu_that_tells_nothing():
    silent = dict.fromkeys(example.gpu()) | {"pcie_under_load": False}
    shown = text(example.doctor(machine=example.machine(gpus=[silent])))[MACHINE]
    assert "GPU 0 | not known, memory not known, driver not known, PCIe link not known" in shown


def test_an_idle_link_is_said_to_be_idle():
    shown = text(example.doctor(machine=example.machine(gpus=[example.gpu(pcie_gen=1, pcie_under_load=False)])))
    assert "PCIe gen 1 x16 of at most gen 5 x16 (read while idle, when a link may slow down)" in shown[MACHINE]
