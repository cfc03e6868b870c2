"""One launch from its first to its last record."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import stacks, target
from .imports import after_import
from .recorder import Recorder
from .stop import Stopper

if TYPE_CHECKING:
    from .session import Session

DEATH_S = 0.2
"""How long a worker whose connection broke may take until its death is known."""
OLDEST_TORCH = (2, 6)
NO_TORCH_STATUS = 2
_INTERRUPTED = 130


class Launch:
    """Installs the probe, runs the target and says how it ended.

    Args:
        spec_path: file of the parent's `ProbeSpec`.
    """

    def __init__(self, spec_path: str) -> None:
        with open(spec_path, encoding="utf-8") as file:
            self._spec: dict[str, Any] = json.load(file)
        spec = self._spec
        self._fds = (spec["pipe_read_fd"], spec["pipe_write_fd"])
        self._recorder = Recorder(spec["run_directory"], spec["launch"], *self._fds)
        self._stopper = Stopper(self._say_stopped)
        self._session: Session | None = None
        self._pid = os.getpid()
        self._ended = False

    def run(self) -> None:
        """Run the target; what it raises passes through, stripped of our frames.

        Raises:
            SystemExit: torch is missing or too old (status 2), or the target's own.
        """
        stacks.offer()
        reason = why_no_torch()
        if reason is not None:
            self._recorder.write("unmeasured", key="torch", reason=reason)
            raise SystemExit(NO_TORCH_STATUS)
        from . import files, overlay

        spec = self._spec
        files.install(spec["run_directory"], spec["launch"], spec["keep_cap_bytes"])
        overlay.install(spec.get("sources", {}))
        torch_version, cuda_version = versions()
        self._recorder.write(
            "launch_started",
            pid=self._pid,
            python_version=platform.python_version(),
            torch_version=torch_version,
            cuda_version=cuda_version,
            allocator_settings=os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF"),
        )
        # not imported for the target: it may set OMP_NUM_THREADS and the like before it imports torch itself
        after_import("torch", self._install)
        self._run_target()

    def _install(self, _: ModuleType) -> None:
        from . import workers
        from .session import Session

        spec = self._spec
        workers.install(os.path.join(spec["run_directory"], "rings"), spec["launch"], self._fds)
        self._session = Session(spec, self._recorder, self._stopper)
        self._session.install()

    def _run_target(self) -> None:
        try:
            target.run(self._spec["target"], self._spec["module"], self._spec["args"])
        except BaseException as error:
            if os.getpid() != self._pid:
                raise
            if self._stopper.stopping:
                self._say_stopped()
                self._stopper.leave()
            with undisturbed():
                self._say_raised(error)
            raise
        if self._stopper.stopping:
            self._say_stopped()
            self._stopper.leave()
        elif os.getpid() == self._pid:
            self._finish("finished", 0, None)

    def _say_raised(self, error: BaseException) -> None:
        if isinstance(error, SystemExit):
            self._finish("exit", target.exit_status(error), None)
            return
        session = self._session
        self._recorder.write(
            "target_failed",
            exception=type(error).__name__,
            message=_message(error),
            traceback=target.text_of(error),
            step=session.steps if session is not None else None,
            past_natural_end=session is not None and session.is_past_natural_end(error),
            worker_exits=_worker_exits(session, error),
        )
        status = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        self._finish("failed", status, f"{type(error).__name__}: {_message(error)}")
        target.hide_our_frames()

    def _finish(self, how: str, status: int, failed: str | None) -> None:
        if self._session is not None:
            self._session.finish(failed)
        elif failed is None:
            self._recorder.write("unmeasured", key="loader", reason="the script does not import torch")
        self._say_ended(how, status)

    def _say_stopped(self) -> None:
        self._say_ended("stopped", 0)

    def _say_ended(self, how: str, status: int) -> None:
        if self._ended:
            return
        self._ended = True
        session = self._session
        self._recorder.write(
            "target_ended",
            how=how,
            status=status,
            steps=session.steps if session is not None else 0,
            epochs=session.epochs if session is not None else None,
        )


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let no further death of a worker raise in here, as torch's handler would wherever the main thread is."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGCHLD"):
        yield
        return
    handler = signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGCHLD, handler)


def _worker_exits(session: Session | None, error: BaseException) -> list[int]:
    """How workers had died; a dead one shows itself as a broken connection, or as torch's RuntimeError."""
    last = session.serving.last if session is not None else None
    if last is None or not isinstance(error, (OSError, EOFError, RuntimeError)):
        return []
    return last.worker_exits(DEATH_S)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def why_no_torch() -> str | None:
    """Why the target cannot be measured here; None where torch is present and new enough."""
    oldest = ".".join(map(str, OLDEST_TORCH))
    if importlib.util.find_spec("torch") is None:
        return f"torch is not installed for {sys.executable}"
    version, _ = versions()
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and tuple(map(int, numbers.groups())) < OLDEST_TORCH:
        return f"torch {version} is installed for {sys.executable}, and pindiag needs {oldest} or newer"
    return None


def versions() -> tuple[str, str | None]:
    """Versions of torch and of the CUDA it was built for, read without importing it."""
    spec = importlib.util.find_spec("torch")
    names: dict[str, Any] = {}
    try:
        path = os.path.join((spec.submodule_search_locations or [""])[0], "version.py") if spec is not None else ""
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), names)
        return str(names["__version__"]), names.get("cuda")
    except Exception:
        return importlib.metadata.version("torch"), None
