from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pindiag.launch.offered import not_offered

FILES = ("stat", "io", "schedstat", "mountinfo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Linux that shows everything."""
    for name in FILES:
        path = tmp_path / "proc/self" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    for name in ("cpu", "io", "memory"):
        path = tmp_path / "proc/pressure" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("some total=1\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    groups = tmp_path / "sys/fs/cgroup"
    groups.mkdir(parents=True)
    (groups / "cgroup.controllers").write_text("cpu memory\n")
    (groups / "cpu.stat").write_text("throttled_usec 5\n")
    return tmp_path


def test_everything_is_offered(root: Path) -> None:
    assert not_offered(root) == {}


def test_a_container_without_psi(root: Path) -> None:
    for name in ("cpu", "io", "memory"):
        (root / "proc/pressure" / name).unlink()
    reasons = not_offered(root)
    assert reasons.keys() == {"psi_cpu", "psi_io", "psi_memory"}
    assert reasons["psi_io"] == "/proc/pressure/io does not exist: the kernel lacks it, or the container hides it"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "may not be read by this user"),
        (errno.EOPNOTSUPP, "is switched off in the kernel"),
        (errno.EIO, "cannot be read (Input/output error)"),
    ],
)
def test_unreadable_files(root: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "io":
            raise OSError(number, "Input/output error")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert not_offered(root) == {"read_bytes": f"/proc/self/io {words}", "psi_io": f"/proc/pressure/io {words}"}


def test_no_accounted_throttling(root: Path) -> None:
    (root / "sys/fs/cgroup/cpu.stat").write_text("usage_usec 5\n")
    assert not_offered(root) == {"throttled": "no control group of this process accounts throttled time"}


def test_platforms_without_proc(tmp_path: Path) -> None:
    reasons = not_offered(tmp_path)
    assert set(reasons.values()) == {"there is no /proc on this platform"}
    assert {"psi_cpu", "read_bytes", "storage", "throttled"} <= reasons.keys()
