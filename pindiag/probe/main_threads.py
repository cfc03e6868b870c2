"""Fewer intra-op threads of the main thread, for one treatment, and their number back for the next one."""

from __future__ import annotations

import torch

from . import device


class MainThreads:
    """The number that the main thread had before, while it has another one."""

    def __init__(self) -> None:
        self._own: int | None = None

    def give(self, number: int | None) -> None:
        """Set a number; None: the one that it had before any was set, and nothing where none was."""
        if number is None and self._own is None:
            return
        if self._own is None:
            self._own = device.intraop_threads() or torch.get_num_threads()
        torch.set_num_threads(self._own if number is None else number)
        if number is None:
            self._own = None
