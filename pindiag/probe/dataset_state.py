"""Whether a dataset is still what it was: a bounded look at what it holds, which calls no code of the target's."""

from __future__ import annotations

import random
import sys
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from functools import _lru_cache_wrapper
from itertools import islice
from types import FunctionType, GeneratorType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from .callsite import is_user_code

LEVELS = 5
"""How deep attributes and containers are followed."""

ITEMS = 24
"""How many items of a container are looked at, from its beginning; of lists and tuples as many from the end."""

PARTS = 2000
"""How many things are looked at in all: a few milliseconds."""

_BYTES = 1 << 20
_OPEN = ("argparse", "collections", "functools", "types")
"""Modules of the standard library whose objects hold what they are given. Others keep notes of their own: a path
remembers its text once it was opened."""
_CLOSED = ("pandas",)
"""Libraries whose objects do so too: a data frame remembers the columns that were read."""
_LONGEST_SHOWN = 40
_PLAIN = (bool, int, float, complex, type(None))
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple)
_SETS = (set, frozenset)


class Mark(NamedTuple):
    """What a part was: equal marks mean that no change was seen."""

    token: Hashable
    shown: str


State = dict[str, Mark]
"""Where a part is found, to what it was."""

_Child = tuple[str, Any]


def read(dataset: Any) -> State:
    """What a dataset holds now: attributes and containers to some levels, and what its methods keep elsewhere.

    Containers tell by their sizes and some of their items, tensors by their version counters, small arrays and random
    number generators by their contents, caches of functools by their entries, all else by its identity.
    """
    found: State = {}
    for path, part in parts_of(dataset):
        found.setdefault(path, _mark(part))
    return found


def parts_of(whole: Any) -> Iterator[tuple[str, Any]]:
    """What it consists of and where each part is found, itself first, as far as a bounded look goes."""
    given = 0
    seen: set[int] = set()
    level: list[_Child] = [("", whole)]
    for _ in range(LEVELS):
        following: list[_Child] = []
        for path, part in level:
            if given >= PARTS:
                return
            yield path, part
            given += 1
            if id(part) not in seen:
                seen.add(id(part))
                following += islice(_children(path, part), PARTS - given)
        level = following


def first_difference(before: State, after: State) -> str | None:
    """The first change in words, e.g. "cache: 0 entries before, 640 after"; None where there is none."""
    missing = Mark(None, "nothing")
    for path in {**before, **after}:
        was, now = before.get(path, missing), after.get(path, missing)
        if was.token != now.token:
            name = path.removeprefix(".") or "the dataset"
            if was.shown == now.shown:
                return f"{name}: {was.shown}, not the same before and after"
            return f"{name}: {was.shown} before, {now.shown} after"
    return None


# ---------------------------------------------------------------------------------------------------------- one part


def _mark(part: Any) -> Mark:
    kind = type(part)
    if kind in _PLAIN:
        return Mark((kind, repr(part)), repr(part))
    if kind in (str, bytes):
        return _mark_text(part)
    if issubclass(kind, (*_MAPPINGS, *_SEQUENCES, *_SETS, deque, bytearray)):
        return _mark_container(part)
    if kind in _TENSORS:
        return _mark_tensor(part)
    state = _inner_state(part)
    if state is not None:
        return Mark((id(part), state), f"a {kind.__name__}")
    return Mark(id(part), f"a {kind.__name__}")


def _mark_text(part: str | bytes) -> Mark:
    if len(part) <= _LONGEST_SHOWN:
        return Mark(part, repr(part))
    return Mark((id(part), len(part)), f"a text of {len(part)} characters")


def _mark_container(part: Any) -> Mark:
    # the base class's own method: a subclass may have written another
    base = next(base for base in (*_MAPPINGS, *_SEQUENCES, *_SETS, deque, bytearray) if isinstance(part, base))
    size = base.__len__(part)
    return Mark((id(part), size), f"{size} {'entry' if size == 1 else 'entries'}")


def _mark_tensor(part: torch.Tensor) -> Mark:
    version = -1 if part.is_inference() else part._version
    return Mark((id(part), version, part.shape), f"a tensor of shape {tuple(part.shape)}")


def _inner_state(part: Any) -> Hashable | None:
    """What known kinds of objects hold beside attributes; None for others."""
    kind = type(part)
    if kind is _lru_cache_wrapper:
        counts = part.cache_info()
        return (counts.currsize, counts.misses)
    if kind is random.Random:
        return hash(part.getstate())
    if kind is torch.Generator:
        return zlib.crc32(bytes(part.get_state().tolist()))
    if kind is GeneratorType:
        return part.gi_frame.f_lasti if part.gi_frame is not None else -1
    return _numpy_state(part)


