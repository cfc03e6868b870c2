"""What a call that moves a tensor asks for."""

from __future__ import annotations

from typing import Any

import torch

NO_ACCELERATOR = ("cpu", "meta")


def asked_type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Type of the device that the arguments of Tensor.to ask for; None where they name none."""
    asked = kwargs.get("device", kwargs.get("other", args[0] if args else None))
    if isinstance(asked, str):
        return asked.partition(":")[0]
    if isinstance(asked, torch.device):
        return asked.type
    if isinstance(asked, torch.Tensor):
        return asked.device.type
    return "accelerator" if isinstance(asked, int) and not isinstance(asked, bool) else None


def names_accelerator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of Tensor.to ask for an accelerator."""
    asked = asked_type(args, kwargs)
    return asked is not None and asked not in NO_ACCELERATOR


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is but a description, so that moving to it copies nothing."""
    return tensor.is_meta and "meta" in NO_ACCELERATOR


def waits_for_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Tensor.to of a device's tensor comes back with the numbers on the host."""
    return asked_type(args, kwargs) == "cpu" and not says_non_blocking(args, kwargs)


def says_non_blocking(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """The call's `non_blocking`: in all its forms it is the first boolean among the positional arguments."""
    if "non_blocking" in kwargs:
        return bool(kwargs["non_blocking"])
    for argument in args:
        if argument is True or argument is False:
            return argument
    return False


def with_non_blocking(
    args: tuple[Any, ...], kwargs: dict[str, Any], value: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with `non_blocking` as wanted."""
    for position, argument in enumerate(args):
        if isinstance(argument, bool):
            return (*args[:position], value, *args[position + 1 :]), kwargs
    return args, {**kwargs, "non_blocking": value}


def copies_non_blocking(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """The `non_blocking` of Tensor.copy_."""
    return bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))
