"""What a platform lacks or a damaged file holds costs the reading concerned, with its reason, and nothing else."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from pindiag.launch import cgroups, guardian, machine, numa, stacks
from pindiag.launch.machine import read_machine
from pindiag.launch.nvml import Nvml
from pindiag.launch.processes import Tree
from pindiag.launch.sampler import MachineReader, Sampler
from pindiag.launch.storage import Seen, Storage
from pindiag.model import Sample
from pindiag.store import read_journal
from tests.unit.spoiled import WAYS, spoil


def no_library() -> Any:
    raise ImportError


def test_a_platform_without_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(resource, "RLIMIT_MEMLOCK")
    machine = read_machine(Nvml(no_library), tmp_path)
    assert machine.locked_memory_limit_bytes is None
    assert machine.missing["locked_memory_limit_bytes"] == "the platform has no such limit"
    assert "open_files_limit" not in machine.missing


def test_a_limit_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> Any:
        raise OSError("refused")

    monkeypatch.setattr(resource, "getrlimit", refuse)
    assert read_machine(Nvml(no_library), tmp_path).missing["open_files_limit"] == "the limit cannot be read: refused"


@pytest.mark.parametrize("text", ["", "garbage\n", "0:x\n"])
def test_a_damaged_list_of_control_groups(tmp_path: Path, text: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(text)
    assert cgroups.folders("cpu", tmp_path) == []


def test_damaged_lines_of_meminfo_cost_no_other(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("Cached: x kB\nMemAvailable: 3 kB\n")
    read = MachineReader(tmp_path).read()
    assert (read["memory_available_bytes"], read["memory_cached_bytes"]) == (3072, None)


MACHINE = {
    "proc/meminfo": "MemAvailable: 60 kB\nCached: 7 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
    "proc/stat": "cpu  100 20 30 4000 50 6 4 9 0 0\n",
    **{f"proc/pressure/{what}": "some avg10=0.00 total=7\n" for what in ("cpu", "io", "memory")},
    "sys/fs/cgroup/memory.current": "123\n",
    "sys/fs/cgroup/cpu.stat": "throttled_usec 25\n",
}
OF_FILES = {
    "proc/meminfo": {"memory_available_bytes", "memory_cached_bytes", "swap_used_bytes"},
    "proc/stat": {"machine_cpu_s", "usable_cpu_s", "steal_s"},
    "proc/pressure/cpu": {"psi_cpu_s"},
    "proc/pressure/io": {"psi_io_s"},
    "proc/pressure/memory": {"psi_memory_s"},
    "proc/self/cgroup": {"cgroup_memory_bytes", "cgroup_throttled_s"},
    "sys/fs/cgroup/memory.current": {"cgroup_memory_bytes"},
    "sys/fs/cgroup/cpu.stat": {"cgroup_throttled_s"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OF_FILES)
def test_a_spoiled_file_costs_its_own_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    groups = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cgroup.controllers": "cpu memory\n"}
    for file, text in (MACHINE | groups).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1), raising=False)
    for question in ("virtual_memory", "swap_memory", "cpu_times"):
        monkeypatch.setattr(psutil, question, refuse)
    whole = MachineReader(tmp_path).read()
    spoil(monkeypatch, tmp_path, tmp_path / name, way)
    read = MachineReader(tmp_path).read()
    lost = {field for field, value in whole.items() if read[field] != value}
    assert lost == OF_FILES[name]
    assert all(read[field] is None for field in lost)


def refuse(*_: object) -> Any:
    raise PermissionError("refused")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["stat", "io", "status", "maps", "mountinfo", "smaps_rollup"])
def test_the_sampler_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str) -> None:
    """Over this very process: neither is a sample lost, nor what the target's pause is used for."""
    spoil(monkeypatch, tmp_path, Path(f"/proc/{os.getpid()}/{name}"), way)
    journal = tmp_path / "s.jsonl"
    sampler = Sampler(1, Tree(os.getpid()), journal, machine=MachineReader(), clock_ns=time.monotonic_ns)
    sampler.sample()
    memory = sampler.memory(1, "nw0")
    sampler.close()
    samples = [record for _, record in read_journal(journal) if isinstance(record, Sample)]
    assert [process.pid for process in samples[0].processes][0] == os.getpid()
    assert (memory.pss_bytes is None) == (name == "smaps_rollup")
    assert (memory.reason is None) == (memory.pss_bytes is not None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["proc/cpuinfo", "proc/self/cgroup", "sys/devices/system/node/node0/cpulist"])
