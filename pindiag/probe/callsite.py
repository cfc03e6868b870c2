"""Which line of the user's did it: the innermost frame outside torch, other libraries and the probe."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from types import CodeType, FrameType
from typing import NamedTuple

import torch

PROBE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    folders |= {os.path.realpath(folder) for folder in folders}
    return (*(folder + os.sep for folder in folders), _TORCH_FOLDER, PROBE_FOLDER, "<")


_LIBRARIES = _library_folders()
_is_user: dict[str, bool] = {}


def is_user_code(code: CodeType) -> bool:
    """Whether code belongs to the target and not to a library."""
    file = code.co_filename
    known = _is_user.get(file)
    if known is None:
        known = _is_user[file] = not file.startswith(_LIBRARIES)
    return known


class Place(NamedTuple):
    """Where one of the target's own calls stands."""

    file: str
    """Absolute path."""
    first_line: int
    """Of the function; with the file, it tells which one."""
    line: int

    @property
    def code(self) -> tuple[str, int]:
        """Which function it is."""
        return self.file, self.first_line


def user_stack(depth: int = 2) -> tuple[Place, ...]:
    """The target's own calls from `depth` frames up, the outermost first."""
    found = []
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if is_user_code(frame.f_code):
            code = frame.f_code
            found.append(Place(os.path.abspath(code.co_filename), code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(found))


def user_location(depth: int = 2) -> str:
    """file:line (absolute path) of the user's innermost frame, `depth` frames up or more.

    Where all frames are libraries' (a module run by -m from site-packages), the innermost outside torch.
    """
    first: FrameType | None = sys._getframe(depth)
    frame = first
    while frame is not None:
        if is_user_code(frame.f_code):
            return _place(frame)
        frame = frame.f_back
    return _outside_torch(first)


def _outside_torch(frame: FrameType | None) -> str:
    while frame is not None:
        if not frame.f_code.co_filename.startswith((_TORCH_FOLDER, PROBE_FOLDER, "<")):
            return _place(frame)
        frame = frame.f_back
    return "unknown:0"


def _place(frame: FrameType) -> str:
    return f"{os.path.abspath(frame.f_code.co_filename)}:{frame.f_lineno}"
