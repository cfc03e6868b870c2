"""What shows that memory ran out, over groups and counters on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pindiag.launch.scarcity import Scarcity

MACHINE = 1_000_000_000
OWN = "sys/fs/cgroup/memory/job/step/"
ABOVE = "sys/fs/cgroup/memory/job/"


def written(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A step without a limit in a job of 500 MB, in which processes were killed before."""
    files = {"proc/self/cgroup": "4:memory:/job/step\n", f"{OWN}memory.oom_control": "oom_kill 2\n"}
    for folder, limit in ((OWN, 1 << 62), (ABOVE, 500_000_000)):
        files |= {f"{folder}memory.limit_in_bytes": f"{limit}\n", f"{folder}memory.max_usage_in_bytes": "300000000\n"}
    written(tmp_path, files)
    return tmp_path


KILLED = {f"{OWN}memory.oom_control": "oom_kill 3\n"}
FULL = {f"{ABOVE}memory.max_usage_in_bytes": "500000000\n"}


@pytest.mark.parametrize(
    ("files", "low_available_bytes", "told"),
    [
        ({}, 900_000_000, None),
        (FULL, 900_000_000, None),  # page cache fills a group too
        (
            {**KILLED, **FULL},
            900_000_000,
            "the kernel killed a process: its control group reached its memory limit of 500 MB",
        ),
        (KILLED, None, "the kernel killed a process: it was out of memory"),
        (
            {**KILLED, **FULL},
            20_000_000,
            "the kernel killed a process: only 20 MB of the machine's memory were left",
        ),
        ({}, 20_000_000, "only 20 MB of the machine's memory were left"),
    ],
)
def test_what_happened_since(
    machine: Path, files: dict[str, str], low_available_bytes: int | None, told: str | None
) -> None:
    scarcity = Scarcity(machine)
    written(machine, files)
    assert scarcity.evidence(low_available_bytes, MACHINE) == told


@pytest.mark.parametrize(
    ("low", "told"), [(29_000_000, "only 29 MB of the machine's memory were left"), (31_000_000, None)]
)
def test_where_no_kill_is_counted_what_was_left_tells(tmp_path: Path, low: int, told: str | None) -> None:
    assert Scarcity(tmp_path).evidence(low, MACHINE) == told
