"""What the main thread of a profiler window did: one thing at each moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pindiag.analysis.intervals import Spans, intersection, outside, spans, union
from pindiag.analysis.trace import NEXT_BATCH, STEP, Event, is_runtime, launches, synchronises, window

BACKWARD_GAP_US = 100.0
"""Between two nodes of one backward pass the engine needs less than this."""
TRANSFERS = frozenset(("aten::to", "aten::_to_copy", "aten::copy_"))

Parts = Mapping[str, Spans]
"""What a thread did, by name; the spans of all parts together fill the window, and none overlap."""


class MainThread:
    """The thread that takes batches, with the threads that run its backward pass.

    Args:
        events: of the whole trace.
        start: of the window, microseconds, as `end`.
        end: see `start`.
        steps: in the window.

    Attributes:
        start: as given, as `end` and `steps`.
        waiting: calls to the runtime that waited for the device, of the window.
    """

    def __init__(self, events: Sequence[Event], start: float, end: float, steps: int = 1) -> None:
        self.start, self.end, self.steps = start, end, steps
        marks = [event for event in events if event.name.startswith(NEXT_BATCH)]
        marks = marks or [event for event in events if event.name.startswith(STEP) and event.cat == "user_annotation"]
        self.tid = marks[0].tid if marks else None
        backward = {event.tid for event in events if _is_backward(event)}
        found: dict[str, list[Event]] = defaultdict(list)
        copies = {_correlation(event): event for event in events if event.cat == "gpu_memcpy"}
        for event in events:
            if event.tid == self.tid or event.tid in backward:
                for kind in self._kinds(event, copies):
                    found[kind].append(event)
        self.waiting = [event for event in found["synchronise"] if start <= event.ts < end]
        self._found = {kind: union(spans(of_kind)) for kind, of_kind in found.items()}
        self._found["backward"] = union(self._spans("backward"), BACKWARD_GAP_US)
        self._found["transfer"] = self._holding_copies(found["moves"])

    @classmethod
    def of(cls, events: Sequence[Event]) -> MainThread | None:
        """In the window that a trace marks; None where it marks no step."""
        bounds = window(events)
        return None if bounds is None else cls(events, *bounds)

    def _kinds(self, event: Event, copies: Mapping[object, Event]) -> Iterator[str]:
        if is_runtime(event):
            copy = copies.get(_correlation(event)) if "emcpy" in event.name else None
            if synchronises(event) or (copy is not None and _waits_for(event, copy)):
                yield "synchronise"
            elif copy is not None or launches(event):
                yield "launch"
            if copy is not None and "HtoD" in copy.name:
                yield "copies in"
        elif _is_backward(event):
            yield "backward"
        elif event.tid == self.tid and event.name.startswith(NEXT_BATCH):
            yield "wait"
        elif event.tid == self.tid and event.cat == "user_annotation" and event.name.startswith("Optimizer.step"):
            yield "optimizer"
        elif event.tid == self.tid and event.cat == "cpu_op":
            yield "operators"
            if event.name in TRANSFERS:
                yield "moves"

    def _spans(self, kind: str) -> Spans:
        return self._found.get(kind, np.empty((0, 2)))

    def _holding_copies(self, moves: Sequence[Event]) -> Spans:
        """Operators in which a copy to the device was asked for."""
        calls = self._spans("copies in")[:, 0]
        found = spans(moves)
        first, last = np.searchsorted(calls, found[:, 0]), np.searchsorted(calls, found[:, 1])
        return union(found[last > first])

    @property
    def stages(self) -> Parts:
        """The stages of a step; what is left of it is split into launches, backward, operators and Python."""
        return self._split("wait", "transfer", "synchronise", "optimizer", "launch", "backward", "operators")

    @property
    def transfers(self) -> Spans:
        """Operators that gave the device something of the host's, waiting or not."""
        return self._spans("transfer")

    @property
    def lane(self) -> Parts:
        """As `stages`; launches belong to what launched them."""
        return self._split("wait", "transfer", "synchronise", "optimizer", "backward", "operators")

    @property
    def feeding(self) -> Parts:
        """What keeps it from giving the device more work, or is giving it; backward counts as operators."""
        return self._split("wait", "synchronise", "launch", "backward", "operators")

    def _split(self, *kinds: str) -> Parts:
        """Each moment goes to the first kind that has it, and to Python where none has."""
        free = np.array([[self.start, self.end]])
        parts: dict[str, Spans] = {}
        for kind in kinds:
            found = self._spans(kind)
            parts[kind] = intersection(found, free)
            free = intersection(outside(found, self.start, self.end), free)
        return {**parts, "python": free}


def _is_backward(event: Event) -> bool:
    return event.cat == "cpu_op" and event.name.startswith("autograd::engine")


def _correlation(event: Event) -> object:
    return event.args.get("correlation")


def _waits_for(call: Event, copy: Event) -> bool:
    """Whether a call to copy returned only when most of it was done: pageable memory, or a blocking call."""
    return call.ts + call.dur >= copy.ts + copy.dur / 2
