"""The change that a run recommends, carried out in the user's files: shown first, undone by one command each.

A file is edited only where it is, byte for byte, what was measured; its place lies in the folder of the script or was
named; and there is a way back. The way back is git where the last commit holds the file as it is, else a copy
`train.py.orig` beside it, which is never overwritten.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pindiag.api.outcome import assemble, read_sources, root
from pindiag.errors import NothingToApply, PlaceOutside, SourceChanged, SourceNotWritable
from pindiag.model import Fix, Report, RunSpec
from pindiag.store import RunDirectory

_GIT_LIMIT_S = 20.0


class Edit(NamedTuple):
    """One file, as it is and as it is to be."""

    path: Path
    before: bytes
    after: bytes


class Change(NamedTuple):
    """What becomes of one file."""

    place: str
    """Its path, as the run knows it."""
    before: str
    after: str
    is_made: bool
    """Whether the file is so already."""


class Proposal(NamedTuple):
    """What a run recommends to change in files."""

    summary: str
    diff: str
    """Unified, of all files, with the names that the report uses; not redacted."""
    by_hand: str | None
    """What the diff leaves to the user, line by line with the reason."""
    edits: list[Edit]
    """Of the files that are not so already; empty: all are."""


def propose(run_directory: Path, also: Sequence[Path] = ()) -> Proposal:
    """The change that the run's report shows first, checked against the files as they are now; nothing is written.

    Args:
        run_directory: the run.
        also: files outside the script's folder that may be edited.

    Raises:
        NotARun: the folder holds no run of this schema version.
        RunInUse: it is being measured.
        NothingToApply: no change is recommended, it failed the safety gate, or all of it is left to the user.
        SourceChanged: a file is not what was measured.
        PlaceOutside: a file lies outside the script's folder and is not among `also`.
    """
    from pindiag.launch.tenancy import tenancy

    directory = RunDirectory.open(run_directory)
    spec = directory.read_spec()
    with tenancy(directory.path):
        report, _ = assemble(directory)
    fix, diff = recommended(report)
    allowed = {os.path.realpath(path) for path in also}
    edits = list(_edits(changes(diff, read_sources(directory), spec), root(spec), allowed))
    return Proposal(fix.summary, diff, fix.snippet, edits)


def carry_out(edits: Sequence[Edit]) -> list[str]:
    """Make the edits, all or none.

    Returns:
        A shell command for each file that undoes its edit.

    Raises:
        SourceChanged: a file was changed since it was proposed.
        SourceNotWritable: a file or its copy cannot be written, or something else stands where the copy would be.
    """
    for edit in edits:
        if _content(edit.path) != edit.before:
            raise _changed(edit.path, "was changed since the diff was shown")
    ways_back = [_way_back(edit) for edit in edits]
    for at, edit in enumerate(edits):
        try:
            _replace(edit.path, edit.after)
        except OSError as error:
            for done in edits[:at]:
                _replace(done.path, done.before)
            raise SourceNotWritable(
                f"{edit.path} cannot be written: {error.strerror}.", "No file was changed; make it writable."
            ) from error
    return ways_back


def recommended(report: Report) -> tuple[Fix, str]:
    """The change that a report shows first, and its diff.

    Raises:
        NothingToApply: none is recommended, it failed the safety gate, or no diff holds it.
    """
    from pindiag.report.sections.verdict import main_fix

    fix = main_fix(report)
    if fix is None:
        raise NothingToApply("The run recommends no change.", "`pindiag report RUN_DIR` shows what it found.")
    if fix.safety.status == "failed":
        raise NothingToApply(f"The change is not safe: {fix.safety.reason}", "Nothing is edited for it.")
    if fix.patch is None:
        left = f"Change it by hand: {fix.snippet}" if fix.snippet else "The script says so already."
        raise NothingToApply(f"No file can be edited for it: {fix.summary}", left)
    return fix, fix.patch


def changes(diff: str, sources: Mapping[str, str], spec: RunSpec) -> Iterator[Change]:
    """What a diff makes of the files that were measured.

    Raises:
        SourceChanged: a file is neither what was measured nor so already, or the script changed meanwhile.
    """
    from pindiag.fixes import relative
    from pindiag.fixes.carried_out import by_file, carried_out

    places = {relative(path, root(spec)).lstrip("/"): path for path in sources}
    for name, hunks in by_file(diff).items():
        place = places[name]
        before = sources[place]
        after = carried_out(hunks, before)
        if place == spec.target and spec.target_sha256 not in (None, hashlib.sha256(before.encode()).hexdigest()):
            raise _changed(Path(place), "was changed while the run measured it")
        found = _content(Path(place))
        if found not in (before.encode(), after.encode()):
            raise _changed(Path(place), "is not there" if found is None else "was changed since the run")
        yield Change(place, before, after, found == after.encode())


def _edits(made: Iterable[Change], folder: str, allowed: set[str]) -> Iterator[Edit]:
    """The edits that are still to be made, each in a place that may be edited."""
    for change in made:
        path = Path(os.path.realpath(change.place))
        _check_place(path, folder, allowed)
        if not change.is_made:
            yield Edit(path, change.before.encode(), change.after.encode())


def _check_place(path: Path, folder: str, allowed: set[str]) -> None:
    if str(path) not in allowed and not path.is_relative_to(os.path.realpath(folder)):
        raise PlaceOutside(
            f"{path} lies outside {folder}, the folder of the script.",
            f"To edit it all the same: --also {shlex.quote(str(path))}",
        )


def _changed(path: Path, what: str) -> SourceChanged:
    return SourceChanged(f"{path} {what}, so the change may not fit.", "Measure it as it is now: `pindiag run`.")


def _content(path: Path) -> bytes | None:
    """None where there is no such file, or none that can be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _way_back(edit: Edit) -> str:
    """Make sure of one; the command that goes it."""
    path = edit.path
    if _committed(path) == edit.before:
        return shlex.join(["git", "-C", str(path.parent), "checkout", "HEAD", "--", path.name])
    backup = path.with_name(f"{path.name}.orig")
    if backup.is_symlink() or (backup.exists() and _content(backup) != edit.before):
        raise SourceNotWritable(
            f"{backup} exists already and holds something else, so {path.name} has no way back.",
            "Move it away, or commit the file to git.",
        )
    try:
        shutil.copy2(path, backup)
    except OSError as error:
        raise SourceNotWritable(
            f"{backup}, the way back, cannot be written: {error.strerror}.",
            "Make its folder writable, or commit the file to git.",
        ) from error
    return shlex.join(["mv", str(backup), str(path)])


def _committed(path: Path) -> bytes | None:
    """The file as the last commit has it; None: no git, no repository, or not a file of it."""
    command = ["git", "-C", str(path.parent), "cat-file", "blob", f"HEAD:./{path.name}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _replace(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, with the mode that it had."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copy2(path, temporary)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
