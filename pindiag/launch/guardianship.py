"""The parent's end of the guardian."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from pindiag.launch import guardian

LEAVE_S = guardian.KILL_S + 2.0


class Guardian:
    """A process that outlives this one and kills what this one would leave behind.

    Args:
        mark: how the second argument of every launch begins; finds a child even if this process dies at the moment
            of starting it.
    """

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guardian.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._tell(f"{mark}\n")

    @contextlib.contextmanager
    def over(self, group: int) -> Iterator[None]:
        """A launch's process group is guarded while this is entered."""
        self._tell(f"+{group}\n")
        try:
            yield
        finally:
            self._tell(f"-{group}\n")

    def __enter__(self) -> Guardian:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVE_S)

    def _tell(self, line: str) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # someone killed it: the run goes on unguarded
                self._process.stdin.write(line.encode())
