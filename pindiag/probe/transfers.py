"""Hooks on host-to-device copies and on calls that wait for the device.

Not seen are the waits inside operations whose result's size depends on the data (`nonzero`, `tensor[mask]`), and of
those that give a Python value by themselves (`torch.equal`).
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

from .callsite import is_user_code, user_location
from .lazy import LazySync

_now = time.monotonic_ns
_SYNCHRONISING_METHODS = ("item", "cpu", "tolist", "__bool__", "__int__", "__index__")
_HOST_ONLY_METHODS = ("numpy", "pin_memory")
_TO_HOST = "to(cpu)"
_MOVES_TO_HOST = (_TO_HOST, "cpu")
_WAITS: tuple[tuple[Any, str], ...] = (
    (torch.cuda, "torch.cuda.synchronize"),
    (torch.accelerator, "torch.accelerator.synchronize"),
    (torch.cuda.Stream, "Stream.synchronize"),
    (torch.cuda.Event, "Event.synchronize"),
)
_NO_ACCELERATOR = ("cpu", "meta")


class Tally:
    """What the hooks saw while it was the current one. Lists keep a step's cost low: see the names of the slots."""

    def __init__(self) -> None:
        self.transfers: dict[str, list[int]] = {}
        """Location to calls, bytes, ns, pinned calls, non-blocking calls."""
        self.syncs: dict[tuple[str, str], list[int]] = {}
        """Location and kind to calls, ns, calls answered without waiting."""
        self.transfer_ns = 0
        self.sync_ns = 0
        self.own_ns = 0

    @property
    def hooked_ns(self) -> int:
        """Time in all hooked calls: what the stages around them must not count again."""
        return self.transfer_ns + self.sync_ns

    def transfer_sites(self) -> list[dict[str, Any]]:
        """Records of the host-to-device calls."""
        return [
            {
                "location": location,
                "calls": calls,
                "bytes": size,
                "ms": ns / 1e6,
                "pinned_calls": pinned,
                "non_blocking_calls": non_blocking,
            }
            for location, (calls, size, ns, pinned, non_blocking) in self.transfers.items()
        ]

    def sync_sites(self) -> list[dict[str, Any]]:
        """Records of the calls that waited."""
        return [
            {"location": location, "kind": kind, "calls": calls, "ms": ns / 1e6, "lazy_calls": lazy_calls}
            for (location, kind), (calls, ns, lazy_calls) in self.syncs.items()
        ]

    def non_blocking(self) -> bool | str | None:
        """What the script's transfers say: true, false, "mixed", or None where there are none."""
        calls = sum(site[0] for site in self.transfers.values())
        non_blocking = sum(site[4] for site in self.transfers.values())
        if calls == 0:
            return None
        return "mixed" if 0 < non_blocking < calls else non_blocking == calls


class Capture:
    """Which host memory went to which device, while it is on.

    Attributes:
        devices: address of a storage (views of one tensor share it) to the device it was copied to.
        on_host: addresses of what was asked for something that only host memory can give.
    """

    def __init__(self) -> None:
        self.devices: dict[int, torch.device] = {}
        self.on_host: set[int] = set()

    def note(self, source: torch.Tensor, moved: torch.Tensor) -> None:
        """A host tensor was copied to a device."""
        place = storage_of(source)
        if place is not None and moved.device.type not in _NO_ACCELERATOR:
            self.devices.setdefault(place, moved.device)

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


def _carries_gradient(kind: str, args: tuple[Any, ...]) -> bool:
    """Whether a call's answer is a part of the graph, so that an earlier one cannot stand in for it."""
    return kind in _MOVES_TO_HOST and args[0].requires_grad and torch.is_grad_enabled()


