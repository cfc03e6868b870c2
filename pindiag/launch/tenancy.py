"""One pindiag at a time in a run directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from pindiag.errors import RunInUse


@contextlib.contextmanager
def tenancy(path: Path) -> Iterator[None]:
    """Hold a run directory while entered; however this process dies, the kernel lets go of it.

    Where the file system knows no locks, nothing is held.

    Raises:
        RunInUse: another pindiag holds it.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            _lock(folder, path)
        yield
    finally:
        os.close(folder)


def is_held(path: Path) -> bool:
    """Whether a pindiag is running in a directory."""
    try:
        with tenancy(path):
            return False
    except RunInUse:
        return True


def _lock(folder: int, path: Path) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunInUse(f"Another pindiag is running in {path}.", "Wait for its end, or end it with Ctrl-C.") from error
