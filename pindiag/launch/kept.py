"""The guard of the user's files, parent half: after a launch, and after the run, they are as before.

All is decided from the guard's journal, `journal/files-NNN-PID.jsonl`, so it works whoever was killed and when, and
doing it twice does no harm.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pindiag.model import FilesSettled, FileTouched
from pindiag.store import RunDirectory, read_journal

OFFLINE_ENVIRONMENT = {
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_START_ONLINE": "false",
    "NEPTUNE_MODE": "offline",
    "SWANLAB_MODE": "offline",
    "WANDB_MODE": "offline",
}
"""Set for the target where it is not set yet: experiment loggers then send nothing away."""

SNAPSHOT_ENTRIES = 20_000
"""Files that a snapshot looks at; above, native changes are no longer searched for."""

_PART = ".pindiag-"
"""Begins the names of unfinished copies beside the user's files."""

_NOT_IN_SNAPSHOT = {".git", "__pycache__", "pindiag-runs"}


class _Launch:
    """What the guard noted in one launch, oldest first."""

    def __init__(self, run: RunDirectory, launch: int) -> None:
        self.kept = run.kept / f"{launch:03d}"
        journals = sorted(run.journal.glob(f"files-{launch:03d}-*.jsonl"))
        found = [record for path in journals for _, record in read_journal(path) if isinstance(record, FileTouched)]
        self.records = sorted(found, key=lambda record: record.t_ns)

    def originals(self) -> list[FileTouched]:
        """Records of kept originals, latest first: undone in this order they give the state before."""
        return [record for record in reversed(self.records) if record.kept is not None]

    def left(self) -> list[str]:
        """Files that were seen but not guarded."""
        return [record.path for record in self.records if record.action == "left"]

    def is_running(self) -> bool:
        """Whether a process of this launch is still alive (it holds a lock for as long)."""
        try:
            with (self.kept / "alive").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


class _Settling:
    """Collects what was done with each path; a failure is noted and never raised."""

    def __init__(self) -> None:
        self.restored: dict[str, None] = {}
        self.moved: dict[str, None] = {}
        self.listed: dict[str, None] = {}
        self.failed: dict[str, str] = {}

    @contextlib.contextmanager
    def noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failed[path] = error.strerror or str(error)

    def result(self, launch: int) -> FilesSettled:
        return FilesSettled(
            launch=launch,
            t_ns=time.monotonic_ns(),
            restored=list(self.restored),
            moved=list(self.moved),
            listed=list(self.listed),
            failed=self.failed,
        )


@dataclass(frozen=True)
class Snapshot:
    """Size, time and inode of the regular files in some folders at one moment."""

    folders: tuple[Path, ...]
    entries: dict[str, tuple[int, int, int]]
    reason: str | None
    """Why it is not complete; None: it is."""

    @classmethod
    def take(cls, folders: Iterable[Path], run: RunDirectory, *, limit: int = SNAPSHOT_ENTRIES) -> Snapshot:
        """Look at all files below `folders`; run directories, .git and virtual environments are left out."""
        found = {folder.resolve() for folder in folders}
        tops = tuple(sorted(top for top in found if found.isdisjoint(top.parents)))
        entries: dict[str, tuple[int, int, int]] = {}
        for path in _files_below(tops, run.path.resolve()):
            if len(entries) >= limit:
                return cls(tops, entries, f"more than {limit} files: changes by native code were not searched for")
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    entries[path] = (status.st_size, status.st_mtime_ns, status.st_ino)
        return cls(tops, entries, None)

    def changes(self, after: Snapshot) -> list[str]:
        """Files that appeared, vanished or changed until `after`; [] where either is not complete."""
        if self.reason or after.reason:
            return []
        paths = self.entries.keys() | after.entries.keys()
        return sorted(path for path in paths if self.entries.get(path) != after.entries.get(path))


