"""Runs a script under the files guard in a real child, the way the bootstrap does, and settles afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pindiag.probe
from pindiag.model import RunSpec
from pindiag.store import RunDirectory

START = """
import runpy, sys
sys.path.append({probe!r})
from pindiag_probe import files
files.install({run!r}, {launch}, {cap})
sys.argv = [{script!r}]
runpy.run_path({script!r}, run_name="__main__")
"""


class Guarded:
    """A folder `work` with the user's files, and a run directory `run` beside it."""

    def __init__(self, folder: Path, *, run: Path | None = None, cap_bytes: int = 1 << 30) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.script = folder / "script" / "train.py"
        self.script.parent.mkdir()
        self.cap_bytes = cap_bytes
        self.run = RunDirectory.create(run or folder / "run")
        self.run.write_spec(spec(self.script, self.work))
        self.probe = self.run.path / "probe"
        shutil.copytree(Path(pindiag.probe.__path__[0]), self.probe / "pindiag_probe")

    def start(self, script: str, *, launch: int = 1) -> subprocess.Popen[str]:
        self.script.write_text(script)
        code = START.format(
            probe=str(self.probe),
            run=str(self.run.path),
            launch=launch,
            cap=self.cap_bytes,
            script=str(self.script),
        )
        return subprocess.Popen(
            [sys.executable, "-B", "-c", code],
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, script: str, *, launch: int = 1) -> subprocess.CompletedProcess[str]:
        child = self.start(script, launch=launch)
        out, err = child.communicate(timeout=60)
        return subprocess.CompletedProcess(script, child.returncode, out, err)


def spec(script: Path, cwd: Path) -> RunSpec:
    return RunSpec(
        target=str(script),
        module=False,
        args=[],
        cwd=str(cwd),
        python=sys.executable,
        started_utc="2026-01-01T00:00:00Z",
        command=["pindiag", "run", str(script)],
        sweep=False,
        grid=None,
        budget_s=10,
        rounds=1,
        steps=None,
        seed=0,
        device=None,
        loader=None,
        wait_s=10,
        usable_cpus=1,
        pindiag_version="0",
    )


def state(*folders: Path) -> dict[str, tuple[str, int, int]]:
    """Content, permissions and time of all files, and permissions of all folders."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            status = os.lstat(path)
            if path.is_symlink():
                found[str(path)] = (os.readlink(path), 0, 0)
            elif path.is_dir():
                found[str(path)] = ("folder", stat.S_IMODE(status.st_mode), 0)
            else:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path)] = (digest, stat.S_IMODE(status.st_mode), status.st_mtime_ns)
    return found
