import os
from pathlib import Path

import pytest

from pindiag.launch import clocks
from pindiag.launch.clocks import CLOCK, CpuClocks


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)


def clock(root: Path, cpu: int, text: str) -> Path:
    path = root / f"sys/devices/system/cpu/cpu{cpu}" / CLOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_fastest_of_the_cpus_that_the_target_may_run_on(tmp_path: Path) -> None:
    for cpu, khz in enumerate((800_000, 3_100_000, 2_000_000, 4_000_000)):
        clock(tmp_path, cpu, f"{khz}\n")
    found = CpuClocks(tmp_path)
    assert found.fastest_mhz() == 3100.0
    clock(tmp_path, 1, "1500000\n")
    assert found.fastest_mhz() == 2000.0


def test_where_nobody_tells_nothing_is_said(tmp_path: Path) -> None:
    assert CpuClocks(tmp_path).fastest_mhz() is None
    gone = clock(tmp_path, 0, "<unknown>\n")
    found = CpuClocks(tmp_path)
    assert found.fastest_mhz() is None
    gone.unlink()
    assert found.fastest_mhz() is None


def test_of_many_cpus_not_every_sample_reads_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_READS", 1)
    for cpu in range(3):
        clock(tmp_path, cpu, "1000000\n")
    found = CpuClocks(tmp_path)
    assert [found.fastest_mhz() for _ in range(6)] == [None, None, 1000.0] * 2
