"""A device that is none: its tensors say that they are elsewhere and keep their numbers on the host.

Torch's dispatcher does the rest, so that what the hooks see (`is_cpu`, `device`, results that are other objects or the
same) is decided by torch. "lazy" is a device type that every build knows.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "lazy:0"


class Elsewhere(torch.Tensor):
    reads = 0
    """Times that numbers came back to the host."""

    @staticmethod
    def __new__(cls, host):
        return torch.Tensor._make_wrapper_subclass(
            cls, host.shape, strides=host.stride(), dtype=host.dtype, device=DEVICE
        )

    def __init__(self, host):
        self.host = host

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        device = kwargs.pop("device", None)
        result = func(*(arg.host if isinstance(arg, cls) else arg for arg in args), **kwargs)
        stays = device is None or torch.device(device).type != "cpu"
        if isinstance(result, torch.Tensor) and stays:
            return cls(result)
        cls.reads += 1
        return result


class Moves(TorchDispatchMode):
    """Lets `tensor.to(DEVICE)` work."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if func is torch.ops.aten._to_copy.default and device is not None and torch.device(device).type == "lazy":
            host = args[0].host if isinstance(args[0], Elsewhere) else args[0]
            return Elsewhere(func(host, dtype=kwargs.get("dtype")))
        return func(*args, **kwargs)
