"""One run of a sample for all benchmarks that look at it: made where there is none, and else taken as it is.

FOLDER/SAMPLE/SAMPLE.py     a copy of the script; the script itself is never touched
FOLDER/SAMPLE/run           its run directory
FOLDER/SAMPLE/swept.json    how long the run took, by which command, and how it ended
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from product import last_words, pindiag, read_report

from pindiag.journal import Journal
from pindiag.model import Report
from pindiag.store import RunDirectory

Start = Callable[[Sequence[str], Path], "subprocess.CompletedProcess[str]"]
"""Runs a command of pindiag in a folder."""


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """swept.json."""

    wall_s: float
    command: list[str]
    """The script is its third word. Where the run is written and what it tells meanwhile is left out."""
    exit_code: int
    said: str | None
    """Its last words on standard error, where they were not shown."""

    def command_of(self, script: str) -> list[str]:
        """The command, had it been given for this script."""
        return [*self.command[:2], script, *self.command[3:]]


@dataclass(frozen=True)
class Place:
    """Where a script is run and what is known of it is kept."""

    folder: Path
    name: str

    @classmethod
    def of(cls, script: Path, runs: Path) -> Place:
        """The one for a script, with its copy."""
        place = cls(runs.resolve() / script.stem, script.stem)
        place.folder.mkdir(parents=True, exist_ok=True)
        if not place.script.exists():
            shutil.copy2(script, place.script)
        return place

    @property
    def script(self) -> Path:
        """The copy."""
        return self.folder / f"{self.name}.py"

    @property
    def run(self) -> Path:
        """The run directory."""
        return self.folder / "run"

    @property
    def made(self) -> Made | None:
        """How the run was made; None where nobody wrote it down."""
        path = self.folder / "swept.json"
        return msgspec.json.decode(path.read_bytes(), type=Made) if path.is_file() else None

    @property
    def arguments(self) -> list[str]:
        """What the script was told in the run that is there."""
        return RunDirectory.open(self.run).read_spec().args

    @property
    def is_finished(self) -> bool:
        """Whether a run is there that left its report, and was not interrupted."""
        if not (self.run / "report.json").is_file():
            return False
        ended = Journal(RunDirectory.open(self.run).records()).ended
        return ended is not None and ended.status != "interrupted"

    def ensure(
        self, options: Sequence[str], arguments: Sequence[str] = (), *, start: Start = pindiag, tells: str = "-q"
    ) -> Made | None:
        """Run the script with these options of the product and its own arguments, unless that is done."""
        if self.is_finished:
            return self.made
        own = ["--", *arguments] if arguments else []
        asked = ["run", str(self.script), *options]
        began = time.perf_counter()
        done = start([*asked, tells, "-o", str(self.run), "--force", *own], self.folder)
        wall_s = time.perf_counter() - began
        made = Made(wall_s, ["pindiag", *asked, *own], done.returncode, last_words(done))
        (self.folder / "swept.json").write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
        return made

    def report(self, options: Sequence[str], arguments: Sequence[str] = ()) -> Report:
        """The report of the run, which is made where there is none; a script that fails leaves one too.

        Raises:
            NoReport: the run left none.
        """
        made = self.ensure(options, arguments)
        return read_report(self.run, made and made.exit_code, made and made.said)


def add_runs(to: argparse.ArgumentParser) -> None:
    """Let a benchmark share its runs with others."""
    words = (
        "keep each sample's run in FOLDER/SAMPLE, for other benchmarks too; one that is finished there is taken as it "
        "is, whatever else is asked (default: a temporary folder)"
    )
    to.add_argument("--runs", type=Path, metavar="FOLDER", help=words)


@contextmanager
def kept_in(runs: Path | None) -> Iterator[Path]:
    """The folder of --runs, or one that is removed afterwards."""
    if runs is not None:
        yield runs
        return
    with tempfile.TemporaryDirectory(prefix="pindiag-") as folder:
        yield Path(folder)
