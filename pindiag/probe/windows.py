"""The profiler windows of a launch: those that are to come, and the one that is open."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from .profiler import Window
from .recorder import Recorder


class Windows:
    """Opens windows one after another and writes down what each gave.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go.

    Attributes:
        to_come: orders, the next one first.
    """

    def __init__(self, spec: dict[str, Any], recorder: Recorder) -> None:
        self.to_come: deque[dict[str, Any]] = deque()
        self._spec = spec
        self._recorder = recorder
        self._trial = ""
        self._window: Window | None = None

    def open(self, trial: str, settle_steps: int) -> None:
        """Open a window; see `Window` for its steps."""
        self._trial = trial
        trace = f"traces/{trial}-{self._spec['launch']}.json.gz"
        path = os.path.join(self._spec["run_directory"], trace)
        self._window = Window(path, trace, self._spec["profile_steps"], settle_steps)

    def step(self) -> bool:
        """A step has ended; True when an open window has ended with it."""
        if self._window is None or not self._window.step():
            return False
        self.close()
        return True

    def close(self) -> None:
        """Write down what the open window gave; without one, nothing is done."""
        window, self._window = self._window, None
        if window is not None:
            window.finish()
            self._recorder.write("window", trial=self._trial, **window.record())
