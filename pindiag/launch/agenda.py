"""What a launch was told to do and has not done yet, and what it is told next. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from pindiag.launch.patience import Then
from pindiag.model import (
    AnyRecord,
    Base,
    Block,
    BlockOrder,
    FirstStep,
    LaunchOrder,
    LoaderChosen,
    NextBlocks,
    Treatment,
    Window,
)

Ask = Callable[[BlockOrder | None], NextBlocks]
"""Asks what a live launch is to do after a block."""


class Answer(Base, frozen=True, kw_only=True):
    """The line that a child is sent when it asks, at the end of a block."""

    then: Then
    blocks: Sequence[BlockOrder] = ()
    windows: Sequence[BlockOrder] = ()
    gates: Sequence[Treatment] = ()
    """What the safety gate compares before the launch ends; no blocks come with it."""


class Agenda:
    """What is left of what a launch was told.

    Args:
        order: the launch's order.
        blocks: those of its blocks that it was started with.
        ask: asked when a live launch has done all that it was told.
    """

    def __init__(self, order: LaunchOrder, blocks: Sequence[BlockOrder], ask: Ask) -> None:
        self._order = order
        self._ask = ask
        self._left = deque(blocks)
        self._last: BlockOrder | None = None
        self._to_find: set[type] = {LoaderChosen, FirstStep} if order.purpose == "scout" else set()
        self.done = False
        """It has measured what it was asked for; only profiler windows may be left."""

    @property
    def running(self) -> BlockOrder | None:
        """The block or window that runs, or would have been next."""
        return next(iter(self._left), None)

    def heard(self, record: AnyRecord) -> None:
        """A record came: something may be done with it."""
        over = isinstance(record, Window) or (isinstance(record, Block) and record.status != "failed")
        if over and self._left:
            self._last = self._left.popleft()
        if self._order.purpose == "scout":
            self._to_find.discard(type(record))
            self.done = not self._to_find

    def answer(self) -> Answer:
        """What the child is told after a block."""
        if self._left:
            return Answer(then="blocks")
        if self._order.isolation == "fresh":
            self.done = True
            return Answer(then="profile" if self._order.profile else _last_of(self._order), gates=self._order.gates)
        told = self._ask(self._last)
        self._left.extend(told.blocks or told.windows)
        self.done = not told.blocks
        if told.blocks:
            return Answer(then="blocks", blocks=told.blocks)
        return Answer(then="windows" if told.windows else _last_of(told), windows=told.windows, gates=told.gates)


def _last_of(told: LaunchOrder | NextBlocks) -> Then:
    return "gates" if told.gates else "stop"