class Transfers:
    """The installed hooks.

    Attributes:
        tally: where the hooks write; blocks swap in their own while they count.
        force: `non_blocking` of host-to-device copies under the treatment; None leaves the script's.
        device: where the last host-to-device copy went.
        capture: notes which memory is copied; None while nobody asks.
        lazy: answers calls that wait for the device without waiting; None while they wait.
    """

    def __init__(self, force: bool | None) -> None:
        self.tally = Tally()
        self.force = force
        self.device: str | None = None
        self.capture: Capture | None = None
        self.lazy: LazySync | None = None
        self._inside = threading.local()
        self._float_may_warn = True

    def install(self) -> None:
        """Wrap the calls; they stay wrapped, since compiled code is guarded on them."""
        tensor: Any = torch.Tensor
        tensor.to = self._wrap_transfer(tensor.to)
        tensor.cuda = self._wrap_transfer(tensor.cuda, always_accelerator=True)
        for name in _SYNCHRONISING_METHODS:
            setattr(tensor, name, self._wrap_method(name.strip("_"), getattr(tensor, name)))
        tensor.__float__ = self._wrap_float(tensor.__float__)
        for name in _HOST_ONLY_METHODS:
            setattr(tensor, name, self._wrap_host_only(getattr(tensor, name)))
        tensor.copy_ = self._wrap_copy(tensor.copy_)
        for owner, kind in _WAITS:
            owner.synchronize = self._wrap_wait(kind, owner.synchronize)
        event: Any = torch.cuda.Event
        event.elapsed_time = self._wrap_elapsed_time(event.elapsed_time, event.synchronize)

    def _wrap_transfer(self, original: Callable[..., Any], always_accelerator: bool = False) -> Callable[..., Any]:
        @functools.wraps(original)
        def transfer(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            inside = self._inside
            if getattr(inside, "call", False):
                return original(tensor, *args, **kwargs)
            from_host = tensor.is_cpu
            if self.lazy is not None and not from_host and waits_for_host(args, kwargs):
                return self._timed(_TO_HOST, original, tensor, *args, **kwargs)
            inside.call = True
            try:
                if self.force is not None and from_host and (always_accelerator or names_accelerator(args, kwargs)):
                    args, kwargs = with_non_blocking(args, kwargs, self.force)
                began = _now()
                moved = original(tensor, *args, **kwargs)
                if moved is not tensor and moved.is_cpu is not from_host:
                    ended = _now()
                    self._moved(tensor, moved, ended - began, says_non_blocking(args, kwargs))
                    self.tally.own_ns += _now() - ended
                return moved
            finally:
                inside.call = False

        return hidden_from_compiler(transfer)

    def _moved(self, source: Any, moved: Any, ns: int, non_blocking: bool) -> None:
        if source.is_cpu:
            self._count_transfer(source, moved, ns, non_blocking)
        elif not non_blocking:
            self._count_sync(_location(), _TO_HOST, ns)

    def _count_transfer(self, source: Any, moved: Any, ns: int, non_blocking: bool) -> None:
        if moved.device.type in _NO_ACCELERATOR:
            return
        tally = self.tally
        tally.transfer_ns += ns
        site = tally.transfers.setdefault(_location(), [0, 0, 0, 0, 0])
        site[0] += 1
        site[1] += source.numel() * source.element_size()
        site[2] += ns
        site[3] += source.is_pinned()
        site[4] += non_blocking
        self.device = str(moved.device)
        if self.capture is not None:
            self.capture.note(source, moved)

    def _count_sync(self, location: str, kind: str, ns: int, lazily: bool = False) -> None:
        tally = self.tally
        tally.sync_ns += ns
        site = tally.syncs.setdefault((location, kind), [0, 0, 0])
        site[0] += 1
        site[1] += ns
        site[2] += lazily

    def _wrap_method(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def waits(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.is_cpu:
                return original(tensor, *args, **kwargs)
            return self._timed(name, original, tensor, *args, **kwargs)

        return hidden_from_compiler(waits)

    def _wrap_host_only(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def on_host(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self.capture is not None and tensor.is_cpu:
                self.capture.keep(tensor)
            return original(tensor, *args, **kwargs)

        return hidden_from_compiler(on_host)

    def _wrap_copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Only looked at: what is copied into a tensor of the script's is its own affair, and so is when."""

        @functools.wraps(original)
        def copy_(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            capture, source = self.capture, args[0] if args else None
            if capture is not None and isinstance(source, torch.Tensor) and source.is_cpu and not tensor.is_cpu:
                capture.note(source, tensor)
            return original(tensor, *args, **kwargs)

        return hidden_from_compiler(copy_)

    def _wrap_float(self, original: Callable[..., Any]) -> Callable[..., Any]:
        waits = self._wrap_method("float", original)

        @functools.wraps(original)
        def __float__(tensor: Any) -> Any:  # noqa: N807
            if not self._float_may_warn or not tensor.requires_grad:
                return waits(tensor)
            # torch warns once, of the line that calls it: ours, were it not said again of the script's
            self._float_may_warn = False
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = waits(tensor)
            for warning in caught:
                warnings.warn(warning.message, stacklevel=2)
            return value

        return hidden_from_compiler(__float__)

    def _wrap_wait(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def synchronize(*args: Any, **kwargs: Any) -> Any:
            return self._timed(kind, original, *args, **kwargs)

        return hidden_from_compiler(synchronize)

    def _wrap_elapsed_time(self, original: Callable[..., Any], wait: Callable[..., Any]) -> Callable[..., Any]:
        def after_waiting(start: Any, end: Any) -> Any:
            wait(end)
            return original(start, end)

        @functools.wraps(original)
        def elapsed_time(start: Any, end_event: Any) -> Any:
            if self.lazy is None:
                return original(start, end_event)
            # the wait that the script made before may have been answered without waiting: it would raise
            return self._timed("Event.elapsed_time", after_waiting, start, end_event)

        return hidden_from_compiler(elapsed_time)

    def _timed(self, kind: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if getattr(self._inside, "call", False):
            return original(*args, **kwargs)
        if self.lazy is None or _carries_gradient(kind, args):
            return self._waited(kind, original, args, kwargs)
        began = _now()
        location = _location()
        place = self.lazy.place(location, kind)
        known = place.again(args)
        if known is not None:
            self._count_sync(location, kind, _now() - began, lazily=True)
            return known.given
        given = self._waited(kind, original, args, kwargs)
        place.remember(args, given)
        return given

    def _waited(self, kind: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside = self._inside
        inside.call = True
        began = _now()
        try:
            return original(*args, **kwargs)
        finally:
            ended = _now()
            inside.call = False
            self._count_sync(_location(), kind, ended - began)
            self.tally.own_ns += _now() - ended


def hidden_from_compiler(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which torch.compile leaves alone where it meets its call outside a graph.

    It would compile it as a part of the script, and warn of what it cannot trace there.
    """
    frames: Any = torch._C._dynamo.eval_frame
    code: Any = function.__code__
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
    elif hasattr(frames, "skip_code"):
        frames.skip_code(code)
    return function


def asked_type(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Type of the device that the arguments of Tensor.to ask for; None where they name none."""
    asked = kwargs.get("device", kwargs.get("other", args[0] if args else None))
    if isinstance(asked, torch.Tensor | torch.device):
        return (asked.device if isinstance(asked, torch.Tensor) else asked).type
    if isinstance(asked, str):
        return asked.split(":")[0]
    return "accelerator" if isinstance(asked, int) and not isinstance(asked, bool) else None


def names_accelerator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of Tensor.to ask for an accelerator."""
    asked = asked_type(args, kwargs)
    return asked is not None and asked not in _NO_ACCELERATOR


def waits_for_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Tensor.to of a device's tensor comes back with the numbers on the host."""
    return asked_type(args, kwargs) == "cpu" and not says_non_blocking(args, kwargs)


def says_non_blocking(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """The call's `non_blocking`: in all its forms it is the first boolean among the positional arguments."""
    positional = next((argument for argument in args if isinstance(argument, bool)), False)
    return bool(kwargs.get("non_blocking", positional))


def with_non_blocking(
    args: tuple[Any, ...], kwargs: dict[str, Any], value: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with `non_blocking` as wanted."""
    for position, argument in enumerate(args):
        if isinstance(argument, bool):
            return (*args[:position], value, *args[position + 1 :]), kwargs
    return args, {**kwargs, "non_blocking": value}


_places: dict[tuple[CodeType, int], str] = {}


def _location() -> str:
    """The user's line, remembered for each instruction: walking the frames costs more than the hook itself."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and not is_user_code(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return user_location(3)
    key = (frame.f_code, frame.f_lasti)
    place = _places.get(key)
    if place is None:
        place = _places[key] = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return place
