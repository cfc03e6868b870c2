"""py-spy as a program that the test puts in its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pindiag.launch import spy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")

DUMP = '[ "$*" = "dump --native --pid $4" ] && [ "$4" != 2 ] && echo "stack of $4"'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "py-spy"
    path.write_text(f"#!/bin/sh\n{DUMP}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return path


def test_each_process_is_dumped_but_one_that_may_not_be_looked_into(program: Path) -> None:
    assert spy.dumps([1, 2, 3]) == {1: "stack of 1\n", 3: "stack of 3\n"}


def test_no_more_are_dumped_than_there_is_time_for(program: Path) -> None:
    times = iter([0.0, 1.0, spy.DUMP_S + 0.1])
    assert spy.dumps([1, 3], clock_s=lambda: next(times)) == {1: "stack of 1\n"}


def test_one_that_does_not_end_is_left(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spy, "DUMP_S", 0.2)
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    assert spy.dumps([1]) == {}


def test_a_program_that_cannot_be_started(program: Path) -> None:
    program.write_text("#!/nowhere\n")
    assert spy.dumps([1]) == {}


def test_without_it_nothing_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert spy.dumps([1]) == {}
