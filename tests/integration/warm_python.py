"""Runs scripts in processes that need not import torch first, which takes longer than most scripts of tests.

They are forked from an interpreter that has torch and what an optimizer imports. What is about a process from its very
start needs a fresh interpreter instead. As a script, this file is that interpreter: it imports nothing of ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

STATUS = struct.Struct("i")
MOST_BYTES = 1 << 16
MOST_FDS = 8
ABOVE_THEM = 200


class Child:
    """A process that runs a script; one at a time."""

    def __init__(self, replies: socket.socket) -> None:
        self._replies = replies
        self._status: int | None = None
        (self.pid,) = STATUS.unpack(replies.recv(STATUS.size))

    def poll(self) -> int | None:
        if self._status is None and select.select([self._replies], [], [], 0)[0]:
            self.wait()
        return self._status

    def wait(self) -> int:
        """Its exit code, negative where a signal ended it."""
        if self._status is None:
            (self._status,) = STATUS.unpack(self._replies.recv(STATUS.size))
        return self._status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class WarmPython:
    """The interpreter that processes are forked from."""

    def __init__(self) -> None:
        self._asks, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, __file__, str(theirs.fileno())]
            subprocess.Popen(words, pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL)

    def start(self, words: Sequence[str], cwd: Path, fds: Mapping[int, int]) -> Child:
        """Run a script with its arguments, in a session of its own.

        Args:
            fds: the child's descriptors, each with one of ours that it is a copy of.
        """
        asked = {"words": [str(word) for word in words], "cwd": str(cwd), "fds": list(fds)}
        socket.send_fds(self._asks, [json.dumps(asked).encode()], list(fds.values()))
        return Child(self._asks)


@cache
def warm_python() -> WarmPython:
    """The one of this process; it ends when this process does."""
    return WarmPython()


def serve(asks: socket.socket) -> None:
    """Fork a process for each script that is asked for; returns in these, when the script has ended."""
    while True:
        message, given, _, _ = socket.recv_fds(asks, MOST_BYTES, MOST_FDS)
        if not message:
            return
        child = os.fork()
        if not child:
            asks.close()
            return run(**json.loads(message), given=given)
        for fd in given:
            os.close(fd)
        asks.send(STATUS.pack(child))
        asks.send(STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def run(words: list[str], cwd: str, fds: list[int], given: list[int]) -> None:
    """Run a script as its own process would."""
    os.setsid()
    os.chdir(cwd)
    out_of_the_way = [fcntl.fcntl(fd, fcntl.F_DUPFD, ABOVE_THEM) for fd in given]
    for fd in given:
        os.close(fd)
    for fd, number in zip(out_of_the_way, fds, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    sys.argv = words
    sys.path[0] = os.path.dirname(words[0])
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = words[0]
    exec(compile(Path(words[0]).read_bytes(), words[0], "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    import torch.utils.data

    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    serve(socket.socket(fileno=int(sys.argv[1])))
