"""Torch.profiler windows after the last counted block of a launch."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import torch

from . import device
from .turns import turns

WARMUP_STEPS = 2
ANCHOR = "pindiag monotonic_ns="
"""Begins the name of a span in the trace that was opened at that moment: traces keep the wall clock, rings do not."""
TARGETS_OWN = "the script runs a profiler of its own"
LIMIT_S = 30.0
"""A window of slow steps ends here: what it holds by then shows the same as ten of them."""


class Window:
    """Profiles some steps and exports the trace. What fails here costs the trace, never the target.

    Args:
        path: where the trace goes (.json.gz).
        name: how the record calls that file.
        steps: how many steps are profiled after the warm-up.
        settle_steps: steps before the profiler starts, for an iterator that has just begun.
    """

    def __init__(self, path: str, name: str, steps: int, settle_steps: int) -> None:
        self.reason: str | None = None
        self.seconds = 0.0
        self.steps = 0
        self.exported = False
        self._path = path
        self._name = name
        self._goal = max(1, steps)
        self._settle_steps = settle_steps
        self._done = -WARMUP_STEPS
        self._profiler: Any = None
        self._began = time.monotonic()
        if not settle_steps:
            self._start()

    def record(self) -> dict[str, Any]:
        """The fields of the window's record, but for its trial."""
        trace = self._name if self.exported else None
        return {"steps": self.steps, "trace": trace, "reason": self.reason, "seconds": self.seconds}

    def _start(self) -> None:
        self._began = time.monotonic()
        if turns.target_profiles:
            self.reason = TARGETS_OWN
            return
        try:
            with turns.ours(self._give_way):
                self._profiler = torch.profiler.profile(
                    activities=_activities(),
                    schedule=torch.profiler.schedule(wait=0, warmup=WARMUP_STEPS, active=self._goal, repeat=1),
                    experimental_config=_all_threads(),
                    acc_events=True,  # one cycle either way; without it torch warns into the output of the target
                )
                self._profiler.start()
        except Exception as error:
            self._give_up(_in_words(error))

    def step(self) -> bool:
        """A step has ended; True when the window is over."""
        if self._settle_steps:
            self._settle_steps -= 1
            if not self._settle_steps:
                self._start()
            return False
        if self._profiler is None:
            return True
        self._done += 1
        slow = self._done > 0 and time.monotonic() - self._began > LIMIT_S
        if self._done >= self._goal or slow:
            self.finish()
            return True
        try:
            with turns.ours(self._give_way):
                self._profiler.step()
            if self._done >= 0:
                with torch.profiler.record_function(f"{ANCHOR}{time.monotonic_ns()}"):
                    pass
        except Exception as error:
            self._give_up(_in_words(error))
            return True
        return False

    def finish(self) -> None:
        """Stop and export what was profiled."""
        if self._settle_steps:
            self.reason = "the script ended before a step was profiled"
        if self._profiler is None:
            return
        profiler, self._profiler = self._profiler, None
        try:
            with turns.ours(None):
                profiler.stop()
            if self._done <= 0:
                raise RuntimeError("the script ended before a step was profiled")
            profiler.export_chrome_trace(self._path)
            self.exported = os.path.exists(self._path)
            self.steps = self._done
        except Exception as error:
            self._give_up(_in_words(error))
        self.seconds = time.monotonic() - self._began

    def _give_way(self) -> None:
        """The target begins a session of its own: one beside it would crash the process."""
        self._give_up(TARGETS_OWN)

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        profiler, self._profiler = self._profiler, None
        with contextlib.suppress(Exception), turns.ours(None):
            if profiler is not None:
                profiler.stop()
        self.seconds = time.monotonic() - self._began


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _activities() -> list[Any]:
    kinds = torch.profiler.ProfilerActivity
    if device.cuda_in_use():
        return [kinds.CPU, kinds.CUDA]
    others = set(torch._C._autograd._supported_activities()) - {kinds.CPU, kinds.CUDA}
    return [kinds.CPU, *sorted(others, key=str)]


def _all_threads() -> Any:
    """Makes the pin thread visible where the version can (2.7 and later)."""
    try:
        return torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        return None
