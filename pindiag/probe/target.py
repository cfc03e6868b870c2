"""Runs the target as `python train.py` or `python -m module` would."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any

from . import overlay

PROBE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def run(target: str, module: bool, args: list[str]) -> None:
    """Run it in a fresh `__main__`; whatever it raises comes out without our frames in its traceback."""
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.modules["__mp_main__"] = main  # where multiprocessing looks for what spawned workers send
    words = ["-m", target] if module else [target]
    sys.argv = [words[0], *args]
    sys.orig_argv = [sys.executable, *words, *args]
    try:
        if module:
            _run_module(target)
        else:
            _run_script(target, main)
    except BaseException as error:
        strip(error)
        raise


def _insert_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _run_script(path: str, main: ModuleType) -> None:
    _insert_path(os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)
    main.__dict__.update(
        __file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path), __annotations__={}
    )
    exec(compile(_source(path), path, "exec", dont_inherit=True), main.__dict__)


def _source(path: str) -> str | bytes:
    text = overlay.text_of(path)
    if text is not None:
        return text
    with open(path, "rb") as file:
        return file.read()


def _run_module(name: str) -> None:
    import runpy

    _insert_path(os.getcwd())
    # what `python -m` itself calls: the traceback shows the same frames
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def strip(error: BaseException) -> None:
    """Take the probe's frames out of the tracebacks of an exception and of those that it is chained to."""
    for one in chain(error):
        one.__traceback__ = _without_ours(one.__traceback__)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that it came from or is made of."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _without_ours(entry: TracebackType | None) -> TracebackType | None:
    kept = []
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(PROBE_FOLDER):
            kept.append(entry)
        entry = entry.tb_next
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None


def text_of(error: BaseException) -> str:
    """The traceback as Python would print it."""
    strip(error)
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def exit_status(ending: SystemExit) -> int:
    """The status that a SystemExit gives the process."""
    if ending.code is None:
        return 0
    return ending.code if isinstance(ending.code, int) else 1


def hide_our_frames() -> None:
    """Let the exception that is about to leave the program reach the target's `sys.excepthook` without our frames.

    On its way out of the probe it passes frames of ours again; the hook that takes them off is gone before the
    target's own one runs.
    """
    own: Callable[..., Any] = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        sys.excepthook = own
        strip(error)
        sys.last_traceback = error.__traceback__
        own(kind, error, error.__traceback__)

    sys.excepthook = excepthook