def settle_launch(run: RunDirectory, launch: int, before: Snapshot | None = None) -> FilesSettled:
    """Put originals back after a launch, and move what `torch.save` or safetensors newly wrote into `kept/NNN/new/`.

    Args:
        run: the run.
        launch: number of the launch; its processes must be gone.
        before: a snapshot from before the launch; what changed since behind Python's back is then listed.
    """
    noted = _Launch(run, launch)
    settling = _Settling()
    new = _new(noted.records)
    linked = _put_back(run, noted, new, settling)
    for record in new.values():
        if _inode(record.path) in linked or _is_part(record.path):
            with settling.noting(record.path):
                Path(record.path).unlink(missing_ok=True)
        elif record.writer is not None:
            _move(run, record.path, noted.kept / "new", settling)
    _remove_empty(new)
    settling.listed.update(dict.fromkeys(noted.left()))
    if before is not None:
        known = {place for record in noted.records for place in (record.path, record.kept)}
        changed = before.changes(Snapshot.take(before.folders, run))
        settling.listed.update((path, None) for path in changed if path not in known)
    return settling.result(launch)


def settle_run(run: RunDirectory, cwd: Path, script_folder: Path) -> FilesSettled:
    """Move the new files of all launches out of the working and the script folder into `kept/new/`.

    New files elsewhere are listed, temporary ones left out; new folders that are empty go. What launches made before
    the run was settled once and then resumed is gone already: a file of that name is the user's by now.
    """
    settling = _Settling()
    new = _new([record for launch in _open_launches(run) for record in _Launch(run, launch).records])
    homes = (cwd.resolve(), script_folder.resolve())
    temporary = Path(tempfile.gettempdir()).resolve()
    for path in (record.path for record in new.values() if record.action == "created"):
        if not os.path.lexists(path):
            continue
        if any(Path(path).is_relative_to(home) for home in homes):
            _move(run, path, run.kept / "new", settling)
        elif not Path(path).is_relative_to(temporary):
            settling.listed[path] = None
    _remove_empty(new)
    return settling.result(0)


def settle_unsettled(run: RunDirectory, *, resumed: bool = False) -> list[FilesSettled]:
    """Settle what a killed run left, and note it in the journal.

    Nothing is touched while a process of an unsettled launch still lives.

    Args:
        run: the run.
        resumed: it goes on, so what its launches newly made stays for the next ones, as between any two.
    """
    done = {record.launch for record in _settled(run)}
    launches = [launch for launch in _launches(run) if launch not in done]
    over = not resumed and bool(_open_launches(run))
    if not (launches or over) or any(_Launch(run, launch).is_running() for launch in launches):
        return []
    settled = [settle_launch(run, launch) for launch in launches]
    if over:
        spec = run.read_spec()
        cwd = Path(spec.cwd)
        settled.append(settle_run(run, cwd, cwd if spec.module else Path(spec.target).parent))
    with contextlib.suppress(OSError), (run.journal / "parent.jsonl").open("ab") as journal:
        journal.write(b"".join(b"\n" + msgspec.json.encode(record) for record in settled) + b"\n")
    return settled


def is_touched(run: RunDirectory) -> bool:
    """Whether a process of any launch still lives, so that it may touch the user's files."""
    return any(_Launch(run, launch).is_running() for launch in _launches(run))


def _settled(run: RunDirectory) -> list[FilesSettled]:
    """What was settled so far, in its order."""
    journal = run.journal / "parent.jsonl"
    records = read_journal(journal) if journal.is_file() else ()
    return [record for _, record in records if isinstance(record, FilesSettled)]


def _open_launches(run: RunDirectory) -> list[int]:
    """Launches since the run as a whole was settled."""
    settled = latest = 0
    for record in _settled(run):
        latest = max(latest, record.launch)
        settled = settled if record.launch else latest
    return [launch for launch in _launches(run) if launch > settled]


def _launches(run: RunDirectory) -> list[int]:
    return sorted({int(path.name.split("-")[1]) for path in run.journal.glob("files-*-*.jsonl")})


