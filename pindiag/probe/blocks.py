"""A block: steps that settle, then steps that count between two device synchronisations."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from . import device, pinning
from .sampling import Sampling
from .starvation import Starvation
from .tally import Tally
from .transfers import Transfers

SETTLE_STEPS = 3
"""Steps beyond the queue's turn-over before counting."""

SETTLE_SHARE = 0.2
"""Share of a block's seconds that settling lasts at least: too few fast steps would foretell its length badly."""

LEAST_STEPS = 3
KEPT_STEPS = 2000

_now = time.monotonic_ns


class Reading(NamedTuple):
    """Counters that are read at both ends of a counted stretch, never inside."""

    pin: tuple[int, int, int, int, bool]
    cpu_ns: int
    host: device.HostStats | None


def read() -> Reading:
    """The counters now."""
    return Reading(pinning.pin_totals(), time.thread_time_ns(), device.host_stats())


class Step:
    """The step in progress: from asking for its batch to asking for the next one."""

    __slots__ = ("began", "looked_at", "optimized", "optimizer_ns", "own_ns", "samples", "wait_cpu_ns", "wait_ns")

    def __init__(self, began: int) -> None:
        self.began = began
        self.looked_at = True
        self.wait_ns = 0
        self.wait_cpu_ns = 0
        self.samples = 0
        self.optimizer_ns = 0
        self.optimized = 0
        self.own_ns = 0


class Totals:
    """What the counted part adds up to."""

    __slots__ = (
        "alloc_us",
        "allocations",
        "counted_ns",
        "cpu_ns",
        "gap_ns",
        "host",
        "looked_at",
        "looked_at_wait_ns",
        "optimizer_ns",
        "own_ns",
        "pin_in_main",
        "pin_ns",
        "samples",
        "step_ns",
        "step_wait_ns",
        "steps",
        "wait_cpu_ns",
        "wait_ns",
    )

    def __init__(self) -> None:
        self.steps = 0
        self.looked_at = 0
        self.looked_at_wait_ns = 0
        self.samples = 0
        self.counted_ns = 0
        self.gap_ns = 0
        self.wait_ns = 0
        self.wait_cpu_ns = 0
        self.optimizer_ns = 0
        self.cpu_ns = 0
        self.own_ns = 0
        self.pin_ns = [0, 0, 0, 0]
        self.pin_in_main = False
        self.allocations = 0
        self.alloc_us = 0.0
        self.host: device.HostStats | None = None
        self.step_ns: list[int] = []
        self.step_wait_ns: list[int] = []

    @property
    def wait_cpu_share(self) -> float:
        """Of the waits in steps that were looked at, the part on CPU; its clocks are read around the wait."""
        return min(1.0, self.wait_cpu_ns / max(1, self.looked_at_wait_ns))

    def add_step(self, step: Step, ended: int) -> None:
        """Count one step."""
        self.steps += 1
        self.samples += step.samples
        self.wait_ns += step.wait_ns
        self.own_ns += step.own_ns
        if step.looked_at:
            self.looked_at += 1
            self.looked_at_wait_ns += step.wait_ns
            self.wait_cpu_ns += step.wait_cpu_ns
            self.optimizer_ns += step.optimizer_ns
        if self.steps <= KEPT_STEPS:
            self.step_ns.append(ended - step.began)
            self.step_wait_ns.append(step.wait_ns)

    def add_readings(self, before: Reading, after: Reading) -> None:
        """Add what ran beside a counted stretch."""
        self.cpu_ns += after.cpu_ns - before.cpu_ns
        for index in range(4):
            self.pin_ns[index] += after.pin[index] - before.pin[index]
        self.pin_in_main = after.pin[4]
        if before.host is not None and after.host is not None:
            self.allocations += after.host.allocations - before.host.allocations
            self.alloc_us += after.host.alloc_us - before.host.alloc_us
            self.host = after.host


