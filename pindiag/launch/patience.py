"""How long a launch may take for what it does now. Pure: the time is handed in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pindiag.model import AnyRecord, Base, Block, FirstStep, LoaderIterated, TargetEnded

Then = Literal["stop", "profile", "blocks", "windows", "gates"]
"""What a launch is told to do after a block."""


class Limits(Base, frozen=True, kw_only=True):
    """Seconds that each part of a launch may take."""

    hang_factor: float = 10.0
    """Times the slowest block so far, before a launch without progress is given up."""
    hang_s: float = 30.0
    """At least; a checkpoint or a validation may stand between two records."""
    export_s: float = 60.0
    """More for a profiler window: it takes this long to write a large trace."""
    leave_s: float = 10.0
    """From the order to stop to the end of the process; the probe itself takes about two."""
    poll_s: float = 0.05
    """How soon an end, a signal or a time-out is noticed."""


class Pace:
    """How long the blocks of a run take.

    Args:
        records: what is known of them so far.
    """

    def __init__(self, records: Iterable[AnyRecord] = ()) -> None:
        self._slowest_block_s: float | None = None
        self._slowest_start_s = 0.0
        self._since_ns: dict[int, int] = {}
        for record in records:
            self.hear(record)

    @property
    def slowest_s(self) -> float | None:
        """The longest that a block or a start of workers took; None before the first block.

        A block lasts from the first step of its launch, or from the end of the block before it, to its own end; a start
        of workers from the birth of their iterator to its first batch.
        """
        return None if self._slowest_block_s is None else max(self._slowest_block_s, self._slowest_start_s)

    def hear(self, record: AnyRecord) -> None:
        """A record came."""
        if isinstance(record, FirstStep):
            self._since_ns.setdefault(record.launch, record.t_ns)
        elif isinstance(record, LoaderIterated):
            self._slowest_start_s = max(self._slowest_start_s, (record.first_batch_ms or 0.0) / 1e3)
        elif isinstance(record, Block) and record.launch in self._since_ns:
            took_s = (record.t_ns - self._since_ns[record.launch]) / 1e9
            self._since_ns[record.launch] = record.t_ns
            self._slowest_block_s = max(took_s, self._slowest_block_s or 0.0)


class Patience:
    """Knows until when a launch must have made progress.

    Args:
        limits: the limits in force.
        wait_s: how long the first training step may take, and any other before anything is known about their pace.
        pace: what the blocks so far took, those of this launch included.
        natural_epochs: whether validation and checkpoints stand between the steps, for which no pace is known.
        now_s: the launch's start.
    """

    def __init__(self, limits: Limits, wait_s: float, pace: Pace, *, natural_epochs: bool, now_s: float) -> None:
        self._limits = limits
        self._wait_s = wait_s
        self._pace = pace
        self._natural_epochs = natural_epochs
        self._stepped = False
        self._told: Then | None = None
        self._set(now_s, wait_s, f"it made no training step within {wait_s:g} s (--wait)")

    def progressed(self, record: AnyRecord, now_s: float) -> None:
        """A record came over the pipe."""
        self._stepped = self._stepped or isinstance(record, FirstStep)
        if isinstance(record, TargetEnded):
            self._leave(now_s)
        elif self._stepped and self._told != "stop":
            self._go_on(now_s)

    def answered(self, then: Then, now_s: float) -> None:
        """The launch was told what to do next."""
        self._told = then
        if then == "stop":
            self._leave(now_s)
        else:
            self._go_on(now_s)

    def overdue(self, now_s: float) -> str | None:
        """Why the launch should be killed now; None: it has time left."""
        return self._reason if now_s > self._until_s else None

    def _go_on(self, now_s: float) -> None:
        limit_s = self._hang_s
        if self._told in ("profile", "windows"):
            limit_s += self._limits.export_s
            self._set(now_s, limit_s, f"its profiler window did not end within {round(limit_s, 1):g} s")
        else:
            self._set(now_s, limit_s, f"it made no progress for {round(limit_s, 1):g} s")

    def _leave(self, now_s: float) -> None:
        limit_s = self._limits.leave_s if self._told == "stop" else max(self._limits.leave_s, self._hang_s)
        self._set(now_s, limit_s, f"its process did not end within {round(limit_s, 1):g} s")

    @property
    def _hang_s(self) -> float:
        slowest_s = self._pace.slowest_s
        reckoned_s = max(self._limits.hang_s, self._limits.hang_factor * (slowest_s or 0.0))
        return max(reckoned_s, self._wait_s) if slowest_s is None or self._natural_epochs else reckoned_s

    def _set(self, now_s: float, limit_s: float, reason: str) -> None:
        self._until_s = now_s + limit_s
        self._reason = reason
