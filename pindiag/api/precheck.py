"""What is refused before anything is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from pindiag.errors import NoTorch, PlatformRefused, TargetNotFound, UsageError

OLDEST_TORCH = (2, 6)
_PRECHECK = """
import hashlib, importlib.metadata, importlib.util, json, sys
target, module, cwd = json.loads(sys.argv[1])
def torch():
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
def module_file():
    sys.path.insert(0, cwd)
    found = importlib.util.find_spec(target)
    if found is None:
        raise ImportError(f"No module named {target}")
    if found.submodule_search_locations is not None:
        found = importlib.util.find_spec(target + ".__main__") or found
    return found.origin
def checked():
    try:
        file = module_file() if module else target
    except (ImportError, ValueError) as error:
        return str(error), None
    try:
        with open(file, "rb") as source:
            content = source.read()
    except (OSError, TypeError):
        return None, None
    try:
        if not module:
            compile(content, target, "exec")
    except (SyntaxError, ValueError) as error:
        return f"{type(error).__name__}: {error}", None
    return None, hashlib.sha256(content).hexdigest()
print(json.dumps([torch(), *checked()]))
"""


def platform(name: str) -> None:
    """Refuse to start anything where it could be neither steered nor cleaned up after.

    Args:
        name: `sys.platform`.

    Raises:
        PlatformRefused: it is Windows.
    """
    if name == "win32":
        raise PlatformRefused(
            "pindiag cannot measure on Windows: a process there inherits no pipes to be told what to do over, and what "
            "it leaves behind cannot be killed as a group.",
            "Run it under WSL 2, which is Linux.",
        )


def interpreter(python: str | None) -> str:
    """Absolute path of the interpreter that runs the target.

    Raises:
        UsageError: there is none of this name.
    """
    if python is None:
        return sys.executable
    import shutil

    found = shutil.which(python)
    if found is None:
        raise UsageError(f"There is no interpreter {python}.", "Name one that has torch with --python PATH.")
    return os.path.abspath(found)


def check_place(place: str) -> None:
    """Refuse a `--loader` that names no line of a file.

    Raises:
        UsageError: it is not FILE:LINE.
    """
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        raise UsageError(f"--loader {place} is not FILE:LINE.", "Name the line that makes the DataLoader: train.py:14.")


def script(target: str) -> str:
    """Absolute path of the script.

    Raises:
        TargetNotFound: there is no such file.
    """
    path = Path(target)
    if path.is_dir():
        raise TargetNotFound(f"{target} is a directory.", "Name the script that trains.")
    if not path.is_file():
        raise TargetNotFound(f"There is no file {target}.", "Name the script that trains, or a module with -m.")
    return str(path.resolve())


class Found(NamedTuple):
    """What the interpreter knows of torch and the target."""

    torch_version: str
    sha256: str | None
    """Of the target's file; None where it has none that can be read."""


def ask_interpreter(interpreter: str, target: str, module: bool, *, cwd: str | None = None) -> Found:
    """Ask the interpreter itself, without importing torch: a second that a wrong call does not cost.

    Args:
        interpreter: the one that is to run the target.
        target: the script's path, or the module's name.
        module: whether it is a module.
        cwd: where the target is to run; the current folder if None.

    Raises:
        UsageError: the interpreter does not run Python code.
        TargetNotFound: the target is no Python that it can run.
        NoTorch: it has no torch, or one that is too old.
    """
    question = json.dumps([target, module, cwd or os.getcwd()])
    answer = subprocess.run(
        [interpreter, "-c", _PRECHECK, question], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no output"])[-1]
        raise UsageError(f"{interpreter} does not run Python code: {last}.", "Name another one with --python PATH.")
    torch_version, problem, sha256 = json.loads(answer.stdout.splitlines()[-1])
    if problem is not None:
        raise TargetNotFound(f"{target} cannot be run as Python: {problem}.", "Name the script that trains.")
    if torch_version is None:
        raise NoTorch(f"{interpreter} has no torch.", "Name the interpreter that trains with --python PATH.")
    if tuple(int(part) for part in torch_version.split(".")[:2]) < OLDEST_TORCH:
        raise NoTorch(f"{interpreter} has torch {torch_version}; pindiag needs 2.6 or newer.", "Use a newer torch.")
    return Found(torch_version, sha256)