def test_a_machine_with_a_spoiled_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("0-3\n")
    spoil(monkeypatch, tmp_path, path, way)
    read = read_machine(Nvml(no_library), tmp_path)
    assert read.memory_bytes > 0
    assert read.numa_cpus is None
    assert read.missing["numa_cpus"] == "the platform does not tell NUMA nodes"


@pytest.mark.parametrize("error", [PermissionError("refused"), KeyError("MemTotal"), ValueError("damaged")])
def test_memory_that_psutil_cannot_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise error

    total = machine.memory_bytes()
    for question in ("virtual_memory", "swap_memory", "cpu_count"):
        monkeypatch.setattr(psutil, question, fail)
    read = read_machine(Nvml(no_library), tmp_path)
    assert read.memory_bytes == machine.memory_bytes() == pytest.approx(total, rel=0.01)
    assert 0 < read.memory_available_bytes <= total
    assert {"swap_bytes", "physical_cpus"} <= read.missing.keys()


@pytest.mark.parametrize("way", WAYS)
def test_kills_for_want_of_memory_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/vmstat").write_text("oom_kill 5\n")
    spoil(monkeypatch, tmp_path, tmp_path / "proc/vmstat", way)
    assert cgroups.out_of_memory_kills(tmp_path) is None


@pytest.mark.parametrize("way", WAYS)
def test_the_guardian_leaves_out_what_it_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    me = os.getpid()
    assert {me, os.getppid()} <= {process.pid for process in guardian.table()}
    spoil(monkeypatch, tmp_path, Path(f"/proc/{me}/stat"), way)
    found = {process.pid for process in guardian.table()}
    assert me not in found
    assert os.getppid() in found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["fdinfo/3", "maps", "mountinfo"])
def test_files_of_a_process_that_cannot_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    process, data = tmp_path / "proc/10", tmp_path / "data.bin"
    for folder in ("fd", "fdinfo"):
        (process / folder).mkdir(parents=True)
    data.write_bytes(b"1")
    (process / "fd/3").symlink_to(data)
    (process / "fdinfo/3").write_text("pos:\t0\nflags:\t0100000\n")
    (process / "maps").write_text(f"7f0000000000-7f0001000000 r--p 00000000 08:01 7     {data}\n")
    (process / "mountinfo").write_text("22 1 8:1 / / rw shared:1 - ext /dev/sda rw\n")
    spoil(monkeypatch, tmp_path, process / name, way)
    storage = Storage("/nowhere", str(tmp_path / "proc"), str(tmp_path / "sys"))
    found = storage.opened(10), storage.mapped(10)
    seen = tuple([Seen("ext", "/dev/sda", None, how)] for how in ("open", "mapped"))
    assert found == {"fdinfo/3": ([], seen[1]), "maps": (seen[0], []), "mountinfo": ([], [])}[name]


def test_descriptors_that_may_not_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    (me,) = Tree(os.getpid()).read()
    monkeypatch.setattr("os.listdir", refuse)
    assert Storage("/nowhere").opened(os.getpid()) == []
    assert "no stack: " in stacks.read([me], send=pytest.fail, pause=lambda _: None)


def test_a_damaged_list_of_cpus(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/node/node0"
    folder.mkdir(parents=True)
    (folder / "cpulist").write_text("0-x,2,3-4,-\n")
    assert numa.cpus_by_node(tmp_path) == {"0": [2, 3, 4]}
