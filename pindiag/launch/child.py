"""The target's main process, and the two pipes to the probe inside it."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from pindiag.launch import guardian
from pindiag.launch.agenda import Answer
from pindiag.launch.stream import Stream
from pindiag.model import AnyRecord

_CHUNK_BYTES = 1 << 16
_REAP_S = 5.0


class Child:
    """One start of the target; whatever happens inside the `with`, no process of it is left behind.

    The end of the pipe means nothing here: workers inherit it and may outlive the target, or the probe may close it
    early. Only the process itself tells that it has ended.
    """

    def __init__(self) -> None:
        self._from_probe, self.pipe_write_fd = os.pipe()
        self.pipe_read_fd, self._to_probe = os.pipe()
        self._process: subprocess.Popen[bytes] | None = None
        self._cleared = False
        self._stream = Stream()
        os.set_blocking(self._from_probe, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._from_probe, selectors.EVENT_READ)

    def start(self, command: Sequence[str], cwd: str, environment: Mapping[str, str], log: Path) -> int:
        """Start the target in a session of its own, and give its process id, which is its group's too.

        Raises:
            OSError: the machine cannot start it.
        """
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(self.pipe_read_fd, self.pipe_write_fd),
            )
        for fd in (self.pipe_read_fd, self.pipe_write_fd):
            os.close(fd)
        return self._process.pid

    def running(self) -> bool:
        """Whether the main process is alive."""
        return self._process is not None and self._process.poll() is None

    def receive(self, timeout_s: float) -> list[AnyRecord]:
        """Records that have come over the pipe, waiting for the first one up to `timeout_s`."""
        if not self._selector.get_map():
            time.sleep(timeout_s)
        elif self._selector.select(timeout_s):
            return self._read()
        return []

    def _read(self) -> list[AnyRecord]:
        records: list[AnyRecord] = []
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._from_probe, _CHUNK_BYTES):
                records += self._stream.feed(chunk)
            self._selector.unregister(self._from_probe)
        return records

    def answer(self, answer: Answer) -> None:
        """Tell the probe what to do after a block."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._to_probe, msgspec.json.encode(answer) + b"\n")

    def kill(self, known: Mapping[int, int]) -> int | None:
        """Kill what is left of the target and its descendants, and give the return code of its main process.

        Args:
            known: processes that were seen in its tree, with the time that each started.
        """
        if self._process is None:
            return None
        self._cleared = guardian.kill([self._process.pid], known=known)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_REAP_S)
        return None

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._cleared:
            self.kill({})
        self._selector.close()
        ours = [self._from_probe, self._to_probe]
        for fd in ours if self._process is not None else [*ours, self.pipe_read_fd, self.pipe_write_fd]:
            os.close(fd)