class Block:
    """One block of a launch, driven by the training loop's own calls.

    Args:
        order: the parent's `BlockOrder`.
        queue: batches in flight (workers x prefetch factor).
        transfers: the hooks, which write into this block's tally while it counts.
        phase_changed: called with "settling", "counting" and "counted", outside the counted time.
        starvation: samples its counted steps.
        chance: draws the steps that are looked at in all their parts.
    """

    def __init__(
        self,
        order: dict[str, Any],
        queue: int,
        transfers: Transfers,
        phase_changed: Callable[[str], None],
        starvation: Starvation,
        *,
        chance: random.Random,
    ) -> None:
        self.order = order
        self.starvation = starvation
        self.totals = Totals()
        self.step: Step | None = None
        self.sampling: Sampling | None = None
        self._chance = chance
        self._queue = queue
        self._transfers = transfers
        self._phase_changed = phase_changed
        self._tally = Tally()
        self._goal: int | None = order.get("steps")
        self._seconds = float(order["seconds"])
        self._settle_goal: int = order.get("settle_steps") or queue + SETTLE_STEPS
        self._settle_ns: list[int] = []
        self._settling_steps = 0
        self._counting = False
        self._stretch_steps = 0
        self._started_ns = 0
        self._ended_ns = 0
        self._stretch_began = 0
        self._last_end = 0
        self._reading: Reading | None = None
        phase_changed("settling")

    @property
    def complete(self) -> bool:
        """Whether all its steps are counted."""
        return self._goal is not None and self._started_ns > 0 and self.totals.steps >= self._goal

    @property
    def covers_two_queues(self) -> bool:
        """Whether so many steps are counted that queued batches cannot flatter it."""
        return self.totals.steps >= max(LEAST_STEPS, 2 * self._queue)

    def enter(self, now: int) -> bool:
        """The training loop asks for a batch, so the step before is over. True when the block is complete."""
        self._end_step(now)
        if self.complete:
            self._close(with_device=True)
            return True
        if not self._counting and self._is_settled():
            now = self._open()
        self.step = Step(now)
        if self._counting:
            self.starvation.ask()
        return False

    def grant(self) -> int:
        """How many steps may go by `next_step` from now on: they are timed as a whole, and nothing else is due."""
        if not self._counting or self._goal is None or self.sampling is None:
            return 0
        passed = self.starvation.pass_over(min(self.sampling.left, self._goal - 1 - self.totals.steps))
        self.sampling.pass_over(passed)
        return passed

    def next_step(self, now: int, wait_ns: int, samples: int) -> Step:
        """The same as `enter` in a step that was granted, after its batch has come; returns the step in progress.

        Args:
            now: when the batch was asked for.
            wait_ns: how long it took.
            samples: of the batch.
        """
        step = self.step
        assert step is not None
        self.totals.add_step(step, now)
        self._stretch_steps += 1
        self._last_end = step.began = now
        step.wait_ns = wait_ns
        step.samples = samples
        step.optimized = 0
        step.looked_at = False
        return step

    def gap(self, now: int, over: bool) -> None:
        """The loop leaves the training loader: the clock stops, and what follows settles anew.

        Args:
            now: the time.
            over: whether the step in progress is known to be over; else it ended with its optimizer step, if any.
        """
        step = self.step
        if step is not None and step.samples:
            ended = now if over else step.optimized
            if ended > step.began:
                self._end_step(ended)
        self.step = None
        self._close(with_device=over)
        if self._stretch_steps:
            self._settle_goal = min(self._queue + SETTLE_STEPS, self._stretch_steps // 2)
        self._stretch_steps = 0
        self._settling_steps = 0

    def _end_step(self, now: int) -> None:
        step, self.step = self.step, None
        if step is None:
            return
        self._stretch_steps += 1
        if self._counting:
            self.totals.add_step(step, now)
            self._last_end = now
        else:
            self._settling_steps += 1
            self._settle_ns.append(now - step.began)

    def _is_settled(self) -> bool:
        if self._settling_steps < self._settle_goal:
            return False
        long_enough = sum(self._settle_ns) >= SETTLE_SHARE * self._seconds * 1e9
        return long_enough or self._started_ns > 0

    def _open(self) -> int:
        """Begin a counted stretch; returns when."""
        if self._goal is None:
            self._goal = self._foretold_steps()
        if self.sampling is None:
            self.sampling = Sampling(self._goal, self._chance)
        if not self._started_ns:
            self._phase_changed("counting")
        device.synchronise()
        self.starvation.open(self._settled_step_ns())
        self._counting = True
        self._reading = read()
        self._transfers.tally = self._tally
        now = _now()
        if self._started_ns:
            self.totals.gap_ns += now - self._ended_ns
        else:
            self._started_ns = now
        self._stretch_began = self._last_end = now
        return now

    def _foretold_steps(self) -> int:
        return max(LEAST_STEPS, 2 * self._queue, math.ceil(self._seconds * 1e9 / self._settled_step_ns()))

    def _settled_step_ns(self) -> float:
        later = self._settle_ns[len(self._settle_ns) // 2 :]
        return max(1.0, sum(later) / max(1, len(later)))

    def _close(self, *, with_device: bool) -> None:
        """End a counted stretch: with a synchronisation where a step has just ended, else with the last known end.

        A loop that left by `break` says so only when it comes back, long after; waiting for the device then would
        count what happened between.
        """
        if not self._counting:
            return
        self._counting = False
        ended = self._last_end
        if with_device:
            # added to the last step's end: workers of an exhausted dataset may take long to say that they are done
            asked = _now()
            device.synchronise()
            ended += _now() - asked
        self._transfers.tally = Tally()
        assert self._reading is not None
        self.totals.add_readings(self._reading, read())
        self.totals.counted_ns += ended - self._stretch_began
        self._ended_ns = ended
        self.starvation.close()

    def record(self, status: str, reason: str | None, notes: list[str]) -> dict[str, Any]:
        """The fields of the block's record."""
        totals = self.totals
        steps = max(1, totals.steps)
        each = totals.steps / max(1, totals.looked_at)
        own_ns = totals.own_ns + self._tally.own_ns
        return {
            "block": self.order["block"],
            "trial": self.order["trial"],
            "round": self.order["round"],
            "settle_steps": len(self._settle_ns),
            "steps": totals.steps,
            "samples": totals.samples,
            "started_ns": self._started_ns,
            "ended_ns": self._ended_ns,
            "seconds": totals.counted_ns / 1e9,
            "gap_s": totals.gap_ns / 1e9,
            "status": status,
            "reason": reason,
            "wait_ms": totals.wait_ns / 1e6,
            "wait_cpu_ms": totals.wait_ns * totals.wait_cpu_share / 1e6,
            "transfer_ms": self._tally.transfer_ns * each / 1e6,
            "synchronise_ms": self._tally.sync_ns / 1e6,
            "hand_pin_ms": self._tally.pin_ns / 1e6,
            "optimizer_ms": totals.optimizer_ns * each / 1e6,
            "looked_at_steps": totals.looked_at,
            "main_cpu_ms": totals.cpu_ns / 1e6,
            "step_ms": [ns / 1e6 for ns in totals.step_ns],
            "step_wait_ms": [ns / 1e6 for ns in totals.step_wait_ns],
            "transfers": self._tally.transfer_sites(each),
            "syncs": self._tally.sync_sites(),
            "pins": self._tally.pin_sites(),
            "probe_us_per_step": own_ns / steps / 1e3,
            "intraop_threads": device.intraop_threads(),
            "notes": notes,
            **self._beside(),
        }

    def _beside(self) -> dict[str, Any]:
        totals = self.totals
        missing = {}
        starvation = self.starvation.record()
        if starvation is None:
            missing["starvation"] = self.starvation.missing
        batches, receive_ns, pin_ns, idle_ns = totals.pin_ns
        pin_thread = None
        if batches:
            pin_thread = {
                "batches": batches,
                "receive_ms": receive_ns / 1e6,
                "pin_ms": pin_ns / 1e6,
                "idle_ms": idle_ns / 1e6,
                "in_main_thread": totals.pin_in_main,
            }
        else:
            missing["pin_thread"] = "no batch was pinned"
        host = None
        if totals.host is not None:
            host = {
                "allocations": totals.allocations,
                "alloc_ms": totals.alloc_us / 1e3,
                "active_bytes": totals.host.active_bytes,
                "reserved_bytes": totals.host.reserved_bytes,
            }
        else:
            missing["host_allocator"] = device.why_no_host_stats()
        return {"pin_thread": pin_thread, "host_allocator": host, "starvation": starvation, "missing": missing}
