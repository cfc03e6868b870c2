"""A block of whole epochs: the training loop as its user sees it, start-up of workers and validation included."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from .blocks import SETTLE_STEPS, Block
from .watch import Watch

NOT_SAMPLED = "the block covers whole epochs"

_now = time.monotonic_ns


class _Mark(NamedTuple):
    """How far the block was at one moment."""

    ns: int
    steps: int
    samples: int


class WholeEpochs(Block):
    """Counted from the birth of the training loop's first iterator to the end of its last epoch.

    The clock goes on between epochs and while the loop looks elsewhere. Only the first training step is left out, from
    its batch to the next one's asking: for what a process does for the first time there is paid once, not every epoch.
    """

    _epochs = 0
    _ended: _Mark | None = None
    _settled: _Mark | None = None
    _steady = _Mark(0, 0, 0)
    _left_ns: int | None = None
    _away_ns = 0
    _birth_ns = 0
    _arrived_ns = 0

    def born(self, watch: Watch) -> None:
        """Tell the iterator that gave the first step's batch."""
        self._birth_ns, self._arrived_ns = watch.began_ns, watch.arrived_ns

    @property
    def complete(self) -> bool:
        """Whether so many epochs have ended."""
        return self._epochs >= int(self.order["epochs"])

    @property
    def covers_two_queues(self) -> bool:
        """Whether a whole epoch was counted; a script may have no more of them."""
        return self._epochs > 0

    def _is_settled(self) -> bool:
        return True

    def enter(self, now: int) -> bool:
        """The training loop asks for a batch, so the step before is over."""
        if self._left_ns is not None:
            self._away_ns += now - self._left_ns
            self._left_ns = None
        over = super().enter(now)
        if self._settled is None and self._stretch_steps >= self._queue + SETTLE_STEPS:
            self._settled = self._mark(now)
        return over

    def grant(self) -> int:
        """How many steps may go by `next_step` from now on."""
        return 0 if self._settled is None or self.totals.steps + 1 >= (self._goal or 0) else super().grant()

    def gap(self, now: int, over: bool) -> None:
        """The loop leaves the training loader for something else, which is part of the epoch."""
        step = self.step
        ended = now if over or step is None else step.optimized
        if step is not None and step.samples and ended > step.began:
            self._end_step(ended)
        self.step = None
        if self._left_ns is None:
            self._left_ns = max(ended, self._last_end)

    def end_epoch(self, *, over: bool) -> None:
        """An epoch has ended: the iterator was exhausted, or else the loop had left it with its latest step."""
        if not self._stretch_steps or not self._counting:
            return
        settled, steady = self._settled, self._steady
        if settled is not None:
            away = self._away_ns
            self._steady = _Mark(
                steady.ns + self._last_end - settled.ns - away,
                steady.steps + self.totals.steps - settled.steps,
                steady.samples + self.totals.samples - settled.samples,
            )
        self._epochs += 1
        self._stretch_steps = self._away_ns = 0
        self._settled = self._left_ns = None
        if over:
            self._last_end = _now()
        if self.complete:
            self._close(with_device=over)
        self._ended = self._mark(self._ended_ns or self._last_end)

    def _mark(self, ns: int) -> _Mark:
        return _Mark(ns, self.totals.steps, self.totals.samples)

    def record(self, status: str, reason: str | None, notes: list[str]) -> dict[str, Any]:
        """The fields of the block's record; what was run after the last whole epoch is left out of its length."""
        self._close(with_device=False)
        made = super().record(status, reason, notes)
        ended = self._ended
        if ended is None:
            return made
        startup_ns = self._arrived_ns - self._birth_ns
        steady = self._steady
        return {
            **made,
            "settle_steps": 0,
            "steps": ended.steps,
            "samples": ended.samples,
            "started_ns": self._birth_ns,
            "ended_ns": ended.ns,
            "seconds": (startup_ns + ended.ns - self._started_ns) / 1e9,
            "gap_s": (self._started_ns - self._arrived_ns) / 1e9,
            "epochs": {
                "epochs": self._epochs,
                "startup_s": startup_ns / 1e9,
                "steady_steps": steady.steps,
                "steady_samples": steady.samples,
                "steady_seconds": steady.ns / 1e9,
            },
        }
