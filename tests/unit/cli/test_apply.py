"""`pindiag apply` as it is called: what it edits, what it refuses, what leads back."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from pindiag.api import applying
from pindiag.cli import console
from pindiag.fixes import patch_loader, relative, unified_diff
from pindiag.launch.tenancy import tenancy
from pindiag.model import Fix, Safety

from ..report import example

SOURCE = "from torch.utils.data import DataLoader\n\nloader = DataLoader(data, num_workers=4)  # kept\n"
AFTER = SOURCE.replace("=4", "=0")
FIX = Fix(
    summary="Set num_workers=0.",
    changes={"num_workers": 0},
    location=None,
    patch=None,
    snippet=None,
    effect=None,
    trade_off=None,
    safety=Safety(status="passed", reason=""),
)


@pytest.fixture
def project(nowhere: Path) -> Path:
    """The folder that the run was started in; git looks no further up."""
    folder = nowhere / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def script(project: Path) -> Path:
    path = project / "train.py"
    path.write_text(SOURCE)
    path.chmod(0o750)
    return path


@pytest.fixture
def a_run_of(a_run, project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a run that recommends a change of these files, as they are now."""

    numbers = itertools.count()

    def make(*files: Path, fix: Fix = FIX, recommended: bool = True, **asked: object) -> Path:
        sources = {str(path): path.read_bytes().decode() for path in files}
        found = example.confirmed()
        assert found.recommendation is not None
        fix = msgspec.structs.replace(fix, patch=_diff(sources, str(project)) or None)
        recommendation = msgspec.structs.replace(found.recommendation, fix=fix if recommended else None)
        found = msgspec.structs.replace(found, findings=[], recommendation=recommendation)
        monkeypatch.setattr(applying, "assemble", lambda directory: (found, found))
        place = a_run(
            f"run{next(numbers)}", None, **{"target": str(project / "train.py"), "cwd": str(project), **asked}
        )
        (place / "sources.json").write_text(json.dumps(sources))
        return place

    return make


def _diff(sources: Mapping[str, str], root: str) -> str:
    changed = {path: patch_loader(text, path, 3, {"num_workers": 0}).after for path, text in sources.items()}
    return "".join(unified_diff(relative(path, root), text, changed[path]) for path, text in sources.items())


def _way_back(err: str) -> str:
    return err.split("To undo it: ")[1].splitlines()[0]


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".git"}


# ---------------------------------------------------------------------------------------------------- what it edits


def test_the_diff_is_shown_and_made_and_a_copy_leads_back(pindiag, a_run_of, script):
    said = pindiag("apply", a_run_of(script), "--yes")
    assert said.code == 0
    assert said.out.startswith("Set num_workers=0.\n--- a/train.py\n+++ b/train.py\n")
    assert script.read_text() == AFTER
    assert script.stat().st_mode & 0o777 == 0o750
    assert _files(script.parent) == {"train.py", "train.py.orig"}
    subprocess.run(shlex.split(_way_back(said.err)), check=True)
    assert (script.read_text(), _files(script.parent)) == (SOURCE, {"train.py"})
    assert script.stat().st_mode & 0o777 == 0o750


def test_a_second_time_nothing_is_done(pindiag, a_run_of, script):
    run = a_run_of(script)
    pindiag("apply", run, "--yes")
    said = pindiag("apply", run, "--yes")
    assert (said.code, said.err) == (0, "pindiag: It is so already; no file was changed.\n")
    assert (script.read_text(), script.with_name("train.py.orig").read_text()) == (AFTER, SOURCE)


def test_what_git_holds_needs_no_copy(pindiag, a_run_of, script):
    _git(script.parent, "init", "-q")
    _git(script.parent, "add", "train.py")
    _git(script.parent, "commit", "-q", "-m", "a")
    said = pindiag("apply", a_run_of(script), "--yes")
    assert (script.read_text(), _files(script.parent)) == (AFTER, {"train.py"})
    subprocess.run(shlex.split(_way_back(said.err)), check=True, capture_output=True)
    assert script.read_text() == SOURCE


@pytest.mark.parametrize("added", [True, False])
def test_what_git_holds_otherwise_or_not_at_all_gets_a_copy(added, pindiag, a_run_of, script):
    _git(script.parent, "init", "-q")
    script.write_text("# earlier\n")
    _git(script.parent, "add", *(["train.py"] if added else []))
    _git(script.parent, "commit", "-q", "--allow-empty", "-m", "a")
    script.write_text(SOURCE)
    assert pindiag("apply", a_run_of(script), "--yes").code == 0
    assert script.with_name("train.py.orig").read_text() == SOURCE


def test_ends_of_lines_stay_as_they_are(pindiag, a_run_of, script):
    script.write_bytes(SOURCE.replace("\n", "\r\n").encode())
    assert pindiag("apply", a_run_of(script), "--yes").code == 0
    assert script.read_bytes() == AFTER.replace("\n", "\r\n").encode()


def test_a_link_stays_one(pindiag, a_run_of, script):
    real = script.rename(script.with_name("real.py"))
    script.symlink_to(real)
    assert pindiag("apply", a_run_of(script), "--yes").code == 0
    assert script.is_symlink()
    assert real.read_text() == AFTER


