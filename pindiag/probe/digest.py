"""Digests of batches: whether two of them are equal, bit for bit."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from .batch import OBJECT_DEPTH, attributes_of

MOST_BYTES = 1 << 26
"""How much of a tensor or array is looked at, from its beginning: 64 MiB take less than a tenth of a second."""

SAMPLED_BYTES = 1 << 12
SAMPLES = 8
"""Pieces of memory by which a rewritten buffer is known again, without reading all of it in a training step."""

_DEPTH = 8
_PLAIN = (bool, int, float, complex, str, bytes, type(None))

# Bound before the transfer hooks are in place: what is moved here is no transfer of the script's.
_to = torch.Tensor.to


class Digest(NamedTuple):
    """What a batch holds."""

    layout: str
    """Of the types and shapes of its tensors and arrays, and where they lie in it."""
    content: str
    """Of its numbers and texts."""
    bytes: int
    """How much of it was looked at."""


def digest_of(batch: Any) -> Digest:
    """Read a batch: tensors, NumPy arrays, numbers and texts, in containers and objects to some levels.

    Raises:
        RuntimeError, NotImplementedError: a tensor of it has no memory that can be read.
    """
    layout, content = hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8)
    size = 0
    for leaf in _leaves(batch, _DEPTH):
        if isinstance(leaf, torch.Tensor):
            layout.update(f"{leaf.dtype}{tuple(leaf.shape)};".encode())
            size += _update(content, leaf)
        elif type(leaf) in _PLAIN:
            content.update(f"{leaf!r};".encode())
        else:
            layout.update(f"{leaf.dtype}{leaf.shape};".encode())
            numbers = leaf.tobytes()[:MOST_BYTES]
            content.update(numbers)
            size += len(numbers)
    return Digest(layout.hexdigest(), content.hexdigest(), size)


def _leaves(part: Any, depth: int) -> Iterator[Any]:
    if isinstance(part, torch.Tensor) or type(part) in _PLAIN or _is_array(part):
        yield part
    elif isinstance(part, Mapping | list | tuple) and depth > 0:
        for value in part.values() if isinstance(part, Mapping) else part:
            yield from _leaves(value, depth - 1)
    elif depth > 0 and not isinstance(part, type):
        for value in attributes_of(part):
            yield from _leaves(value, min(depth - 1, OBJECT_DEPTH))


def _is_array(part: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(part, numpy.ndarray | numpy.generic) and not part.dtype.hasobject


def _update(content: Any, tensor: torch.Tensor) -> int:
    with torch.no_grad():
        dense = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
        host = _to(dense, "cpu").resolve_conj().resolve_neg().contiguous()
    size = min(host.nbytes, MOST_BYTES)
    if size:
        content.update(_memory(host.data_ptr(), size))
    return size


def _memory(address: int, size: int) -> ctypes.Array[ctypes.c_char]:
    return (ctypes.c_char * size).from_address(address)


def sample_of(tensor: torch.Tensor) -> str:
    """Digest of some pieces of a host tensor's memory: what is written there anew hardly ever leaves all of them."""
    pieces = hashlib.blake2b(digest_size=8)
    ends = tensor.storage_offset() * tensor.element_size() + tensor.nbytes
    if tensor.is_contiguous() and 0 < ends <= tensor.untyped_storage().nbytes():  # the script may have let go of it
        step = max(tensor.nbytes // SAMPLES, SAMPLED_BYTES)
        for start in range(0, tensor.nbytes, step):
            pieces.update(_memory(tensor.data_ptr() + start, min(SAMPLED_BYTES, tensor.nbytes - start)))
    return pieces.hexdigest()
