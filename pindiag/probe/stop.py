"""Ending the target when the schedule is done, even if it does not want to end."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

GRACE_S = 2.0
"""How long the target may take to unwind, run its `finally` and atexit functions, and join its workers."""


class Stop(BaseException):
    """Unwinds the target; not an Exception, so that `except Exception` lets it pass."""


class Stopper:
    """Raises `Stop` from every hook once the launch is over, and ends the process if that does not help.

    Args:
        last_words: called before the process is ended by force.
    """

    def __init__(self, last_words: Callable[[], None]) -> None:
        self.stopping = False
        self._last_words = last_words

    def begin(self) -> None:
        """From now on every `check` raises; everything measured must be on disk."""
        if self.stopping:
            return
        self.stopping = True
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGCHLD"):
            # torch's handler would turn the end of a worker into a RuntimeError of the target
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        threading.Thread(target=self._end_by_force, name="pindiag_stop", daemon=True).start()

    def check(self) -> None:
        """Raise `Stop` if the launch is over."""
        if self.stopping:
            raise Stop

    def leave(self) -> None:
        """End the unwound process: its atexit functions run, but torch and CUDA are not taken down.

        That would cost a second or more of every launch, for a training that is thrown away.
        """
        _kill_workers()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)

    def _end_by_force(self) -> None:
        time.sleep(GRACE_S)
        self._last_words()
        _kill_workers()
        os._exit(0)


def _kill_workers() -> None:
    for worker in multiprocessing.active_children():
        worker.kill()
