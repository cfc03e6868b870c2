"""Putting the session's hooks in place; called once torch is imported and before the target makes anything."""

from __future__ import annotations

import functools
import inspect
import os
from typing import TYPE_CHECKING, Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from .serving import WATCH

if TYPE_CHECKING:
    from .session import Session


def install(session: Session) -> None:
    """Hook loaders, their iterators and optimizers."""
    _wrap_loader(session)
    _wrap_iterator(session)
    register_optimizer_step_pre_hook(session.before_optimizer)
    register_optimizer_step_post_hook(session.after_optimizer)


def _wrap_loader(session: Session) -> None:
    kind: Any = DataLoader
    init, iterate = kind.__init__, kind.__iter__
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
        follow = session.serve_next if watch is session.serving.running else session.watch_next
        return follow(watch)

    @functools.wraps(reset)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        reset(self, *args, **kwargs)
        session.serving.entering(self)

    kind.__next__, kind._reset = __next__, _reset
