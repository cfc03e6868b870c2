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


def report_of(words: Sequence[str], run: Path) -> Report:
    """`pindiag run` with these words, started beside its run directory; a script that fails leaves a report too.

    Raises:
        NoReport: it left none.
    """
    done = pindiag(["run", *words], run.parent)
    try:
        return RunDirectory.open(run).read_report()
    except PindiagError as error:
        said = done.stderr.strip().splitlines()[-1:] or [str(error)]
        raise NoReport(f"no report, exit code {done.returncode}: {said[0]}") from error