def test_what_the_diff_leaves_to_the_user_is_said(pindiag, a_run_of, script):
    left = msgspec.structs.replace(FIX, snippet="pin_memory=True  # not in the patch: it comes from `args`")
    assert "To do by hand: pin_memory=True" in pindiag("apply", a_run_of(script, fix=left), "--yes").out


# --------------------------------------------------------------------------------------------------------- it asks


@pytest.mark.parametrize(("answer", "text"), [(True, AFTER), (False, SOURCE)])
def test_it_asks(answer, text, pindiag, a_run_of, script, monkeypatch):
    monkeypatch.setattr(console, "agreed", lambda question: answer)
    said = pindiag("apply", a_run_of(script))
    assert (said.code, script.read_text()) == (0, text)
    assert ("No file was changed." in said.err) is not answer


def test_with_nobody_to_ask_nothing_is_changed(pindiag, a_run_of, script, monkeypatch):
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115 - pytest puts the other one back
    said = pindiag("apply", a_run_of(script))
    assert (said.code, script.read_text()) == (2, SOURCE)
    assert "--yes" in said.err


# ------------------------------------------------------------------------------------------------- what it refuses


def _refused(said, *words: str) -> None:
    assert said.code == 2
    for word in words:
        assert word in said.err


@pytest.mark.parametrize(("now", "why"), [(SOURCE + "# more\n", "was changed since the run"), (None, "is not there")])
def test_a_file_that_is_not_what_was_measured(now, why, pindiag, a_run_of, script):
    run = a_run_of(script)
    script.unlink() if now is None else script.write_text(now)
    _refused(pindiag("apply", run, "--yes"), why, "`pindiag run`")
    assert _files(script.parent) == (set() if now is None else {"train.py"})
    assert now is None or script.read_text() == now


def test_a_script_that_changed_while_it_was_measured(pindiag, a_run_of, script):
    before = hashlib.sha256(b"before").hexdigest()
    _refused(pindiag("apply", a_run_of(script, target_sha256=before), "--yes"), "changed while the run measured it")
    same = hashlib.sha256(SOURCE.encode()).hexdigest()
    assert pindiag("apply", a_run_of(script, target_sha256=same), "--yes").code == 0


def test_a_file_elsewhere_unless_it_is_named(pindiag, a_run_of, script, nowhere):
    other = nowhere / "library.py"
    other.write_text(SOURCE)
    run = a_run_of(script, other)
    _refused(pindiag("apply", run, "--yes"), "library.py lies outside", "--also")
    assert (script.read_text(), other.read_text()) == (SOURCE, SOURCE)
    assert pindiag("apply", run, "--yes", "--also", "library.py").code == 0
    assert (script.read_text(), other.read_text()) == (AFTER, AFTER)


def test_a_link_that_leads_elsewhere(pindiag, a_run_of, script, nowhere):
    script.rename(nowhere / "real.py")
    script.symlink_to(nowhere / "real.py")
    _refused(pindiag("apply", a_run_of(script), "--yes"), "real.py lies outside")


def test_a_copy_of_something_else_is_not_overwritten(pindiag, a_run_of, script):
    copy = script.with_name("train.py.orig")
    copy.write_text("mine\n")
    _refused(pindiag("apply", a_run_of(script), "--yes"), "train.py.orig exists already", "Move it away")
    assert (script.read_text(), copy.read_text()) == (SOURCE, "mine\n")


def test_all_files_or_none(pindiag, a_run_of, script, monkeypatch):
    other = script.with_name("loaders.py")
    other.write_text(SOURCE)
    replace = os.replace

    def fails_once(source: Path, target: Path) -> None:
        if target.name == "train.py":
            raise OSError(30, "Read-only file system")
        replace(source, target)

    run = a_run_of(other, script)
    monkeypatch.setattr("os.replace", fails_once)
    _refused(pindiag("apply", run, "--yes"), "train.py cannot be written: Read-only file system")
    assert (script.read_text(), other.read_text()) == (SOURCE, SOURCE)
    assert _files(script.parent) == {f"{name}.py{end}" for name in ("train", "loaders") for end in ("", ".orig")}


def test_a_file_that_changes_while_the_user_thinks(pindiag, a_run_of, script, monkeypatch):
    monkeypatch.setattr(console, "agreed", lambda question: script.write_text("# edited\n"))
    _refused(pindiag("apply", a_run_of(script)), "changed since the diff was shown")
    assert (script.read_text(), _files(script.parent)) == ("# edited\n", {"train.py"})


def test_no_change_an_unsafe_one_and_one_that_no_diff_holds(pindiag, a_run_of, script):
    _refused(pindiag("apply", a_run_of(script, recommended=False)), "recommends no change")
    unsafe = msgspec.structs.replace(FIX, safety=Safety(status="failed", reason="batches differ."))
    _refused(pindiag("apply", a_run_of(script, fix=unsafe)), "not safe: batches differ.")
    by_hand = msgspec.structs.replace(FIX, snippet="num_workers=0  # not in the patch: it comes from `args`")
    _refused(pindiag("apply", a_run_of(fix=by_hand)), "by hand: num_workers=0")
    _refused(pindiag("apply", a_run_of()), "says so already")


def test_a_run_that_is_being_measured_and_a_folder_without_one(pindiag, a_run_of, script):
    with tenancy(run := a_run_of(script)):
        _refused(pindiag("apply", run), "Another pindiag")
    _refused(pindiag("apply", script.parent), "holds no pindiag run")
