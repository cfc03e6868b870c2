"""The measurements of `pindiag doctor`: children of the probe that do one part after another."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from pindiag.launch import guardian
from pindiag.launch.ending import exit_in_words
from pindiag.launch.guardianship import Guardian
from pindiag.launch.interrupts import Interrupts

TORCH = "torch"
COPIES = "copies"
START_METHODS = ("fork", "spawn", "forkserver")
PARTS = (TORCH, *(f"hand_off {method}" for method in START_METHODS), COPIES)
"""In their order: a process is forked before it uses CUDA."""
TOTAL_S = 55.0
PART_S = 25.0
"""A part that hangs must leave time to the others."""
TICK_S = 0.1
REAP_S = 5.0
_PROBE = Path(__file__).parent.parent / "probe"
_PACKAGE = "pindiag_probe"
_START = f"import sys; sys.path.append(sys.argv[1]); from {_PACKAGE}.doctor import main; main(sys.argv[2:])"


class Reading(NamedTuple):
    """What one part gave."""

    value: Any
    reason: str | None
    """Why there is no value."""


class Asked(NamedTuple):
    """How the parts are done, and who is told."""

    python: str
    probe: Path
    began: Callable[[str], None]
    """Is told of each part as it begins."""
    while_copying: Callable[[], None]
    """Called about ten times a second while copies are measured."""
    total_s: float
    part_s: float


def examine(
    python: str,
    *,
    parts: Sequence[str] = PARTS,
    began: Callable[[str], None],
    while_copying: Callable[[], None],
    probe: Path = _PROBE,
    total_s: float = TOTAL_S,
    part_s: float = PART_S,
) -> dict[str, Reading]:
    """Do the parts under an interpreter, each with its value or its reason; no process is left behind.

    A child that dies or hangs costs the part that it was at; another one goes on with those that are left.

    Args:
        python: the interpreter that has torch.
        parts: what to measure, in this order.
        began: is told of each part as it begins.
        while_copying: called about ten times a second while copies to the GPU are measured.
        probe: the folder of the probe's modules.
        total_s: when this is over, what is left is not measured.
        part_s: how long one part may take.

    Raises:
        KeyboardInterrupt: Ctrl-C or its like came; everything is cleared up by then.
    """
    asked = Asked(python, probe, began, while_copying, total_s, part_s)
    with Interrupts() as interrupts, tempfile.TemporaryDirectory(prefix="pindiag-doctor-") as folder:
        shutil.copytree(probe, Path(folder) / _PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        with Guardian(folder) as kept:
            examination = _Examination(asked, Path(folder), kept, interrupts)
            readings = examination.run(list(parts))
    if interrupts.reason is not None:
        raise KeyboardInterrupt(interrupts.reason)
    return readings


class _Examination:
    def __init__(self, asked: Asked, folder: Path, kept: Guardian, interrupts: Interrupts) -> None:
        self._asked = asked
        self._folder = folder
        self._guardian = kept
        self._interrupts = interrupts
        self._ends_s = time.monotonic() + asked.total_s
        self._readings: dict[str, Reading] = {}

    def run(self, left: list[str]) -> dict[str, Reading]:
        while left and self._interrupts.reason is None:
            if time.monotonic() >= self._ends_s:
                self._readings.update(dict.fromkeys(left, Reading(None, "the time was over before it began")))
                break
            self._one_child(left)
            left = [part for part in left if part not in self._readings]
        return self._readings

    def _one_child(self, parts: Sequence[str]) -> None:
        try:
            child = _Child([self._asked.python, "-c", _START, str(self._folder), *parts], self._folder)
        except OSError as error:
            self._readings.update(dict.fromkeys(parts, Reading(None, f"the interpreter does not start: {error}")))
            return
        with child, self._guardian.over(child.pid):
            part, reason = self._follow(child, parts[0])
        if part is not None:
            self._readings[part] = Reading(None, reason or child.last_words())

    def _follow(self, child: _Child, part: str) -> tuple[str | None, str | None]:
        """Take what a child tells; the part that it did not finish, and the reason where that is known here."""
        current: str | None = part
        part_ends_s = time.monotonic() + self._asked.part_s
        while self._interrupts.reason is None:
            if time.monotonic() >= min(part_ends_s, self._ends_s):
                return current, "it took too long and was ended"
            if current == COPIES:
                self._asked.while_copying()
            line = child.line(TICK_S)
            if line is None:
                if child.ended():
                    return current, None
                continue
            current = line["part"]
            part_ends_s = time.monotonic() + self._asked.part_s
            if "began" in line:
                self._asked.began(str(current))
                continue
            self._readings[str(current)] = Reading(line.get("value"), line.get("reason"))
            current = None
        return None, None


class _Child:
    """One start of the probe's doctor in a session of its own; nothing of it is left after the `with`."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._errors = folder / "errors.txt"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._over = False
        threading.Thread(target=self._listen, daemon=True).start()

    def line(self, timeout_s: float) -> dict[str, Any] | None:
        """What the child tells next; None where it told nothing."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._over = self._over or line is None
        return line

    def ended(self) -> bool:
        """Whether it is gone and all that it told is taken; workers that hold its pipe open are ended then."""
        if self._process.poll() is None:
            return False
        if not self._over:
            guardian.kill([self.pid])
        return self._over

    def last_words(self) -> str:
        """How it ended, with the last line that it wrote to standard error."""
        how = exit_in_words(self._process.returncode)
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return f"its process ended early ({how}){': ' + lines[-1].strip() if lines else ''}"

    def _listen(self) -> None:
        for line in _stdout(self._process):
            told = _object(line)
            if told is not None:
                self._lines.put(told)
        self._lines.put(None)

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *exception: object) -> None:
        guardian.kill([self.pid])
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_S)


def _stdout(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    stream: IO[bytes] | None = process.stdout
    if stream is not None:
        with stream:
            yield from stream


def _object(line: bytes) -> dict[str, Any] | None:
    """A line of the child's own; libraries print to standard output too."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) and "part" in told else None
