"""Open files and connections that workers would inherit by fork, and so share."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, NamedTuple

from .dataset_state import parts_of

_FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom, io.TextIOWrapper)

_KINDS: dict[str, tuple[str, ...]] = {
    "zipfile": ("ZipFile",),
    "tarfile": ("TarFile",),
    "sqlite3": ("Connection", "Cursor"),
    "socket": ("socket",),
    "h5py": ("File", "Group", "Dataset"),
    "lmdb": ("Environment", "Transaction"),
    "netCDF4": ("Dataset",),
    "tables": ("File",),
    "psycopg2.extensions": ("connection",),
    "psycopg": ("Connection",),
    "cv2": ("VideoCapture",),
    "decord": ("VideoReader",),
}
"""Classes of modules that hold a file or a connection, where the target has imported them. Memory maps are none:
they have no position that is shared."""

_READ_ONLY = os.O_RDONLY


class Handle(NamedTuple):
    """An open one."""

    place: str
    """Where it is found: "dataset.archive"."""
    kind: str
    """"zipfile.ZipFile", "io.BufferedReader", ..."""


def handles_of(**roots: Any) -> list[Handle]:
    """What is open and reachable from objects that go to workers; a bounded look that calls no code of the target's.

    Args:
        roots: the objects by what they are to be called.
    """
    kinds = _classes()
    found: dict[int, Handle] = {}
    for name, root in roots.items():
        for path, part in parts_of(root):
            kind = _kind_of(part, kinds)
            if kind is not None:
                found.setdefault(id(part), Handle(name + path, kind))
    return list(found.values())


def _classes() -> dict[type, str]:
    """Classes that are loaded, by their names; nothing is imported, and no module is asked for what it has not yet."""
    found = {}
    for name, classes in _KINDS.items():
        held = vars(sys.modules[name]) if name in sys.modules else {}
        for each in classes:
            if isinstance(held.get(each), type):
                found[held[each]] = f"{name}.{each}"
    return found


def _kind_of(part: Any, kinds: dict[type, str]) -> str | None:
    kind = type(part)
    if kind in _FILES:
        return f"io.{kind.__name__}" if _reads_a_file(part) else None
    name = next((kinds[base] for base in kind.__mro__ if base in kinds), None)
    return None if name is None or _is_closed(part, name) else name


def _reads_a_file(file: Any) -> bool:
    with contextlib.suppress(OSError, ValueError):  # closed, or in memory
        return file.fileno() >= 0 and bool(file.readable())
    return False


def _is_closed(part: Any, name: str) -> bool:
    with contextlib.suppress(Exception):
        if name == "zipfile.ZipFile":
            return part.fp is None
        if name == "tarfile.TarFile":
            return bool(part.closed)
        if name == "socket.socket":
            return bool(part.fileno() < 0)
    return False


Positions = dict[int, tuple[str, int]]
"""Descriptor to the file it reads, and the position that all processes with that descriptor share."""


def positions() -> Positions | None:
    """Those of all regular files that this process has open for reading alone; None where the system does not tell."""
    found: Positions = {}
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return None
    for descriptor in descriptors:
        with contextlib.suppress(OSError, ValueError, KeyError):
            file = os.readlink(f"/proc/self/fd/{descriptor}")
            with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
                told = dict(line.split(":", 1) for line in lines)
            if file.startswith("/") and int(told["flags"], 8) & os.O_ACCMODE == _READ_ONLY and os.path.isfile(file):
                found[descriptor] = file, int(told["pos"])
    return found


def moved(before: Positions, after: Positions) -> set[str]:
    """Files whose shared position is not what it was."""
    return {
        file
        for descriptor, (file, position) in before.items()
        if descriptor in after and after[descriptor][0] == file and after[descriptor][1] != position
    }


class Sharing:
    """Finds files that workers read through descriptors which they inherited, while this process reads none.

    Args:
        opened: what was open before the training loop began: what came later, workers of a fresh process would not
            inherit. None where the system does not tell.
    """

    def __init__(self, opened: Positions | None) -> None:
        self._before: Positions = {}
        self._moved: set[str] | None = None
        now = None if opened is None else positions()
        if opened is not None and now is not None:
            self._before = {number: held for number, held in now.items() if opened.get(number, ("", 0))[0] == held[0]}
            self._moved = set()

    def look(self) -> None:
        """Look now: a position may well come back to where it was."""
        if self._moved is not None and self._before:
            self._moved |= moved(self._before, positions() or {})

    @property
    def files(self) -> list[str] | None:
        """Those that moved; None: not known."""
        return None if self._moved is None else sorted(self._moved)
