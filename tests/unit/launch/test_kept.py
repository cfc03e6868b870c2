"""Settling from journals written by hand; tests/integration/test_files_guard.py has the real ones."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from pindiag.launch import kept
from pindiag.model import FilesSettled, FileTouched
from pindiag.store import RunDirectory
from tests.integration.guarded import spec


class Journal:
    """A run whose guard's records a test writes itself."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.run = RunDirectory.create(folder / "run")
        self.clock = itertools.count(1)

    def note(
        self, name: str, action: str, *, launch: int = 1, kept: Path | None = None, writer: str | None = None
    ) -> None:
        record = FileTouched(
            launch=launch,
            t_ns=next(self.clock),
            path=str(self.work / name),
            action=action,  # type: ignore[arg-type]
            kept=None if kept is None else str(kept),
            writer=writer,
        )
        with (self.run.journal / f"files-{launch:03d}-77.jsonl").open("ab") as journal:
            journal.write(msgspec.json.encode(record) + b"\n")

    def keep(self, name: str, action: str, content: str = "the user's", *, launch: int = 1) -> Path:
        original = self.run.kept / f"{launch}-{next(self.clock)}"
        self.note(name, action, launch=launch, kept=original)
        original.write_text(content)
        return original

    def write(self, name: str, content: str = "new") -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


@pytest.mark.parametrize("action", ["set_aside", "copied", "linked"])
def test_originals_go_back(journal: Journal, action: str) -> None:
    journal.keep("gone/file", action)
    journal.keep("changed", action)
    journal.write("changed")
    settled = kept.settle_launch(journal.run, 1)
    assert (journal.work / "gone" / "file").read_text() == "the user's"
    assert (journal.work / "changed").read_text() == "the user's"
    assert len(settled.restored) == 2
    assert not settled.failed


def test_killed_before_the_original_was_kept(journal: Journal) -> None:
    journal.write("file", "the user's")
    journal.note("file", "copied", kept=journal.run.kept / "never-written")
    assert kept.settle_launch(journal.run, 1).restored == []
    assert (journal.work / "file").read_text() == "the user's"


def test_the_first_of_two_originals_wins(journal: Journal) -> None:
    journal.keep("file", "copied", "the user's")
    journal.keep("file", "copied", "half way")
    journal.write("file")
    kept.settle_launch(journal.run, 1)
    assert (journal.work / "file").read_text() == "the user's"


def test_only_this_launch(journal: Journal) -> None:
    journal.keep("file", "copied", launch=1)
    assert kept.settle_launch(journal.run, 2).restored == []


def test_the_newest_checkpoint_is_kept(journal: Journal) -> None:
    for launch in (1, 2):
        journal.note("model.pt", "created", launch=launch, writer="torch.save")
        journal.write("model.pt", f"launch {launch}")
        kept.settle_launch(journal.run, launch)
    found = list(journal.run.kept.rglob("model.pt"))
    assert [path.read_text() for path in found] == ["launch 2"]
    assert not (journal.work / "model.pt").exists()


def test_an_original_is_never_taken_for_a_new_file(journal: Journal) -> None:
    journal.keep("model.pt", "linked")
    journal.note("model.pt", "created", writer="torch.save")
    journal.write("model.pt")
    settled = kept.settle_launch(journal.run, 1)
    assert settled.moved == []
    assert (journal.work / "model.pt").read_text() == "the user's"


