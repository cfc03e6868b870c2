"""Hooks on host-to-device copies, on pinning by hand and on calls that wait for the device.

Tensor's methods are hooked. Functions of the torch namespace (`torch.nonzero`, `torch.as_tensor`) are not: compilers
know them by identity. Nor is `tensor[mask]`, for which each index into any tensor, those of workers included, would
take longer. What waits in these is named by the profiler window.
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

from . import pinning
from .asked import (
    copies_non_blocking,
    has_no_memory,
    names_accelerator,
    says_non_blocking,
    waits_for_host,
    with_non_blocking,
)
from .callsite import is_user_code, user_location
from .capture import Capture
from .lazy import LazySync
from .tally import TO, Tally

_now = time.monotonic_ns
_thread = threading.get_ident
_SYNCHRONISING_METHODS = ("item", "cpu", "tolist", "__bool__", "__int__", "__index__", "__complex__", "is_nonzero")
_COMPARING_METHODS = ("equal", "allclose")
_SIZED_BY_DATA = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive")
"""Methods whose result has a size that only the device knows."""
_TO_HOST = "to(cpu)"
_MOVES_TO_HOST = (_TO_HOST, "cpu")
_WAITS: tuple[tuple[Any, str], ...] = (
    (torch.cuda, "torch.cuda.synchronize"),
    (torch.accelerator, "torch.accelerator.synchronize"),
    (torch.cuda.Stream, "Stream.synchronize"),
    (torch.cuda.Event, "Event.synchronize"),
)


def _carries_gradient(kind: str, args: tuple[Any, ...]) -> bool:
    """Whether a call's answer is a part of the graph, so that an earlier one cannot stand in for it."""
    return kind in _MOVES_TO_HOST and args[0].requires_grad and torch.is_grad_enabled()


def _allow_lazy_parameters(*methods: Callable[..., Any]) -> None:
    """Parameters without a shape yet know what may be asked of them by the very functions."""
    allowed = getattr(torch.nn.parameter.UninitializedParameter, "_allowed_methods", None)
    if allowed is not None:
        allowed.extend(methods)


class _Inside(threading.local):
    """Whether the thread is inside a hooked call, whose own calls count with it."""

    call = False


