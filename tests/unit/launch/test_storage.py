from __future__ import annotations

import os
from pathlib import Path

import pytest

from pindiag.launch.storage import Seen, Storage

MOUNTINFO = r"""22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
23 22 0:50 / %(data)s ro shared:2 master:1 - nfs4 server:/export rw
24 22 259:1 / %(fast)s rw - xfs /dev/nvme0n1p1 rw
"""


class Machine:
    """A process 10 whose files lie on three mounts."""

    def __init__(self, root: Path) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        self.process = self.proc / "10"
        self.data, self.fast, self.own = root / "my data", root / "fast", root / "run"
        for folder in (self.process / "fd", self.process / "fdinfo", self.data, self.fast, self.own):
            folder.mkdir(parents=True)
        places = {"data": str(self.data).replace(" ", r"\040"), "fast": self.fast}
        (self.process / "mountinfo").write_text(MOUNTINFO % places)
        for number, turns in (("8:1/../queue", "1"), ("259:1/queue", "0")):
            folder = self.sys / "dev/block" / number
            (self.sys / "dev/block" / number.split("/")[0]).mkdir(parents=True, exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "rotational").write_text(turns + "\n")

    def open(self, path: Path, flags: int = os.O_RDONLY) -> None:
        path.touch()
        number = len(list((self.process / "fd").iterdir()))
        (self.process / "fd" / str(number)).symlink_to(path)
        (self.process / "fdinfo" / str(number)).write_text(f"pos:\t0\nflags:\t0{flags | os.O_CLOEXEC:o}\n")

    def map(self, path: Path | str, pages: int, how: str = "r--p") -> None:
        with (self.process / "maps").open("a") as maps:
            maps.write(f"7f0000000000-{0x7F0000000000 + 4096 * pages:x} {how} 00000000 103:01 7     {path}\n")

    def storage(self) -> Storage:
        return Storage(str(self.own), str(self.proc), str(self.sys))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_open_files_tell_their_mount_once(machine: Machine) -> None:
    machine.open(machine.data / "a.jpg")
    machine.open(machine.data / "b.jpg")
    machine.open(machine.fast / "c.bin")
    storage = machine.storage()
    found = storage.opened(10)
    assert sorted(found) == [Seen("nfs4", None, None, "open"), Seen("xfs", "/dev/nvme0n1p1", False, "open")]
    assert storage.opened(10) == []


def test_what_is_no_data_is_left_out(machine: Machine) -> None:
    machine.open(machine.fast / "log.txt", os.O_WRONLY)
    machine.open(machine.fast / "lock", os.O_RDWR)
    machine.open(machine.own / "ring")
    machine.open(machine.fast / "module.py")
    machine.open(machine.fast / "library.so.1")
    (machine.process / "fd/90").symlink_to("socket:[7]")
    (machine.process / "fd/91").symlink_to("/dev/null")
    (machine.process / "fd/92").symlink_to(machine.fast / "gone")
    assert machine.storage().opened(10) == []


def test_mapped_files(machine: Machine) -> None:
    machine.map(machine.fast / "two words.npy", 300)
    machine.map(machine.fast / "small.bin", 10)
    machine.map(machine.data / "program", 300)
    machine.map(machine.data / "program", 300, "r-xp")
    machine.map("/dev/shm/torch_1", 300, "rw-s")
    machine.map("[heap]", 3000)
    assert machine.storage().mapped(10) == [Seen("xfs", "/dev/nvme0n1p1", False, "mapped")]


def test_a_partition_turns_with_its_disk(machine: Machine, tmp_path: Path) -> None:
    machine.open(tmp_path / "elsewhere")
    assert machine.storage().opened(10) == [Seen("ext4", "/dev/sda1", True, "open")]


def test_a_process_that_is_gone(machine: Machine) -> None:
    assert machine.storage().opened(11) == machine.storage().mapped(11) == []


def test_our_own_process(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"1")
    with path.open("rb"):
        found = Storage("/nowhere").opened(os.getpid())
    assert found
    assert all(seen.filesystem for seen in found)
