"""What is refused before anything is started, as far as no process is needed for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pindiag import api, cli
from pindiag.api import doctor, precheck
from pindiag.errors import ExitCode


@pytest.mark.parametrize("name", ["linux", "darwin", "freebsd14"])
def test_platforms_with_inherited_pipes_and_process_groups(name: str) -> None:
    precheck.platform(name)


@pytest.mark.parametrize("words", [["run", "train.py", "--sweep"], ["doctor", "-q"]])
def test_windows_is_refused_in_words_before_anything_is_made(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "sys", FakeSys)
    monkeypatch.setattr(doctor, "sys", FakeSys)
    assert cli.main(words) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert "pindiag cannot measure on Windows" in said
    assert "Run it under WSL 2" in said
    assert list(tmp_path.iterdir()) == [script]


class FakeSys:
    platform = "win32"
    argv = sys.argv
