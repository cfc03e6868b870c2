"""How long the device had nothing to do while the training loop waited for a batch, told by the device's own clock.

Two events go onto the stream that the loop runs on: one just before a batch is asked for, one just after it is handed
over. The first is done once the device has finished all that it was given before, the second not before it was put
there. The time between them is therefore what the wait was longer than the work still queued: about 0 where the device
was busy all along, the whole wait where it had already run dry. They are read steps later, and nothing waits for them.

What they cannot see: work on other streams and other devices, and a device that runs dry elsewhere in the step.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import deque
from statistics import median
from typing import Any

import torch

from . import device
from .batch import tensors_of
from .transfers import Transfers

STEP_SHARE = 0.01
"""Of a step that sampling costs at most, on average."""
STEP_NS = 4_000
"""The same in nanoseconds; a long step is not changed by `LONG_STEP_SHARE` of it, which then allows more."""
LONG_STEP_SHARE = 1e-4

TRIED_PAIRS = 5

UNUSED = "the script does not use the accelerator"
LOADER_USES_DEVICE = "the loader itself works on the device, which events cannot tell from waiting"
OTHER_THREAD = "batches are not fetched in the main thread, so that other work falls between the events"

_now = time.monotonic_ns
# Bound before the hooks are in place, and before the target may replace it.
_Event: Any = torch.cuda.Event
_elapsed_ms: Any = torch.cuda.Event.elapsed_time
_current_stream = torch.cuda.current_stream
_is_capturing = torch.cuda.is_current_stream_capturing


class Pair:
    """The events around one wait; an event stays with the device on which it was recorded first."""

    __slots__ = ("asked", "given", "index", "wait_ns")

    def __init__(self, index: int) -> None:
        self.index = index
        self.asked = _Event(enable_timing=True)
        self.given = _Event(enable_timing=True)
        self.wait_ns = 0


class Pairs:
    """Pairs that are free to be recorded, by device, and the chance by which steps are sampled; one a launch."""

    def __init__(self) -> None:
        self.chance = random.Random(0)
        self._free: dict[int, list[Pair]] = {}

    def take(self, index: int) -> Pair:
        """A pair for this device."""
        free = self._free.get(index)
        return free.pop() if free else Pair(index)

    def give_back(self, pair: Pair) -> None:
        """Nobody looks at it any longer."""
        self._free.setdefault(pair.index, []).append(pair)


class Starvation:
    """Samples the waits of one block.

    In the order of use: `open` where a counted stretch begins; `ask` before each of its batches; `handed_over` after
    those for which `asking` is set; `close` at the stretch's end; `record`. None of them raises or waits.

    Args:
        pairs: those of the launch.
        transfers: the hooks, which know where batches go.
        why_not: the reason why this block has nothing to sample; None where it has.

    Attributes:
        asking: the pair whose batch is waited for; None in a step that is not sampled.
    """

    def __init__(self, pairs: Pairs, transfers: Transfers, why_not: str | None = None) -> None:
        self.asking: Pair | None = None
        self._pairs = pairs
        self._transfers = transfers
        self._why_not = why_not
        self._index = 0
        self._stream: Any = None
        self._steps_left = 0
        """Until the next sample; below 1 there is none."""
        self._mean_gap = 1
        self._step_ns = 0.0
        self._cost_ns = 0.0
        self._ask_ns = 0
        self._device_ns = 0
        self._pending: deque[Pair] = deque()
        self._sampled = 0
        self._starved_ms = 0.0
        self._wait_ms = 0.0

    def open(self, step_ns: float) -> None:
        """Counting begins, on a device that has nothing to do.

        Args:
            step_ns: how long a step takes.
        """
        if self._why_not is None:
            self._why_not = _why_not_here()
        if self._why_not is not None:
            return
        try:
            self._begin(step_ns)
        except Exception as error:
            self._give_up(error)

    def _begin(self, step_ns: float) -> None:
        self._read()
        self._index = self._device_index()
        self._cost_ns = self._sampling_cost_ns()
        self._step_ns = step_ns
        allowed_ns = min(STEP_SHARE * step_ns, max(STEP_NS, LONG_STEP_SHARE * step_ns))
        self._mean_gap = max(1, math.ceil(self._cost_ns / max(allowed_ns, 1.0)))
        # not the first step, which comes to a device that was made to run dry
        self._steps_left = 1 + self._gap()

    def _device_index(self) -> int:
        moved_to = torch.device(self._transfers.device or "cuda")
        index = moved_to.index if moved_to.type == "cuda" else None
        return torch.cuda.current_device() if index is None else index

    def _sampling_cost_ns(self) -> float:
        """Tried on the idle device, where no queue is full; by another one, whose samples count for nothing."""
        other = Starvation(self._pairs, self._transfers)
        other._index = self._index
        cost_ns = median([other._tried_ns() for _ in range(TRIED_PAIRS)])
        other.close()
        return cost_ns

    def _tried_ns(self) -> int:
        began = _now()
        self._sample()
        if self.asking is not None:
            self.handed_over(None, 0)
        return _now() - began

    def _gap(self) -> int:
        """At random: batches of several workers come in turns, which an even gap may keep in step with."""
        return self._pairs.chance.randrange(1, 2 * self._mean_gap)

    def ask(self) -> None:
        """The loop is about to ask for a batch of a counted step."""
        self.asking = None
        self._steps_left -= 1
        if self._steps_left == 0:
            try:
                self._sample()
            except Exception as error:
                self._give_up(error)

    def pass_over(self, steps: int) -> int:
        """Up to so many steps go by without `ask`; returns how many, none of which is a sampled one."""
        if self._steps_left < 1:
            return steps
        passed = min(steps, self._steps_left - 1)
        self._steps_left -= passed
        return passed

    def _sample(self) -> None:
        began = _now()
        self._steps_left = self._gap()
        if _is_capturing():
            return  # the graph would hold the events, and the capture fail when they are read
        self._read()
        self._device_ns = self._hooked_ns
        self._stream = _current_stream(self._index)
        pair = self._pairs.take(self._index)
        pair.asked.record(self._stream)
        self.asking = pair
        self._ask_ns = _now() - began

    @property
    def _hooked_ns(self) -> int:
        """In calls that give the device work or wait for it."""
        tally = self._transfers.tally
        return tally.hooked_ns - tally.pin_ns

    def handed_over(self, batch: Any, wait_ns: int) -> int:
        """The loop is about to get the batch that it waited for.

        Returns:
            What to add to the step's own time, in which the time of `ask` is already.
        """
        began = _now()
        pair, self.asking = self.asking, None
        assert pair is not None
        try:
            pair.given.record(self._stream)
            pair.wait_ns = wait_ns
            self._pending.append(pair)
            first = next(tensors_of(batch), None)
            if self._hooked_ns != self._device_ns or (first is not None and not first.is_cpu):
                self._refuse(LOADER_USES_DEVICE)
        except Exception as error:
            self._give_up(error)
        # beyond twice the cost the device's queue was full, and the script's next launch would have waited instead
        return int(min(self._ask_ns + _now() - began, 2 * self._cost_ns)) - self._ask_ns

    def close(self) -> None:
        """Counting ends."""
        self.asking = None
        self._steps_left = 0
        if self._why_not is None:
            try:
                self._read()
            except Exception as error:
                self._give_up(error)

    def _read(self) -> None:
        """Read the pairs that the device is done with, in the order in which it does them."""
        while self._pending and self._pending[0].given.query():
            pair = self._pending.popleft()
            elapsed_ms, wait_ms = _elapsed_ms(pair.asked, pair.given), pair.wait_ns / 1e6
            self._pairs.give_back(pair)
            self._sampled += 1
            self._wait_ms += wait_ms
            # recording takes a few microseconds beside the wait
            self._starved_ms += min(elapsed_ms, wait_ms)

    def _give_up(self, error: Exception) -> None:
        """A device that has failed tells the script so in its own next call."""
        self._refuse(f"the device's events failed: {(str(error).splitlines() or [type(error).__name__])[0]}")

    def _refuse(self, reason: str) -> None:
        self._why_not = reason
        self._steps_left = 0
        self._pending.clear()

    def record(self) -> dict[str, Any] | None:
        """The record's `Starvation`; None where nothing was sampled."""
        if self._why_not is not None or not self._sampled:
            return None
        return {
            "device": f"cuda:{self._index}",
            "sampled_steps": self._sampled,
            "starved_ms": self._starved_ms,
            "wait_ms": self._wait_ms,
            "cost_us": self._cost_ns / 1e3,
        }

    @property
    def missing(self) -> str:
        """Why `record` gave None."""
        if self._why_not is not None:
            return self._why_not
        if not self._cost_ns:
            return "no step was counted"
        return (
            f"none of its steps was sampled: a step takes {self._step_ns / 1e6:.3g} ms, to sample it costs "
            f"{self._cost_ns / 1e3:.3g} µs, so that it is done in one step of {self._mean_gap}"
        )


def _why_not_here() -> str | None:
    """Why nothing can be sampled in this process and thread."""
    if not device.cuda_in_use():
        kind = device.accelerator()
        if kind is None:
            return "no accelerator"
        return UNUSED if kind == "cuda" else f"events are read from CUDA and ROCm devices only, not from {kind}"
    return None if threading.current_thread() is threading.main_thread() else OTHER_THREAD
