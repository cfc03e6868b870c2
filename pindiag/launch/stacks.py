"""What the processes of a launch without progress are at, read before they are killed.

py-spy tells them where it is installed and may look. Each Python process of the target has offered memory, too, into
which a signal makes it write its stacks (probe/stacks.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import BinaryIO

from pindiag.launch import spy
from pindiag.model import Process

NAME = "pindiag-stacks-"
"""How the memory of a process is called, before its process id."""
SIGNAL = signal.SIGRTMAX - 1 if hasattr(signal, "SIGRTMAX") else 0
"""0: the system has no real-time signals, and no process offers anything."""
ANSWER_S = 2.0
"""How long all of them together may take; it takes them milliseconds unless they hang in the kernel."""
PAUSE_S = 0.1
"""A text that has not grown for this long is whole."""


def read(
    processes: Sequence[Process],
    *,
    look: Callable[[Sequence[int]], Mapping[int, str]] = spy.dumps,
    send: Callable[[int, int], None] = os.kill,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """The stacks of a target's main process and its workers, one section a process; where one is missing, the reason.

    Only processes that offered their stacks get the signal: it would end any other.

    Args:
        processes: the target's.
        look: gives the stacks of those that can be looked into from outside.
        send: sends a signal to a process.
        pause: waits for some seconds.
    """
    shown = look([process.pid for process in sorted(processes, key=_importance) if process.role != "other"])
    with contextlib.ExitStack() as stack:
        offered = {}
        for process in processes:
            if process.pid in shown:
                continue
            memory = _offered(process.pid)
            if memory is not None:
                offered[process.pid] = stack.enter_context(memory)
        for pid in offered:
            with contextlib.suppress(ProcessLookupError):
                send(pid, SIGNAL)
        _await(offered.values(), pause)
        asked = (process for process in processes if process.pid in offered or process.role != "other")
        return "\n".join(
            _section(process, shown.get(process.pid) or _answer(process, offered.get(process.pid))) for process in asked
        )


def _importance(process: Process) -> bool:
    return process.role != "main"


def _offered(pid: int) -> BinaryIO | None:
    """The memory that a process writes its stacks into; None where it offered none, or closed it."""
    folder, name = f"/proc/{pid}/fd", f"/memfd:{NAME}{pid} (deleted)"
    try:
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"{folder}/{fd}") == name:
                    return open(f"{folder}/{fd}", "rb")
    except OSError:
        return None
    return None


def _await(memories: Collection[BinaryIO], pause: Callable[[float], None]) -> None:
    """Wait until all are written, but no longer than that may take."""
    sizes = [0] * len(memories)
    for _ in range(round(ANSWER_S / PAUSE_S)):
        pause(PAUSE_S)
        before, sizes = sizes, [os.fstat(memory.fileno()).st_size for memory in memories]
        if all(sizes) and sizes == before:
            return


def _section(process: Process, text: str) -> str:
    return f"==== process {process.pid} ({process.role})\n{text}"


def _answer(process: Process, memory: BinaryIO | None) -> str:
    text = "" if memory is None else memory.read().decode(errors="replace")
    return text or _why_none(process, offered=memory is not None)


def _why_none(process: Process, *, offered: bool) -> str:
    if offered:
        return f"no stack: it did not answer within {ANSWER_S:g} s (its state: {process.state})\n"
    if not SIGNAL:
        return "no stack: this system has no real-time signals to ask for it\n"
    return "no stack: it had not come so far that it could be asked, or closed its descriptors\n"
