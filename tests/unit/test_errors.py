"""Every kind of error is really raised by what its docstring names, and says cause and next step."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pindiag import api, cli, errors
from pindiag.api import applying, comparison, precheck, resumption
from pindiag.cli import settings
from pindiag.errors import PindiagError
from pindiag.fixes import unified_diff
from pindiag.launch.tenancy import tenancy
from pindiag.model import LaunchEnded
from pindiag.plan.grid import parse_grid
from pindiag.report import _templates
from pindiag.rules.catalogue import find
from pindiag.store import RunDirectory

from .report import example

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PindiagError)]


class Here:
    """A folder to fail in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch

    def run(self, name: str, **asked: object) -> RunDirectory:
        """A run directory that holds what was asked and a report."""
        directory = RunDirectory.create(self.folder / name)
        spec = msgspec.structs.replace(example.SPEC, **{"cwd": str(self.folder), **asked})
        directory.write_spec(spec)
        directory.write_report(example.confirmed())
        return directory

    def script(self, text: str) -> Path:
        path = self.folder / "train.py"
        path.write_text(text)
        return path

    def interpreter(self, answer: str) -> str:
        """One that answers the questions about torch and the script with this."""
        path = self.folder / "python"
        path.write_text(f"#!/bin/sh\necho '{answer}'\n")
        path.chmod(0o755)
        return str(path)


def no_loader(here: Here) -> None:
    ended = LaunchEnded(t_ns=0, launch=1, status="ok", exit="exit status 0", returncode=0, seconds=1.0)
    api._refuse_without_loader(example.SPEC, [ended], RunDirectory(here.folder))


def not_comparable(here: Here) -> None:
    comparison.compare(here.run("base").path, here.run("new", target="/elsewhere/eval.py").path)


def mistyped(here: Here) -> None:
    (here.folder / "pyproject.toml").write_text('[tool.pindiag]\nbugdet = "2m"\n')
    settings.from_file(here.folder, {})


def two_at_once(here: Here) -> None:
    with tenancy(here.folder), tenancy(here.folder):
        pass


def edited_since(here: Here) -> None:
    path, spec = here.script("a = 1\n"), msgspec.structs.replace(example.SPEC, cwd=str(here.folder))
    diff = unified_diff("train.py", "a = 0\n", "a = 2\n")
    list(applying.changes(diff, {str(path): "a = 0\n"}, msgspec.structs.replace(spec, target=str(path))))


def outside(here: Here) -> None:
    applying._check_place(here.script(""), str(here.folder / "src"), set())


def no_way_back(here: Here) -> None:
    path = here.script("a = 1\n")
    path.with_name("train.py.orig").write_text("something else")
    applying.carry_out([applying.Edit(path, b"a = 1\n", b"a = 2\n")])


def no_template(here: Here) -> None:
    here.monkeypatch.setattr(_templates, "template_root", lambda: here.folder)
    _templates.asset("report.css")


def full(here: Here) -> None:
    with RunDirectory(here.folder).filling():
        raise OSError(errno.ENOSPC, "No space left on device")


WAYS: dict[type[PindiagError], Callable[[Here], object]] = {
    errors.UsageError: lambda here: precheck.check_place("train.py"),
    errors.TargetNotFound: lambda here: precheck.script("gone.py"),
    errors.NoTorch: lambda here: precheck.ask_interpreter(here.interpreter("[null, null, null]"), "train.py", False),
    errors.NoLoader: no_loader,
    errors.OutputRefused: lambda here: RunDirectory.create(here.run("one").path),
    errors.GridError: lambda here: parse_grid("num_wokers=0"),
    errors.NotARun: lambda here: RunDirectory.open(here.folder),
    errors.UnknownRule: lambda here: find("pin_thread"),
    errors.PlatformRefused: lambda here: precheck.platform("win32"),
    errors.NotComparable: not_comparable,
    errors.SettingsError: mistyped,
    errors.ResumeRefused: lambda here: resumption.check(
        msgspec.structs.replace(example.SPEC, cwd=str(here.folder / "gone")), [], here.folder
    ),
    errors.RunInUse: two_at_once,
    errors.NothingToApply: lambda here: applying.recommended(example.no_difference()),
    errors.SourceChanged: edited_since,
    errors.PlaceOutside: outside,
    errors.SourceNotWritable: no_way_back,
    errors.TemplateMissing: no_template,
    errors.DiskFull: full,
}


def test_every_kind_has_a_way_to_it():
    assert set(WAYS) == set(KINDS) - {PindiagError}, "a new kind of error needs a line in WAYS"


@pytest.mark.parametrize("kind", WAYS, ids=lambda kind: kind.__name__)
def test_it_is_raised_with_its_cause_and_its_next_step(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PindiagError) as raised:
        WAYS[kind](Here(tmp_path, monkeypatch))
    error = raised.value
    assert type(error) is kind
    assert error.cause.endswith((".", "?", "!"))
    assert error.hint
    monkeypatch.setattr(cli.group, "main", lambda *_, **__: (_ for _ in ()).throw(error))
    assert cli.main(["list"]) == kind.exit_code
    assert capsys.readouterr().err == f"pindiag: {error.cause} {error.hint} ({kind.code})\n"


def test_what_pindiag_did_not_foresee_has_a_code_and_a_next_step_too(monkeypatch, capsys):
    monkeypatch.setattr(cli.group, "main", lambda *_, **__: 1 / 0)
    assert cli.main(["list"]) == PindiagError.exit_code == errors.ExitCode.INTERNAL
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "pindiag report RUN_DIR" in said
    assert said.endswith(f"({PindiagError.code})\n")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_its_docstring_says_cause_and_next_step(kind):
    cause, step, *_ = inspect.cleandoc(kind.__doc__).split("\n\n")
    assert cause.endswith(".")
    assert step.endswith(".")