def _new(records: Sequence[FileTouched]) -> dict[str, FileTouched]:
    """Paths that did not exist before: those whose first record made them; with the writer, if a later one names it.

    What was made where a renamed folder had been goes with its new folder when the old one is put back.
    """
    first: dict[str, FileTouched] = {}
    renamed: list[str] = []
    for record in records:
        if any(record.path.startswith(folder + os.sep) for folder in renamed):
            continue
        if _is_folder_rename(record):
            renamed.append(record.path)
        known = first.setdefault(record.path, record)
        if record.writer is not None and known.action == "created":
            first[record.path] = record
    made = {path: record for path, record in first.items() if record.action in ("created", "directory")}
    return {path: record for path, record in made.items() if not _is_folder_rename(record)}


def _is_folder_rename(record: FileTouched) -> bool:
    return record.action == "directory" and record.kept is not None


def _put_back(
    run: RunDirectory, noted: _Launch, new: Mapping[str, FileTouched], settling: _Settling
) -> set[tuple[int, int]]:
    """Undo the records, latest first; inodes of originals that were kept by a second name are returned."""
    linked = set()
    for record in noted.originals():
        kept, path = str(record.kept), record.path
        if not os.path.lexists(kept):
            continue  # killed before the file was touched, or put back already
        with settling.noting(path):
            if _is_folder_rename(record):
                _empty_of_new(run, kept, noted, new, settling)
            if _is_folder(path) and (_is_folder_rename(record) or not _is_folder(kept)):
                _move(run, path, noted.kept / "new", settling)
            _replace(kept, path)
            settling.restored[path] = None
            if record.action == "linked":
                linked.add(_inode(path))
    return {inode for inode in linked if inode is not None}


def _empty_of_new(
    run: RunDirectory, folder: str, noted: _Launch, new: Mapping[str, FileTouched], settling: _Settling
) -> None:
    below = {path: record for path, record in new.items() if path.startswith(folder + os.sep)}
    for path in (path for path, record in below.items() if record.action == "created"):
        _move(run, path, noted.kept / "new", settling)
    _remove_empty(below)


def _replace(kept: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if _is_folder(kept) and _is_folder(path):
        shutil.copystat(kept, path)
    else:
        _rename_or_copy(kept, path)
    if _is_folder(kept):
        os.rmdir(kept)
    elif os.path.lexists(kept):  # a copy, or the other name of the same file: renaming leaves both
        os.unlink(kept)


def _rename_or_copy(kept: str, path: str) -> None:
    try:
        os.replace(kept, path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        if _is_folder(kept):
            os.mkdir(path)
            shutil.copystat(kept, path)
            return
        part = os.path.join(os.path.dirname(path), f"{_PART}{os.path.basename(path)[-100:]}")
        shutil.copy2(kept, part, follow_symlinks=False)
        os.replace(part, path)


def _move(run: RunDirectory, path: str, folder: Path, settling: _Settling) -> None:
    """Move a new file into the run directory; of several launches' files of one name the newest is kept."""
    if not os.path.lexists(path):
        return
    relative = Path(path).relative_to(Path(path).anchor)
    with settling.noting(path):
        for older in run.kept.glob("*/new"):
            with contextlib.suppress(OSError):
                (older / relative).unlink()
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
        settling.moved[path] = None


def _is_part(path: str) -> bool:
    return os.path.basename(path).startswith(_PART)


def _remove_empty(new: Mapping[str, FileTouched]) -> None:
    folders = [path for path, record in new.items() if record.action == "directory"]
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _files_below(tops: Iterable[Path], run_path: Path) -> Iterator[str]:
    for top in tops:
        for folder, below, names in os.walk(top):
            below[:] = [name for name in below if not _is_left_out(os.path.join(folder, name), run_path)]
            yield from (os.path.join(folder, name) for name in names)


def _is_left_out(folder: str, run_path: Path) -> bool:
    return (
        os.path.basename(folder) in _NOT_IN_SNAPSHOT
        or folder == str(run_path)
        or os.path.exists(os.path.join(folder, "pyvenv.cfg"))
    )
