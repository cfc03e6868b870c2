"""Torch has one profiler session a process: the probe's gives way to one that the target begins."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import profiler

_BEGIN = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"
"""All sessions of torch.profiler and torch.autograd.profiler pass through these names, legacy and NVTX ones too."""


class Turns:
    """Knows whose session it is.

    A second session beside the probe's raises in the target or crashes the process, and one of the probe's beside the
    target's empties that. A session that waits for its schedule has not begun.
    """

    def __init__(self) -> None:
        self._prepared = False
        self._give_way: Callable[[], None] | None = None
        self._calling: int | None = None

    def install(self) -> None:
        """See the target's sessions from now on."""
        for name in _BEGIN:
            setattr(profiler, name, self._watched(getattr(profiler, name), self._target_begins))
        setattr(profiler, _END, self._watched(getattr(profiler, _END), self._target_ends))

    @property
    def target_profiles(self) -> bool:
        """Whether the target has a session that is prepared or runs."""
        return self._prepared or bool(torch._C._autograd._profiler_enabled())

    @contextlib.contextmanager
    def ours(self, give_way: Callable[[], None] | None) -> Iterator[None]:
        """Calls of this thread are the probe's while this is entered.

        Args:
            give_way: ends the probe's session, should the target begin its own later; None where it ends here.
        """
        self._calling, self._give_way = threading.get_ident(), give_way
        try:
            yield
        finally:
            self._calling = None

    def _watched(self, call: Callable[..., Any], tell: Callable[[], None]) -> Callable[..., Any]:
        @functools.wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._calling != threading.get_ident():
                tell()
            return call(*args, **kwargs)

        return watched

    def _target_begins(self) -> None:
        self._prepared = True
        give_way, self._give_way = self._give_way, None
        if give_way is not None:
            give_way()

    def _target_ends(self) -> None:
        self._prepared = False


turns = Turns()
