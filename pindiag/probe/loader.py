"""A DataLoader: what it says of itself, and the same with other arguments."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, IterableDataset, Subset, dataloader

_CONTEXT = "_DataLoader__multiprocessing_context"

ITERATIONS: dict[type, Callable[[Any], Any]] = {}
"""Classes of loaders that are hooked, and their own `__iter__`."""


def shape_of(loader: Any) -> tuple[Any, ...]:
    """Dataset, its length, sampler and batch size: a training and a validation loader differ in some of them."""
    return (type(loader.dataset), _length(loader.dataset), type(loader.sampler), loader.batch_size, loader.drop_last)


def _length(sized: Any) -> int | None:
    with contextlib.suppress(Exception):
        return len(sized)
    return None


def dataset_samples(loader: Any) -> int | None:
    """Length of the dataset; None where it has none."""
    return _length(loader.dataset)


def batches_per_epoch(loader: Any) -> int | None:
    """Length of the loader, asked without leaving a trace in it; None where it has none."""
    if is_iterable(loader):
        return _iterable_batches(loader)
    return _length(loader)


def _iterable_batches(loader: Any) -> int | None:
    # len(loader) would make torch warn later about datasets that give more than they said
    samples = _length(loader.dataset)
    size: int | None = loader.batch_size
    if samples is None or size is None:
        return samples
    return samples // size if loader.drop_last else -(-samples // size)


def is_iterable(loader: Any) -> bool:
    """Whether the dataset is an IterableDataset."""
    return isinstance(loader.dataset, IterableDataset)


def fetches_batches(loader: Any) -> bool:
    """Whether its dataset gives whole batches, or is never asked for single items; a Subset hands on to its own."""
    dataset = loader.dataset
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    return is_iterable(loader) or loader.batch_sampler is None or getattr(dataset, "__getitems__", None) is not None


def batch_size_of(loader: Any) -> int | None:
    """The loader's batch size, also where it came in a plain batch sampler."""
    size = loader.batch_size
    return size if size is not None else getattr(loader.batch_sampler, "batch_size", None)


def configuration(loader: Any, pin_memory: bool, non_blocking: bool | str | None) -> dict[str, Any]:
    """The record's `Configuration`."""
    workers = int(loader.num_workers)
    return {
        "num_workers": workers,
        "pin_memory": bool(pin_memory),
        "non_blocking": non_blocking,
        "prefetch_factor": loader.prefetch_factor if workers else None,
        "persistent_workers": bool(loader.persistent_workers) and workers > 0,
        "batch_size": batch_size_of(loader),
    }


def clone(loader: Any, changes: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A loader of the same class with changed arguments, and what could not be changed; the user's stays as it is.

    Args:
        loader: the user's.
        changes: arguments of DataLoader to new values.
    """
    twin = object.__new__(type(loader))
    state = twin.__dict__
    state.update(loader.__dict__)
    state["_iterator"] = None
    if is_stateful(loader):
        state.update({"next_iter_state": None, "_initial_iter_for_state_dict": False})
    refused = {}
    for name, value in changes.items():
        if name == "batch_size":
            reason = _change_batch_size(state, value)
            if reason:
                refused[name] = reason
        else:
            state[name] = value
    normalise(state)
    for name, value in changes.items():
        if name != "batch_size" and state[name] != value:
            refused[name] = "it needs num_workers > 0"
    return twin, refused


def feed(twin: Any, stream: Any, seeds: torch.Generator) -> None:
    """Let a clone take its index batches from the stream, if there is one, and its base seeds from elsewhere."""
    state = twin.__dict__
    state["generator"] = seeds
    if stream is not None:
        state["sampler" if state["batch_sampler"] is None else "batch_sampler"] = stream


def _change_batch_size(state: dict[str, Any], size: int) -> str | None:
    """Give a loader's state another batch size; returns the reason where that cannot be done."""
    batches = state["batch_sampler"]
    if batches is None:
        return "the loader does not make batches itself (batch_size=None)"
    if type(batches) is not BatchSampler:
        return f"its batches are made by {type(batches).__name__}, a batch sampler of the script's own"
    state["batch_sampler"] = BatchSampler(batches.sampler, size, batches.drop_last)
    if state["batch_size"] is not None:
        state["batch_size"] = size
    return None


def normalise(state: dict[str, Any]) -> None:
    """Make the arguments that depend on num_workers agree with it, as the constructor demands."""
    if state["num_workers"] == 0:
        state.update({"persistent_workers": False, "prefetch_factor": None, "timeout": 0, _CONTEXT: None})
    elif state["prefetch_factor"] is None:
        state["prefetch_factor"] = 2


def changed_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], changes: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, str]]:
    """A constructor call with changed arguments, and what could not be changed.

    For loaders that iterate in their own way, so that a clone would never be asked.
    """
    bound = signature.bind(None, *args, **kwargs)
    given = bound.arguments
    refused = {}
    for name, value in changes.items():
        if name == "batch_size" and (given.get("batch_sampler") is not None or given.get("batch_size", 1) is None):
            refused[name] = "the script makes its batches itself"
        else:
            given[name] = value
    if given.get("num_workers", 0) == 0:
        for name in ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context"):
            if given.pop(name, None) and name in changes:
                refused[name] = "it needs num_workers > 0"
    return bound.args[1:], bound.kwargs, refused


PROVOKED = {
    "num_workers": ("This DataLoader will create",),
    "pin_memory": ("'pin_memory' argument is set", "pin memory device is set and"),
}
"""How the warnings begin that changes of these arguments alone provoke, in any version of torch."""


class _Warnings:
    """Stands where torch's loader finds the module `warnings`.

    Filters of that module would be heard of elsewhere: changing them makes Python repeat what it had shown once.
    """

    def __init__(self, silenced: tuple[str, ...]) -> None:
        self._silenced = silenced

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    def warn(self, message: Any, *args: Any, stacklevel: int = 1, **kwargs: Any) -> None:
        """Say it, unless it is to be silent."""
        if not str(message).startswith(self._silenced):
            warn: Any = warnings.warn
            warn(message, *args, stacklevel=stacklevel + 1, **kwargs)


@contextlib.contextmanager
def quiet(changes: Iterable[str]) -> Iterator[None]:
    """Silence the warnings of torch's loader that only a change of these arguments provokes."""
    with silenced(tuple(beginning for name in changes for beginning in PROVOKED.get(name, ()))):
        yield


@contextlib.contextmanager
def silenced(beginnings: tuple[str, ...] = ("",)) -> Iterator[None]:
    """Silence warnings of torch's loader that begin so; all of them for iterators that the script did not ask for."""
    module: Any = dataloader
    module.warnings = _Warnings(beginnings)
    try:
        yield
    finally:
        module.warnings = warnings


def iterate(loader: Any) -> Any:
    """The iterator that a loader gives without the probe."""
    return ITERATIONS[_hooked(type(loader))](loader)


def _hooked(kind: type) -> type:
    return next(base for base in kind.__mro__ if base in ITERATIONS)


def has_own_iteration(kind: type) -> bool:
    """Whether a class of loaders overrides `__iter__`, so that a clone may never be asked."""
    return getattr(kind, "__iter__", None) is not _hooked(kind).__iter__  # type: ignore[attr-defined]


def is_stateful(loader: Any) -> bool:
    """Whether a loader saves its place by asking its own iterator for it, as torchdata's does."""
    return callable(getattr(loader, "state_dict", None))
