"""Ctrl-C and its like, turned into a question that the session asks."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_NAMES = {"SIGINT": "interrupted by Ctrl-C"}


class Interrupts:
    """While entered, SIGINT, SIGTERM and SIGHUP raise nothing: they are remembered, also a second one.

    So no signal can break off a clean-up. Outside the main thread, where Python allows no handler, nothing is
    changed.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why the run should stop, in words; None while it should not."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue  # under nohup a hang-up is not meant
                self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        del frame
        name = signal.Signals(number).name
        self.reason = self.reason or _NAMES.get(name, f"ended by {name}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