class Transfers:
    """The installed hooks.

    Attributes:
        tally: where the hooks write; blocks swap in their own while they count.
        force: `non_blocking` of host-to-device copies under the treatment; None leaves the script's.
        device: where the first host-to-device copy went.
        capture: notes which memory is copied; None while nobody asks.
        lazy: answers calls that wait for the device without waiting; None while they wait.
        counts: whether copies from the host are counted: not in a step that is timed as a whole. Then nobody captures
            anything either, and every call waits.
    """

    def __init__(self, force: bool | None) -> None:
        self.tally = Tally()
        self.force = force
        self.device: str | None = None
        self.capture: Capture | None = None
        self.lazy: LazySync | None = None
        self.counts = True
        self._inside = _Inside()
        self._main_thread = _thread()
        self._float_may_warn = True

    def install(self) -> None:
        """Wrap the calls; they stay wrapped, since compiled code is guarded on them."""
        tensor: Any = torch.Tensor
        tensor.to = self._wrap_transfer(tensor.to)
        tensor.cuda = self._wrap_transfer(tensor.cuda, always_accelerator=True)
        for name in _SYNCHRONISING_METHODS:
            setattr(tensor, name, self._wrap_method(name.strip("_"), getattr(tensor, name)))
        tensor.__float__ = self._wrap_float(tensor.__float__)
        for name in _COMPARING_METHODS:
            setattr(tensor, name, self._wrap_method(name, getattr(tensor, name)))
        for name in _SIZED_BY_DATA:
            setattr(tensor, name, self._wrap_sized_by_data(name, getattr(tensor, name)))
        tensor.numpy = self._wrap_host_only(tensor.numpy)
        tensor.pin_memory = self._wrap_pin(tensor.pin_memory)
        tensor.copy_ = self._wrap_copy(tensor.copy_)
        _allow_lazy_parameters(tensor.to, tensor.cuda, tensor.cpu, tensor.copy_)
        for owner, kind in _WAITS:
            owner.synchronize = self._wrap_wait(kind, owner.synchronize)
        event: Any = torch.cuda.Event
        event.elapsed_time = self._wrap_elapsed_time(event.elapsed_time, event.synchronize)

    def _wrap_transfer(self, original: Callable[..., Any], always_accelerator: bool = False) -> Callable[..., Any]:
        inside = self._inside

        @functools.wraps(original)
        def transfer(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            from_host = tensor.is_cpu
            if from_host and not self.counts:
                if self.force is not None and (always_accelerator or names_accelerator(args, kwargs)):
                    args, kwargs = with_non_blocking(args, kwargs, self.force)
                return original(tensor, *args, **kwargs)
            if inside.call:
                return original(tensor, *args, **kwargs)
            if self.lazy is not None and not from_host and waits_for_host(args, kwargs):
                return self._timed(_TO_HOST, original, tensor, *args, **kwargs)
            inside.call = True
            try:
                if self.force is not None and from_host and (always_accelerator or names_accelerator(args, kwargs)):
                    args, kwargs = with_non_blocking(args, kwargs, self.force)
                began = _now()
                moved = original(tensor, *args, **kwargs)
            finally:
                inside.call = False
            if moved is not tensor and moved.is_cpu is not from_host:
                self._moved(TO, tensor, moved, began, says_non_blocking(args, kwargs))
            return moved

        return hidden_from_compiler(transfer)

    def _moved(self, kind: str, source: Any, moved: Any, began: int, non_blocking: bool) -> None:
        """A call moved a tensor from or to the host. Called for each tensor of each batch: one function, and short."""
        ended = _now()
        tally = self.tally
        if not source.is_cpu:
            if not non_blocking:
                self._count_sync(_location(), _TO_HOST if kind == TO else kind, ended - began)
        elif not moved.is_meta or not has_no_memory(moved):
            caller = sys._getframe(2)
            code, instruction = caller.f_code, caller.f_lasti
            site = tally.known.get((id(code), instruction, kind)) or self._site(kind, code, instruction)
            ns = ended - began
            tally.hooked_ns += ns
            site[0] += 1
            site[1] += source.nbytes
            site[2] += ns
            site[3] += tally.is_pinned(source)
            site[4] += non_blocking
            if self.device is None:
                self.device = str(moved.device)
            if self.capture is not None:
                self.capture.note(source, moved, kind, non_blocking)
        tally.own_ns += _now() - ended

    def _site(self, kind: str, code: CodeType, instruction: int) -> list[int]:
        """Where the tally counts transfers of a kind that are asked for at an instruction."""
        site = self.tally.transfers.setdefault((_location(), kind), [0, 0, 0, 0, 0])
        if is_user_code(code):
            self.tally.known[id(code), instruction, kind] = site
        return site

    def _count_sync(self, location: str, kind: str, ns: int, lazily: bool = False) -> None:
        tally = self.tally
        tally.sync_ns += ns
        tally.hooked_ns += ns
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

    def _wrap_sized_by_data(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Never answered without waiting: another answer's size would not fit what the script does with it."""

        @functools.wraps(original)
        def sized(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.is_cpu or self._inside.call:
                return original(tensor, *args, **kwargs)
            return self._waited(name, original, (tensor, *args), kwargs)

        return hidden_from_compiler(sized)

    def _wrap_pin(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Counts the script's own pinning: neither that of a pin thread nor the loader's in the main thread."""

        @functools.wraps(original)
        def pin_memory(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self.capture is not None and tensor.is_cpu:
                self.capture.keep(tensor)
            if _thread() != self._main_thread or self._inside.call or pinning.is_pinning():
                return original(tensor, *args, **kwargs)
            began = _now()
            pinned = original(tensor, *args, **kwargs)
            if pinned is not tensor:
                self._count_pin(pinned, _now() - began)
            return pinned

        return hidden_from_compiler(pin_memory)

    def _count_pin(self, pinned: Any, ns: int) -> None:
        began = _now()
        tally = self.tally
        tally.pin_ns += ns
        tally.hooked_ns += ns
        site = tally.pins.setdefault(_location(), [0, 0, 0])
        site[0] += 1
        site[1] += pinned.nbytes
        site[2] += ns
        tally.own_ns += _now() - began

    def _wrap_copy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Counted and left alone: what is copied into a tensor of the script's is its own affair, and so is when."""

        @functools.wraps(original)
        def copy_(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            source = args[0] if args else kwargs.get("src")
            inside = self._inside
            if inside.call or not isinstance(source, torch.Tensor) or source.is_cpu is tensor.is_cpu:
                return original(tensor, *args, **kwargs)
            if source.is_cpu and not self.counts:
                return original(tensor, *args, **kwargs)
            inside.call = True
            began = _now()
            try:
                copied = original(tensor, *args, **kwargs)
            finally:
                inside.call = False
            self._moved("copy_", source, tensor, began, copies_non_blocking(args, kwargs))
            return copied

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
        if self._inside.call:
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
        if self.capture is not None:
            self.capture.waiting()
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


_places: dict[tuple[int, int], tuple[CodeType, str]] = {}
"""Instruction to the line's name; holding its code, whose address is the key, since code is hashed as a whole."""


def _location() -> str:
    """The user's line, remembered for each instruction: walking the frames costs more than the hook itself."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        known = _places.get((id(code), frame.f_lasti))
        if known is not None:
            return known[1]
        if is_user_code(code):
            place = f"{code.co_filename}:{frame.f_lineno}"
            _places[id(code), frame.f_lasti] = (code, place)
            return place
        frame = frame.f_back
    return user_location(3)
