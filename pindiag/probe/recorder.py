"""Where the probe's records go: its journal, and the pipe to the parent."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

PIPED = frozenset(
    {
        "loader_chosen",
        "first_step",
        "dataset_changed",
        "block_phase",
        "block",
        "window",
        "gate_pass",
        "unmeasured",
        "target_failed",
        "target_ended",
    }
)
"""Types of the records that the parent waits for; everything else is only read from disk."""


class Recorder:
    """Writes records as they happen: the journal first, then the pipe."""

    def __init__(self, run_directory: str, launch: int, read_fd: int, write_fd: int) -> None:
        name = f"launch-{launch:03d}-{os.getpid()}.jsonl"
        path = os.path.join(run_directory, "journal", name)
        self._launch = launch
        self._journal = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._received = b""
        self._lock = threading.Lock()
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)

    def write(self, kind: str, **fields: Any) -> None:
        """Write one record. A full disk or a parent that is gone must not fail the target, so neither raises."""
        record = {"type": kind, "launch": self._launch, "t_ns": time.monotonic_ns(), **fields}
        line = json.dumps(record).encode() + b"\n"
        with self._lock:
            _write_all(self._journal, line)
            if kind in PIPED:
                _write_all(self._write_fd, line)

    def ask(self) -> dict[str, Any]:
        """Wait for the parent's answer; a parent that is gone means stop."""
        while b"\n" not in self._received:
            try:
                chunk = os.read(self._read_fd, 65536)
            except OSError:
                chunk = b""
            if not chunk:
                return {"then": "stop"}
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return
