"""Lets the parent read what this process is at, should the launch make no progress."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

NAME = "pindiag-stacks-"
"""How the memory of a process is called; its process id follows, as a forked child inherits its parent's."""


def offer() -> None:
    """From now on the parent's signal lets this process write the stacks of all its threads, whatever it is stuck in.

    They go into memory that the parent finds by its name: no file is made for those who are never asked, and none is
    left behind. Where the system has no such memory or no real-time signals (macOS, Windows), nothing is offered.
    """
    if hasattr(signal, "SIGRTMAX") and hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            # the last but one: SIGUSR1 and SIGUSR2 are the script's and the batch system's
            faulthandler.register(signal.SIGRTMAX - 1, os.memfd_create(f"{NAME}{os.getpid()}"), all_threads=True)
