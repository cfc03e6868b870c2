"""What the guard makes of single events; tests/integration/test_files_guard.py has the real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pindiag.model import FileTouched
from pindiag.probe import files
from pindiag.store import read_journal

Hook = Callable[[str, tuple[Any, ...]], None]


class Watched:
    """A guard that is told of events by hand: no audit hook is installed in the tests' own process."""

    def __init__(self, folder: Path, *, cap_bytes: int = 1000) -> None:
        self.run = folder / "run"
        self.guard = files._Guard(str(self.run), 4, cap_bytes)
        self.hook = self.guard.hook()

    def opened(self, path: object, flags: int) -> None:
        self.hook("open", (path, None, flags))

    def records(self) -> list[FileTouched]:
        return [
            record
            for path in sorted((self.run / "journal").glob("files-004-*.jsonl"))
            for _, record in read_journal(path)
            if isinstance(record, FileTouched)
        ]

    def actions(self) -> list[str]:
        return [record.action for record in self.records()]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (work / "old").write_text("the user's")
    return Watched(tmp_path)


WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        ("old", os.O_RDONLY),
        ("old", os.O_RDONLY | os.O_CLOEXEC),
        ("old", os.O_WRONLY | os.O_CREAT | os.O_EXCL),  # fails by itself
        ("missing", os.O_WRONLY),  # fails by itself
        (1, WRITE),  # a descriptor: its file was seen when it was opened
        ("/dev/null", WRITE),
        ("../run/journal/x.jsonl", WRITE),
        ("../cache/x", WRITE),
        ("__pycache__/x.pyc", WRITE),
        (".", os.O_RDWR),
    ],
)
def test_does_not_concern_the_users_files(watched: Watched, path: object, flags: int) -> None:
    watched.opened(path, flags)
    assert watched.records() == []


@pytest.mark.parametrize(
    ("flags", "action", "there"),
    [
        (WRITE, "set_aside", ""),
        (os.O_RDWR, "copied", "the user's"),
        (os.O_WRONLY | os.O_CREAT | os.O_APPEND, "copied", "the user's"),
    ],
)
def test_original_is_kept_before_it_is_opened(watched: Watched, flags: int, action: str, there: str) -> None:
    watched.opened("old", flags)
    (record,) = watched.records()
    assert record.action == action
    assert record.path == os.path.realpath("old")
    assert record.kept is not None
    assert Path(record.kept).read_text() == "the user's"
    assert Path("old").read_text() == there


def test_kept_once(watched: Watched) -> None:
    for flags in (os.O_RDWR, WRITE, os.O_RDWR):
        watched.opened("old", flags)
    watched.hook("os.remove", ("old", -1))
    assert watched.actions() == ["copied"]


def test_other_processes_of_the_launch_are_listened_to(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    other = files._Guard(str(watched.run), 4, 1000)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    other.hook()("open", ("old", None, os.O_RDWR))
    monkeypatch.undo()
    watched.opened(watched.records()[0].path, os.O_RDWR)
    assert watched.actions() == ["copied"]


def test_names_relative_to_a_descriptor(watched: Watched) -> None:
    folder = os.open(".", os.O_RDONLY)
    os.chdir("/")
    watched.hook("os.remove", ("old", folder))
    os.close(folder)
    (record,) = watched.records()
    assert record.action == "linked"
    assert Path(record.path).read_text() == "the user's"


def test_above_the_cap(watched: Watched) -> None:
    Path("large").write_bytes(bytes(1001))
    with pytest.raises(files.KeepRefused, match="--keep-cap 1GiB"):
        watched.opened("large", os.O_RDWR)
    watched.opened("large", WRITE)  # renaming it away costs nothing
    assert watched.actions() == ["refused", "set_aside"]


def test_a_large_database_is_only_named(watched: Watched) -> None:
    Path("large").write_bytes(bytes(1001))
    watched.hook("sqlite3.connect", ("large",))
    watched.hook("sqlite3.connect", (":memory:",))
    watched.hook("sqlite3.connect", ("old",))
    assert watched.actions() == ["left", "copied"]


def test_what_cannot_be_kept_is_not_changed(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(files.KeepRefused, match="No space left on device"):
        watched.opened("old", os.O_RDWR)
    watched.opened("new", WRITE)  # a new file is the script's own business
    assert Path("old").read_text() == "the user's"


def test_a_name_that_json_cannot_hold(watched: Watched) -> None:
    name = b"\xff"
    Path(os.fsdecode(name)).write_text("the user's")
    with pytest.raises(files.KeepRefused, match="UTF-8"):
        watched.opened(name, os.O_RDWR)


def test_own_calls_are_not_watched(watched: Watched) -> None:
    with watched.guard.own_calls() as first:
        assert first
        watched.opened("old", WRITE)
    watched.opened("old", os.O_RDWR)
    assert watched.actions() == ["copied"]


def test_writers_are_named(watched: Watched) -> None:
    watched.guard.before_native_write("new.tmp", "torch.save")
    Path("new.tmp").write_text("x")
    watched.hook("os.rename", ("new.tmp", "new", -1, -1))
    assert [(os.path.basename(each.path), each.writer) for each in watched.records()] == [
        ("new.tmp", "torch.save"),
        ("new", "torch.save"),
    ]
