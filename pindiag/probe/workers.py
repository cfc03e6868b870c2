"""Puts timed loops in the place of those that torch's loader workers and pin threads run."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from torch.utils.data import _utils

from . import births, contexts, files, pinning, stacks, target
from .imports import after_import
from .rings import Ring
from .worker_birth import Birth
from .worker_stages import Stages

birth = Birth()
"""What workers that are born from now on do first."""


def install(rings_directory: str, launch: int, close_fds: tuple[int, ...]) -> None:
    """Time the workers and pin threads that are started from now on.

    Args:
        rings_directory: where each worker makes its ring.
        launch: number of the launch.
        close_fds: descriptors that forked workers close first; they would hold the parent's pipe open.
    """
    loop = functools.partial(WorkerLoop, rings_directory=rings_directory, launch=launch, close_fds=close_fds)
    _utils.worker._worker_loop = loop(_utils.worker.__name__)
    _utils.pin_memory._pin_memory_loop = pinning.timed_pin_loop(_utils.pin_memory._pin_memory_loop)
    _utils.pin_memory.pin_memory = pinning.timed_pin(_utils.pin_memory.pin_memory)
    births.install()

    def change(module: ModuleType) -> None:
        module._worker_loop = loop("torchdata.stateful_dataloader.worker")  # type: ignore[attr-defined]

    after_import("torchdata.stateful_dataloader.stateful_dataloader", change)


class WorkerLoop:
    """Stands where torch's `_worker_loop` stood; it can be pickled for spawned workers."""

    def __init__(self, module: str, *, rings_directory: str, launch: int, close_fds: tuple[int, ...]) -> None:
        self.module = module
        self.rings_directory = rings_directory
        self.launch = launch
        self.close_fds = close_fds
        self.birth = birth
        self.main_pid = os.getpid()
        self.guard: tuple[str, int, int] | None = None
        self.original = _original_loop(module)

    def __getstate__(self) -> dict[str, Any]:
        """For a spawned worker, which finds the original in its own torch, inherits no fds and has no guard yet."""
        return {**self.__dict__, "original": None, "close_fds": (), "guard": files.arguments()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.original = _original_loop(self.module)
        if self.guard is not None:
            files.install(*self.guard)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Be a worker; where torch runs it as a thread of the main process, an untimed one."""
        if os.getpid() == self.main_pid:
            return self.original(*args, **kwargs)
        for fd in self.close_fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        stacks.offer()
        call = inspect.signature(self.original).bind(*args, **kwargs)
        told = call.arguments
        told["init_fn"] = self.birth.after(told.get("init_fn"))
        ring = self._ring(told.get("worker_id", -1))
        if ring is not None:
            journal = os.path.join(os.path.dirname(self.rings_directory), "journal")
            context = contexts.WorkerContext(journal, self.launch, told.get("worker_id", -1))
            self._time(Stages(ring, context.look), told)
        try:
            return self.original(*call.args, **call.kwargs)
        finally:
            if ring is not None:
                ring.close()

    def _time(self, stages: Stages, told: dict[str, Any]) -> None:
        stages.time_fetchers()
        stages.time_index_queue(told["index_queue"])
        stages.time_data_queue(told["data_queue"])
        module = import_module(self.module)
        module.ExceptionWrapper = _without_own_frames(module.ExceptionWrapper)  # type: ignore[attr-defined]

    def _ring(self, worker: int) -> Ring | None:
        try:
            return Ring(self.rings_directory, self.launch, worker)
        except OSError:
            return None


def _original_loop(module: str) -> Callable[..., Any]:
    loop = import_module(module)._worker_loop
    return loop.original if isinstance(loop, WorkerLoop) else loop


def _without_own_frames(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's ExceptionWrapper, made from a traceback as it would be without the probe."""

    def wrap(exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, _ = exc_info or sys.exc_info()
        if isinstance(error, BaseException):
            target.strip(error)
        return wrapper((kind, error, getattr(error, "__traceback__", None)), where)

    return wrap