def test_new_files_of_the_run(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    for name in ("new/results.csv", "../elsewhere/cache.bin", "../temporary/scratch", "gone"):
        journal.note(name if name.startswith("new") else os.path.normpath(journal.work / name), "created")
        if name != "gone":
            journal.write(name)
    journal.note("new", "directory")
    assert kept.settle_launch(journal.run, 1).moved == []
    settled = kept.settle_run(journal.run, journal.work, journal.work)
    assert [Path(path).name for path in settled.moved] == ["results.csv"]
    assert [Path(path).name for path in settled.listed] == ["cache.bin"]
    assert settled.launch == 0
    assert list(journal.work.iterdir()) == []


def test_a_file_of_an_earlier_launch_is_still_new(journal: Journal) -> None:
    journal.note("results.csv", "created", launch=1)
    journal.keep("results.csv", "copied", "from launch 1", launch=2)
    journal.write("results.csv")
    kept.settle_launch(journal.run, 2)
    assert (journal.work / "results.csv").read_text() == "from launch 1"
    assert kept.settle_run(journal.run, journal.work, journal.work).moved == [str(journal.work / "results.csv")]


def test_a_failure_is_reported_and_the_rest_done(journal: Journal) -> None:
    journal.keep("first", "copied")
    journal.keep("blocked/file", "copied")
    journal.keep("last", "copied")
    journal.write("blocked", "a file where a folder was")
    settled = kept.settle_launch(journal.run, 1)
    assert list(settled.failed) == [str(journal.work / "blocked" / "file")]
    assert sorted(Path(path).name for path in settled.restored) == ["first", "last"]


def test_across_filesystems(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def separate(source: str, target: str) -> None:
        if Path(source).is_relative_to(journal.run.path) and not Path(target).is_relative_to(journal.run.path):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        replace(source, target)

    monkeypatch.setattr(os, "replace", separate)
    original = journal.keep("file", "copied")
    os.utime(original, ns=(5, 5))
    assert not kept.settle_launch(journal.run, 1).failed
    assert (journal.work / "file").read_text() == "the user's"
    assert (journal.work / "file").stat().st_mtime_ns == 5
    assert not original.exists()


def test_what_was_left_is_listed(journal: Journal) -> None:
    journal.note("large.db", "left")
    assert kept.settle_launch(journal.run, 1).listed == [str(journal.work / "large.db")]


def test_unsettled_launches_are_settled_once(journal: Journal) -> None:
    journal.run.write_spec(spec(journal.work / "train.py", journal.work))
    done = FilesSettled(launch=1, t_ns=1, restored=[], moved=[], listed=[])
    (journal.run.journal / "parent.jsonl").write_bytes(msgspec.json.encode(done) + b'\n{"type": "cut')
    journal.keep("settled", "copied", launch=1)
    journal.keep("unsettled", "copied", launch=2)
    assert [settled.launch for settled in kept.settle_unsettled(journal.run)] == [2, 0]
    assert not (journal.work / "settled").exists()
    assert (journal.work / "unsettled").exists()
    assert kept.settle_unsettled(journal.run) == []


def test_snapshot(journal: Journal) -> None:
    for name in ("same", "touched", "gone", ".git/config", "venv/pyvenv.cfg", "__pycache__/x.pyc"):
        journal.write(name)
    before = kept.Snapshot.take([journal.work, journal.work / "venv"], journal.run)
    assert {Path(path).name for path in before.entries} == {"same", "touched", "gone"}
    journal.write("touched", "longer than before")
    journal.write("appeared")
    (journal.work / "gone").unlink()
    after = kept.Snapshot.take(before.folders, journal.run)
    assert [Path(path).name for path in before.changes(after)] == ["appeared", "gone", "touched"]


def test_snapshot_leaves_the_run_out(journal: Journal) -> None:
    taken = kept.Snapshot.take([journal.run.path.parent], journal.run)
    assert taken.entries == {}


def test_snapshot_of_too_many_files(journal: Journal) -> None:
    for number in range(4):
        journal.write(str(number))
    taken = kept.Snapshot.take([journal.work], journal.run, limit=3)
    assert taken.reason is not None
    shutil.rmtree(journal.work)
    assert taken.changes(kept.Snapshot.take([journal.work], journal.run)) == []


def test_a_run_that_goes_on_keeps_its_new_files_until_its_end(journal: Journal) -> None:
    journal.run.write_spec(spec(journal.work / "train.py", journal.work))
    journal.note("cache", "created", launch=1)
    cache = journal.write("cache")
    assert [settled.launch for settled in kept.settle_unsettled(journal.run, resumed=True)] == [1]
    assert cache.exists()
    assert [settled.launch for settled in kept.settle_unsettled(journal.run)] == [0]
    assert not cache.exists()


def test_what_the_user_made_between_two_parts_of_a_run_stays(journal: Journal) -> None:
    journal.run.write_spec(spec(journal.work / "train.py", journal.work))
    journal.note("results.csv", "created", launch=1)
    journal.write("results.csv")
    assert [settled.launch for settled in kept.settle_unsettled(journal.run)] == [1, 0]
    own = journal.write("results.csv", "the user's own")
    journal.note("later", "created", launch=2)
    later = journal.write("later")
    assert [settled.launch for settled in kept.settle_unsettled(journal.run)] == [2, 0]
    assert own.read_text() == "the user's own"
    assert not later.exists()
