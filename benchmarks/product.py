"""The product as a user starts it, and the report that it leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pindiag.errors import PindiagError
from pindiag.model import Report
from pindiag.store import RunDirectory


class NoReport(Exception):
    """A run left none; the message says why."""


def pindiag(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of pindiag, started in a folder."""
    asked = [sys.executable, "-m", "pindiag", *words]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)


def last_words(done: subprocess.CompletedProcess[str]) -> str | None:
    """The last line that it wrote to standard error; None where there is none."""
    return next(iter(done.stderr.strip().splitlines()[-1:]), None)


def read_report(run: Path, exit_code: int | None, said: str | None) -> Report:
    """The report of a run that has ended with this code and these last words.

    Raises:
        NoReport: it left none.
    """
    try:
        return RunDirectory.open(run).read_report()
    except PindiagError as error:
        raise NoReport(f"no report, exit code {exit_code}: {said or error}") from error


def report_of(words: Sequence[str], run: Path) -> Report:
    """`pindiag run` with these words, started beside its run directory; a script that fails leaves a report too.

    Raises:
        NoReport: it left none.
    """
    done = pindiag(["run", *words], run.parent)
    return read_report(run, done.returncode, last_words(done))
