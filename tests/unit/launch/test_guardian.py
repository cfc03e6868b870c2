import os
from pathlib import Path

from pindiag.launch.guardian import Entry, belongs, entry, remove_shared


def process(pid: int, parent: int, group: int, session: int, started: int = 0) -> Entry:
    return Entry(pid, parent, group, session, started, alive=True)


TABLE = [
    process(1, 0, 1, 1),
    process(10, 1, 10, 10),  # pindiag
    process(20, 10, 20, 20),  # the target
    process(21, 20, 20, 20),  # a worker
    process(22, 1, 22, 20),  # moved to a group of its own, its parent is dead
    process(23, 1, 23, 23, started=7),  # left the session, seen before
    process(24, 23, 24, 24),  # its child
    process(25, 21, 25, 25),  # left the session, but its parent is there
    process(26, 1, 26, 26),  # left the session, parent dead, but keeps the command line
    process(27, 26, 26, 26),
    process(30, 1, 30, 30),  # somebody else
    process(31, 1, 31, 31, started=8),  # has the number of one seen before
]


def test_belongs() -> None:
    found = belongs(TABLE, {20}, {26}, {23: 7, 31: 5})
    assert [entry.pid for entry in found] == [20, 21, 22, 23, 24, 25, 26, 27]


def test_nothing_belongs_to_no_launch() -> None:
    assert belongs(TABLE, set(), set(), {}) == []


def test_what_processes_left_in_shared_memory_is_removed_and_nothing_else(tmp_path: Path) -> None:
    own = entry(os.getpid())
    assert own is not None
    ours, older, others, something = names = ["torch_77_12_0", "torch_78_12_0", "torch_7_12_0", "sem.mp-77"]
    for name in names:
        (tmp_path / name).touch()
    os.utime(tmp_path / older, (1, 1))
    remove_shared({77: own.started, 78: own.started}, str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {older, others, something}
    remove_shared({77: own.started}, str(tmp_path / "missing"))
    assert not (tmp_path / ours).exists()
