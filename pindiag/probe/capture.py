"""Which memory of the host goes to a device."""

from __future__ import annotations

import torch

from .asked import has_no_memory


class Capture:
    """Which host memory went to which device, while it is on.

    Attributes:
        devices: address of a storage (views of one tensor share it) to the device it was copied to.
        on_host: addresses of what was asked for something that only host memory can give.
    """

    def __init__(self) -> None:
        self.devices: dict[int, torch.device] = {}
        self.on_host: set[int] = set()

    def note(self, source: torch.Tensor, moved: torch.Tensor, *_: object) -> None:
        """A host tensor was copied to a device, in whatever way."""
        place = storage_of(source)
        if place is not None and not has_no_memory(moved):
            self.devices.setdefault(place, moved.device)

    def waiting(self) -> None:
        """The script is about to wait for the device."""

    def keep(self, tensor: torch.Tensor) -> None:
        """A tensor is needed on the host."""
        place = storage_of(tensor)
        if place is not None:
            self.on_host.add(place)


def storage_of(tensor: torch.Tensor) -> int | None:
    """Address of a tensor's memory; None for what has none of its own kind (sparse, or wrapped by a subclass)."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (NotImplementedError, RuntimeError):
        return None