def _numpy_state(part: Any) -> Hashable | None:
    numpy = sys.modules.get("numpy")
    kind = type(part)
    if numpy is None or kind.__module__.partition(".")[0] != "numpy":
        return None
    if kind is numpy.ndarray:
        whole = not part.dtype.hasobject and part.nbytes <= _BYTES and part.flags.c_contiguous
        return (part.shape, zlib.crc32(part.reshape(-1).view(numpy.uint8)) if whole and part.size else None)
    if kind is numpy.random.Generator:
        return repr(part.bit_generator.state)
    if kind is numpy.random.RandomState:
        return zlib.crc32(repr(part.get_state()).encode())
    return None


# ------------------------------------------------------------------------------------------------------------- inside


def _children(path: str, part: Any) -> Iterator[_Child]:
    kind = type(part)
    if kind in (*_PLAIN, str, bytes) or kind in _TENSORS or isinstance(part, ModuleType):
        return
    if isinstance(part, dict):
        yield from _some(path, islice(dict.items(part), ITEMS))
    elif isinstance(part, (*_SEQUENCES, deque)):
        yield from _some(path, _ends(part))
    elif isinstance(part, MethodType):
        yield f"{path}.__self__", part.__self__
        yield from _children(path, part.__func__)
    elif isinstance(part, FunctionType):
        yield from _kept_by(path, part)
        return
    if isinstance(part, type) or _keeps_notes(kind):
        return
    yield from _attributes(path, part)
    yield from _methods(path, kind)


def _keeps_notes(kind: type) -> bool:
    top = kind.__module__.partition(".")[0]
    return top in _CLOSED or (top in sys.stdlib_module_names and top not in _OPEN)


def _some(path: str, items: Iterable[tuple[Any, Any]]) -> Iterator[_Child]:
    try:
        for key, value in items:
            yield f"{path}[{repr(key) if type(key) in (int, str) else type(key).__name__}]", value
    except RuntimeError:
        return  # another thread changes it just now; its size tells enough


def _ends(part: Any) -> Iterator[tuple[int, Any]]:
    base: Any = next(base for base in (*_SEQUENCES, deque) if isinstance(part, base))
    size = base.__len__(part)
    places = range(size) if size <= 2 * ITEMS else (*range(ITEMS), *range(size - ITEMS, size))
    for place in places:
        yield place, base.__getitem__(part, place)


def _attributes(path: str, part: Any) -> Iterator[_Child]:
    kind = type(part)
    held = next((vars(base)["__dict__"] for base in kind.__mro__ if "__dict__" in vars(base)), None)
    if isinstance(held, GetSetDescriptorType):  # a property of that name would be the target's code
        for name, value in list(held.__get__(part, kind).items()):
            yield f"{path}.{name}", value
    for base in kind.__mro__:
        for name, slot in list(vars(base).items()):
            if isinstance(slot, MemberDescriptorType) and base.__module__ != "builtins":
                try:
                    yield f"{path}.{name}", slot.__get__(part, kind)
                except AttributeError:
                    continue


def _methods(path: str, kind: type) -> Iterator[_Child]:
    """What the target's class and its methods keep: class attributes, caches, mutable defaults, globals."""
    for base in kind.__mro__:
        if not any(_is_own(value) for value in vars(base).values()):
            continue
        for name, value in list(vars(base).items()):
            is_function = isinstance(value, FunctionType | _lru_cache_wrapper)
            is_special = name.startswith("__") and name.endswith("__")
            if is_function or not (is_special or hasattr(type(value), "__get__")):
                yield f"{path}.{name}", value


def _is_own(value: Any) -> bool:
    function = value.__wrapped__ if isinstance(value, _lru_cache_wrapper) else value
    return isinstance(function, FunctionType) and is_user_code(function.__code__)


def _by_keyword(function: FunctionType) -> Iterable[tuple[str, Any]]:
    return (function.__kwdefaults__ or {}).items()


def _kept_by(path: str, function: FunctionType) -> Iterator[_Child]:
    code = function.__code__
    if not is_user_code(code):
        return
    names = code.co_varnames[: code.co_argcount][::-1]
    for name, value in (*zip(names, (function.__defaults__ or ())[::-1], strict=False), *_by_keyword(function)):
        yield f"{path}({name})", value
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{path} {name}", cell.cell_contents
        except ValueError:
            continue
    for name in code.co_names:
        value = function.__globals__.get(name)
        if value is not None and not isinstance(value, ModuleType | type):
            yield f"{path} {name}", value
