"""Which of the target's loaders trains, found out while the script runs as written."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .watch import Watch

BACKWARDS = 16
"""Backward passes without an optimizer step after which a script is taken to step by hand. Scripts that accumulate
gradients over more batches feed both from the same loader, so nothing is lost by being early."""

BATCHES = 20
"""Batches without a backward pass, in a script that has made no optimizer, after which it is taken to be inference."""


class Choice:
    """Credits the loader whose batch came last before a step.

    Args:
        chosen: called with the loader's iterator and the reason in words.
    """

    def __init__(self, chosen: Callable[[Watch, str], None]) -> None:
        self._chosen = chosen
        self._since: list[Watch] = []
        self._waited_ns: dict[int, int] = {}
        self._most: Watch | None = None
        self._steps = 0
        self._backwards = 0
        self._restore: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Count backward passes, until the loader is chosen."""
        for name in ("backward", "grad"):
            original = getattr(torch.autograd, name)
            self._restore.append((torch.autograd, name, original))
            setattr(torch.autograd, name, self._counted(original))

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self.backward()
            return result

        return backward

    def uninstall(self) -> None:
        """Put the functions back."""
        for owner, name, original in self._restore:
            setattr(owner, name, original)
        self._restore.clear()

    def yielded(self, watch: Watch, wait_ns: int) -> None:
        """A loader gave a batch."""
        self._since.append(watch)
        self._waited_ns[watch.made.number] = self._waited_ns.get(watch.made.number, 0) + wait_ns
        if self._most is None or watch.delivered > self._most.delivered:
            self._most = watch
        if watch.delivered == BATCHES and self._steps == self._backwards == 0 and not _has_optimizer():
            self._chosen(watch, "no optimizer was made and nothing was differentiated; it gave the most batches")

    def stepped(self) -> None:
        """An optimizer made a step."""
        since, self._since = self._since, []
        if not since:
            return
        self._steps += 1
        feeders = _feeders(since)
        several = len(feeders) > 1
        if several and self._steps == 1:
            return  # batches of a validation before training look the same; the second step tells
        watch = max(feeders, key=lambda feeder: self._waited_ns[feeder.made.number])
        why = "several loaders feed each step; it is the one that was waited for longest"
        self._chosen(watch, why if several else "its batch came last before the first optimizer step")

    def backward(self) -> None:
        """Gradients were computed."""
        if not self._since:
            return
        self._backwards += 1
        if self._backwards > BACKWARDS and self._steps == 0:
            self._chosen(self._since[-1], "no optimizer stepped; its batch came last before each backward pass")

    def at_end(self) -> None:
        """The script is over and nothing was chosen: the loader that gave most, if any gave something."""
        if self._most is not None:
            self._chosen(self._most, "the script made no step; it gave the most batches")


def _feeders(since: list[Watch]) -> list[Watch]:
    """Loaders that gave as many batches for this step as the last one did and have more to give."""
    last = since[-1]
    count = since.count(last)
    return [watch for watch in dict.fromkeys(since) if watch is last or (since.count(watch) == count and watch.open)]


def _has_optimizer() -> bool:
    return any(issubclass(type(thing), torch.optim.Optimizer) for thing in gc.get_objects())
