"""The transfer hooks on the pretended device of the integration tests' targets."""

from __future__ import annotations

import contextlib

import torch

from pindiag.probe.transfers import Transfers
from tests.targets.pretended_device import DEVICE, Elsewhere, Moves

__all__ = ["DEVICE", "Elsewhere", "hooks", "installed"]

HOOKED = [(torch.Tensor, name) for name in ("to", "cuda", "item", "cpu", "tolist", "numpy", "pin_memory")]
HOOKED += [(torch.Tensor, name) for name in ("__bool__", "__float__", "__int__", "__index__", "copy_")]
HOOKED += [(torch.Tensor, name) for name in ("__complex__", "is_nonzero", "equal", "allclose", "nonzero", "argwhere")]
HOOKED += [(torch.Tensor, name) for name in ("masked_select", "unique", "unique_consecutive")]
HOOKED += [(owner, "synchronize") for owner in (torch.cuda, torch.accelerator, torch.cuda.Stream, torch.cuda.Event)]
HOOKED += [(torch.cuda.Event, "elapsed_time")]


@contextlib.contextmanager
def installed(force=None):
    """The hooks; all is as before afterwards."""
    before = [(owner, name, vars(owner).get(name)) for owner, name in HOOKED]
    transfers = Transfers(force)
    transfers.install()
    try:
        yield transfers
    finally:
        for owner, name, value in before:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextlib.contextmanager
def hooks(force=None):
    """The hooks, and a device to move to."""
    with installed(force) as transfers, Moves():
        yield transfers
