"""A batch's containers, to be put together again around other tensors."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

import torch

from .batch import OBJECT_DEPTH

_DEPTH = 8

Path = tuple[Any, ...]
Build = Callable[[Sequence[torch.Tensor]], Any]
Plan = tuple[Build | None, Any]
"""How to make a part anew, None where it is shared, and the part."""


class Template:
    """How a batch is made of its tensors.

    It is walked as `batch.tensors_of` does. Lists, dicts and tuples are made anew each time; containers and objects of
    other kinds are copied (`copy.copy`) where they hold a tensor. All else is shared.

    Attributes:
        tensors: the batch's own, each once.
        paths: where each was met first: keys, positions and attribute names from the outside in.
    """

    def __init__(self, batch: Any) -> None:
        self.tensors: list[torch.Tensor] = []
        self.paths: list[Path] = []
        self._places: dict[int, int] = {}
        self._met = 0
        self._whole = self._plan(batch, (), _DEPTH)

    def build(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The batch in fresh containers, with these in place of `tensors`."""
        return _made([self._whole], tensors)[0]

    def _plan(self, part: Any, path: Path, depth: int) -> Plan:
        return self._build(part, path, depth), part

    def _build(self, part: Any, path: Path, depth: int) -> Build | None:
        if isinstance(part, torch.Tensor):
            return self._tensor(part, path)
        if depth == 0 or isinstance(part, type):
            return None
        if isinstance(part, Mapping):
            return self._mapping(part, path, depth)
        if isinstance(part, list | tuple):
            return self._sequence(part, path, depth)
        return self._object(part, path, min(depth - 1, OBJECT_DEPTH))

    def _tensor(self, tensor: torch.Tensor, path: Path) -> Build:
        self._met += 1
        place = self._places.setdefault(id(tensor), len(self.tensors))
        if place == len(self.tensors):
            self.tensors.append(tensor)
            self.paths.append(path)
        return lambda tensors: tensors[place]

    def _sequence(self, part: list[Any] | tuple[Any, ...], path: Path, depth: int) -> Build | None:
        before = self._met
        plans = [self._plan(value, (*path, place), depth - 1) for place, value in enumerate(part)]
        kind: Any = type(part)
        if kind is list:
            return lambda tensors: _made(plans, tensors)
        if kind is not tuple and self._met == before:
            return None
        if isinstance(part, tuple):
            # past the constructors of named tuples and the like, whose arguments are their own affair
            return lambda tensors: tuple.__new__(kind, _made(plans, tensors))
        return lambda tensors: _filled(part, enumerate(plans), tensors)

    def _mapping(self, part: Mapping[Any, Any], path: Path, depth: int) -> Build | None:
        before = self._met
        names = list(part)
        plans = [self._plan(part[name], (*path, name), depth - 1) for name in names]
        kind: Any = type(part)
        if kind is dict:
            return lambda tensors: dict(zip(names, _made(plans, tensors), strict=True))
        if self._met == before:
            return None
        if isinstance(part, MutableMapping):
            return lambda tensors: _filled(part, zip(names, plans, strict=True), tensors)
        return lambda tensors: kind(dict(zip(names, _made(plans, tensors), strict=True)))

    def _object(self, part: Any, path: Path, depth: int) -> Build | None:
        before = self._met
        plans = [(name, self._build(value, (*path, name), depth)) for name, value in _attributes(part)]
        if self._met == before:
            return None
        anew = [(name, build) for name, build in plans if build is not None]

        def build(tensors: Sequence[torch.Tensor]) -> Any:
            fresh = copy.copy(part)
            for name, build_part in anew:
                # past frozen dataclasses' refusal, and setters that would look at what is not there yet
                object.__setattr__(fresh, name, build_part(tensors))
            return fresh

        return build


def _made(plans: Iterable[Plan], tensors: Sequence[torch.Tensor]) -> list[Any]:
    return [part if build is None else build(tensors) for build, part in plans]


def _filled(part: Any, plans: Iterable[tuple[Any, Plan]], tensors: Sequence[torch.Tensor]) -> Any:
    fresh = copy.copy(part)
    for place, (build, _) in plans:
        if build is not None:
            fresh[place] = build(tensors)
    return fresh


def _attributes(part: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(part):
        names = [field.name for field in dataclasses.fields(part)]
        return [(name, getattr(part, name)) for name in names if hasattr(part, name)]
    return list(getattr(part, "__dict__", {}).items())
