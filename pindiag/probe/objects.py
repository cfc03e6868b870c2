"""Large containers of Python objects in a dataset, and where the target's own functions stand."""

from __future__ import annotations

import functools
from collections import deque
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

from .callsite import is_user_code
from .dataset_state import parts_of

LARGE = 10_000
"""Items of a container: fewer are a few hundred kilobytes, whatever they are."""

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)


class Objects(NamedTuple):
    """One of them."""

    place: str
    """Where it is found: "dataset.records"."""
    kind: str
    items: int
    of: str
    """What its first item is."""


def objects_of(**roots: Any) -> list[Objects]:
    """Large containers that are reachable from objects, a bounded look that calls no code of the target's.

    Args:
        roots: the objects by what they are to be called.
    """
    found: dict[int, Objects] = {}
    for name, root in roots.items():
        for path, part in parts_of(root):
            base: Any = next((each for each in _CONTAINERS if isinstance(part, each)), None)
            if base is not None and base.__len__(part) >= LARGE:
                found.setdefault(id(part), Objects(name + path, base.__name__, base.__len__(part), _first(base, part)))
    return list(found.values())


def _first(base: Any, part: Any) -> str:
    held = base.values(part) if base is dict else base.__iter__(part)
    return next((type(item).__name__ for item in islice(held, 1)), "nothing")


def place_of(function: Any) -> str | None:
    """file:line of a function, method, partial or callable object; None where it is not the target's own."""
    while isinstance(function, functools.partial):
        function = function.func
    code = _code(function) or _code(type(function).__call__)
    if code is None or not is_user_code(code):
        return None
    return f"{code.co_filename}:{code.co_firstlineno}"


def _code(function: Any) -> CodeType | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None
