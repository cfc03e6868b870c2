"""Run directories that were never measured, and the command line called in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pindiag.cli import main
from pindiag.model import Report, RunSpec
from pindiag.store import RunDirectory

from ..report import example


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without a display, in which nothing is set."""
    monkeypatch.chdir(tmp_path)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "NO_COLOR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def a_run(nowhere: Path) -> Callable[..., Path]:
    """Makes a run directory with a report; `report=None` leaves it without."""

    def make(path: str = "pindiag-runs/one", report: Report | None = example.confirmed(), **asked: object) -> Path:
        directory = RunDirectory.create(Path(path))
        spec: RunSpec = msgspec.structs.replace(example.SPEC, **asked)
        directory.write_spec(spec)
        if report is not None:
            directory.write_report(report)
            directory.report_html.write_text("<!doctype html>")
            directory.summary_md.write_text("**What it is**\n")
        return directory.path

    return make


class Said:
    """What a command gave back."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def pindiag(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Calls `pindiag` with these words."""

    def call(*words: str) -> Said:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return call
