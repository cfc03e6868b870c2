"""What a batch consists of: tensors, bytes, samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

OBJECT_DEPTH = 2


class BatchFacts(NamedTuple):
    """Size of a batch as the target receives it."""

    samples: int
    bytes: int
    tensors: int


def tensors_of(batch: Any, depth: int = 8) -> Iterator[torch.Tensor]:
    """All tensors inside nested containers, dataclasses and objects with attributes."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping | list | tuple) and depth > 0:
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from tensors_of(part, depth - 1)
    elif depth > 0:
        for part in attributes_of(batch):
            # an object may refer to half the program; its own containers are far enough
            yield from tensors_of(part, min(depth - 1, OBJECT_DEPTH))


def attributes_of(batch: Any) -> list[Any]:
    """What an object that is no container holds."""
    if dataclasses.is_dataclass(batch):
        return [getattr(batch, field.name, None) for field in dataclasses.fields(batch)]
    return list(getattr(batch, "__dict__", {}).values())


def leading_dimension(batch: Any) -> int | None:
    """Length of the first tensor that has a dimension; None where there is none."""
    return next((int(tensor.shape[0]) for tensor in tensors_of(batch) if tensor.dim() > 0), None)


def describe(batch: Any, samples: int) -> BatchFacts:
    """Bytes and number of the batch's tensors beside its samples."""
    tensors = list(tensors_of(batch))
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return BatchFacts(samples=samples, bytes=size, tensors=len(tensors))
