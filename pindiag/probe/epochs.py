"""How the script's own loader begins an epoch, and what the script told its samplers about it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

_NOTED = "_pindiag_noted"

_told: dict[int, tuple[weakref.ref[Any], Any]] = {}


class Epochs:
    """Begins epochs of a sampler as torch's own iterators over the script's loader would.

    What these draw from the script's random numbers is drawn, so that the sampler's seeds come out as without us.

    Args:
        sampler: gives the index batches (the loader's own, or one for another batch size).
        loader: the script's.
        begun: whether an iterator of torch's has begun an epoch already.

    Attributes:
        seeds: what iterators of ours draw their base seed from, in place of the script's generator. After `begin` it
            gives the seed that the script's own iterator would have had.
    """

    def __init__(self, sampler: Any, loader: Any, *, begun: bool = False) -> None:
        self.seeds = torch.Generator()
        self.seeds.manual_seed(torch.initial_seed())
        self._sampler = sampler
        self._generator: torch.Generator | None = loader.generator
        self._workers = loader.num_workers > 0
        self._persistent = loader.persistent_workers
        self._samplers = _samplers(loader)
        self._begun = begun
        self._note()

    def __len__(self) -> int:
        return len(self._sampler)

    def begin(self) -> Iterator[Any]:
        """The next epoch's index batches."""
        indices: Iterator[Any] = iter(self._sampler)
        if not (self._persistent and self._begun):
            self._draw_base_seed()
            if self._workers:
                indices = iter(self._sampler)  # torch does so too: once to make its iterator, once to start it
        self._begun = True
        self._note()
        return indices

    def advance(self) -> None:
        """Tell samplers of the next epoch where the script, in a loop that never ends its epoch, cannot.

        One that was told since this epoch began (by a script that ends its epochs by count) is left alone.
        """
        for sampler, under in zip(self._samplers, self._under, strict=True):
            if type(under) is int and told_epoch(sampler) == under:
                sampler.set_epoch(under + 1)

    def _note(self) -> None:
        self._under = [told_epoch(sampler) for sampler in self._samplers]

    def _draw_base_seed(self) -> None:
        generator = self._generator
        self.seeds.set_state(torch.get_rng_state() if generator is None else generator.get_state())
        torch.empty((), dtype=torch.int64).random_(generator=generator)


def note_set_epoch(loader: Any) -> None:
    """Remember from now on what the script tells the samplers of a loader by `set_epoch`."""
    for sampler in _samplers(loader):
        kind: Any = next((kind for kind in type(sampler).__mro__ if "set_epoch" in vars(kind)), None)
        original = vars(kind)["set_epoch"] if kind is not None else None
        if isinstance(original, FunctionType) and not hasattr(original, _NOTED):
            kind.set_epoch = _noting(original)


def _noting(original: FunctionType) -> Any:
    @functools.wraps(original)
    def set_epoch(self: Any, *args: Any, **kwargs: Any) -> Any:
        told = [*args, *kwargs.values()]
        if told and hasattr(type(self), "__weakref__"):
            _told[id(self)] = (weakref.ref(self), told[0])
        return original(self, *args, **kwargs)

    setattr(set_epoch, _NOTED, True)
    return set_epoch


def told_epoch(sampler: Any) -> Any:
    """What a sampler was last told by `set_epoch`; None where it never was."""
    reference, epoch = _told.get(id(sampler), (None, None))
    return epoch if reference is not None and reference() is sampler else None


def _samplers(loader: Any) -> list[Any]:
    found = [loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None), loader.sampler]
    return list({id(sampler): sampler for sampler in found if hasattr(type(sampler), "set_epoch")}.values())
