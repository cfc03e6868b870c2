"""How long a launch may take for what it does now. Pure: the time is handed in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pindiag.model import AnyRecord, Base, Block, FirstStep, TargetEnded

Answer = Literal["stop", "profile"]


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


def slowest_block_s(records: Iterable[AnyRecord]) -> float | None:
    """The longest time from a first step to the end of its block in the launches so far; None before the first."""
    first: dict[int, int] = {}
    slowest: float | None = None
    for record in records:
        if isinstance(record, FirstStep):
            first.setdefault(record.launch, record.t_ns)
        elif isinstance(record, Block) and record.launch in first:
            slowest = max((record.t_ns - first[record.launch]) / 1e9, slowest or 0.0)
    return slowest


class Patience:
    """Knows until when a launch must have made progress.

    Args:
        limits: the limits in force.
        wait_s: how long the first training step may take, and any other before anything is known about their pace.
        expected_s: the slowest block so far.
        natural_epochs: whether validation and checkpoints stand between the steps, for which no pace is known.
        now_s: the launch's start.
    """

    def __init__(
        self, limits: Limits, wait_s: float, expected_s: float | None, *, natural_epochs: bool, now_s: float
    ) -> None:
        self._limits = limits
        unknown = expected_s is None or natural_epochs
        reckoned_s = max(limits.hang_s, limits.hang_factor * (expected_s or 0.0))
        self._hang_s = max(reckoned_s, wait_s) if unknown else reckoned_s
        self._stepped = False
        self._stopping = False
        self._set(now_s, wait_s, f"it made no training step within {wait_s:g} s (--wait)")

    def progressed(self, record: AnyRecord, now_s: float) -> None:
        """A record came over the pipe."""
        self._stepped = self._stepped or isinstance(record, FirstStep)
        if isinstance(record, TargetEnded):
            self._leave(now_s)
        elif self._stepped and not self._stopping:
            self._set(now_s, self._hang_s, f"it made no progress for {self._hang_s:g} s")

    def answered(self, answer: Answer, now_s: float) -> None:
        """The launch was told what to do after its block."""
        if answer == "profile":
            limit_s = self._hang_s + self._limits.export_s
            self._set(now_s, limit_s, f"its profiler window did not end within {limit_s:g} s")
        else:
            self._stopping = True
            self._leave(now_s)

    def overdue(self, now_s: float) -> str | None:
        """Why the launch should be killed now; None: it has time left."""
        return self._reason if now_s > self._until_s else None

    def _leave(self, now_s: float) -> None:
        limit_s = self._limits.leave_s if self._stopping else max(self._limits.leave_s, self._hang_s)
        self._set(now_s, limit_s, f"its process did not end within {limit_s:g} s")

    def _set(self, now_s: float, limit_s: float, reason: str) -> None:
        self._until_s = now_s + limit_s
        self._reason = reason
