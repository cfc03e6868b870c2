"""What a platform lacks or a damaged file holds costs the reading concerned, with its reason, and nothing else."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from pindiag.launch import cgroups
from pindiag.launch.interrupts import Interrupts, _numbers
from pindiag.launch.machine import read_machine
from pindiag.launch.nvml import Nvml
from pindiag.launch.sampler import MachineReader


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


def test_interrupts_where_there_is_no_hang_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP")
    assert {number.name for number in _numbers()} >= {"SIGINT", "SIGTERM"}
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
    assert interrupts.reason == "ended by SIGTERM"
