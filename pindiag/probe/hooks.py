"""Putting the session's hooks in place; called once torch is imported and before the target makes anything."""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from .imports import after_import
from .loader import ITERATIONS
from .serving import WATCH

if TYPE_CHECKING:
    from types import ModuleType

    from .session import Session


def install(session: Session) -> None:
    """Hook loaders, their iterators and optimizers."""

    def change(module: ModuleType) -> None:
        _wrap_loader(session, module.StatefulDataLoader)

    _wrap_loader(session, DataLoader)
    after_import("torchdata.stateful_dataloader.stateful_dataloader", change)
    _wrap_iterator(session)
    register_optimizer_step_pre_hook(session.before_optimizer)
    register_optimizer_step_post_hook(session.after_optimizer)


def _wrap_loader(session: Session, kind: Any) -> None:
    """Hook a class of loaders that calls neither the constructor nor the `__iter__` of another hooked one."""
    init, iterate = kind.__init__, kind.__iter__
    ITERATIONS[kind] = iterate
    signature = inspect.signature(init)
    pid = os.getpid()

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if os.getpid() != pid:
            init(self, *args, **kwargs)
        else:
            session.construct(self, init, signature, args, kwargs)

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:  # noqa: N807
        return iterate(self) if os.getpid() != pid else session.iterate(self)

    kind.__init__, kind.__iter__ = __init__, __iter__


def _wrap_iterator(session: Session) -> None:
    kind: Any = _BaseDataLoaderIter
    advance, reset = kind.__next__, kind._reset

    @functools.wraps(advance)
    def __next__(self: Any) -> Any:  # noqa: N807
        watch = self.__dict__.get(WATCH)
        if watch is None:
            return advance(self)
        if watch.granted:
            return session.serve_quickly(watch)
        follow = session.serve_next if watch is session.serving.running else session.watch_next
        return follow(watch)

    @functools.wraps(reset)
    def _reset(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        reset(self, loader, *args, **kwargs)
        session.serving.entering(self, loader)

    kind.__next__, kind._reset = __next__, _reset
