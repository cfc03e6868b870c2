"""`pindiag run --resume`: what cannot be given beside it, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from pindiag import cli
from pindiag.api import resumption
from pindiag.errors import ExitCode, PindiagError, ResumeRefused, TargetNotFound
from pindiag.model import LaunchStarted, RunEnded, RunSpec
from pindiag.store import RunDirectory
from tests.integration.guarded import spec


@pytest.fixture
def asked(tmp_path: Path) -> RunSpec:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    made = msgspec.structs.replace(spec(script, tmp_path), python=sys.executable)
    found = resumption.precheck.ask_interpreter(sys.executable, str(script), False)
    return msgspec.structs.replace(made, target_sha256=found.sha256)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train.py"], "TARGET"),
        (["-m", "train"], "--module"),
        (["--budget", "5m"], "--budget"),
        (["--sweep"], "--sweep"),
        (["-o", "elsewhere"], "--output"),
        (["--no-verify"], "--no-verify"),
    ],
)
def test_what_was_asked_cannot_be_asked_otherwise(
    words: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--resume", str(tmp_path), *words]) == ExitCode.USAGE
    assert f"{named} cannot be given with --resume" in capsys.readouterr().err


def test_nor_beside_a_patch_that_is_to_be_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, named in [(["train.py"], "TARGET"), (["--sweep"], "--sweep"), (["--rounds", "3"], "--rounds")]:
        assert cli.main(["run", "--verify-patch", str(tmp_path), "--budget", "5m", *words]) == ExitCode.USAGE
        assert f"{named} cannot be given with --verify-patch" in capsys.readouterr().err


def test_no_run_and_another_schema_are_refused(
    tmp_path: Path, asked: RunSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--resume", str(tmp_path)]) == ExitCode.USAGE
    assert "holds no pindiag run" in capsys.readouterr().err
    RunDirectory.create(tmp_path / "out").write_spec(msgspec.structs.replace(asked, schema_version=99))
    assert cli.main(["run", "--resume", str(tmp_path / "out"), "-q"]) == ExitCode.USAGE
    assert "is of schema version 99" in capsys.readouterr().err


def started(torch_version: str) -> LaunchStarted:
    return LaunchStarted(launch=1, t_ns=1, pid=7, python_version="3.11", torch_version=torch_version, cuda_version=None)


def test_as_it_was_it_may_go_on(asked: RunSpec, tmp_path: Path) -> None:
    resumption.check(asked, [], tmp_path)
    resumption.check(msgspec.structs.replace(asked, target_sha256=None), [], tmp_path)


def test_a_changed_script_is_refused(asked: RunSpec, tmp_path: Path) -> None:
    Path(asked.target).write_text("import torch  # other\n")
    with pytest.raises(ResumeRefused, match=r"train\.py was changed since this run began") as refused:
        resumption.check(asked, [], tmp_path)
    assert f"pindiag report {tmp_path}" in refused.value.hint


def test_another_torch_is_refused(asked: RunSpec, tmp_path: Path) -> None:
    with pytest.raises(ResumeRefused, match="torch was changed"):
        resumption.check(asked, [started("1.0.0")], tmp_path)


@pytest.mark.parametrize(("gone", "error"), [("target", TargetNotFound), ("cwd", ResumeRefused)])
def test_what_is_gone_is_named(asked: RunSpec, tmp_path: Path, gone: str, error: type[PindiagError]) -> None:
    there = msgspec.structs.replace(asked, **{gone: str(tmp_path / "gone")})
    with pytest.raises(error, match="gone"):
        resumption.check(there, [], tmp_path)


def test_complete_is_a_run_that_ended_in_order() -> None:
    assert not resumption.is_complete([])
    assert not resumption.is_complete([RunEnded(launch=0, t_ns=1, status="interrupted")])
    assert resumption.is_complete([RunEnded(launch=0, t_ns=1, status="ok")])
