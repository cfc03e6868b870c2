"""Which operators waited for the device in a profiler window: also those that no hook of the probe sees."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pindiag.analysis.main_thread import MainThread
from pindiag.analysis.trace import Event

OPERATOR = "aten::"


@dataclass(frozen=True)
class OperatorWait:
    """Waits of one kind in the window."""

    name: str
    """The outermost operator around the waiting call (`tensor[mask]` is aten::index); without one, that call."""
    calls: int
    us: float


def operator_waits(events: Sequence[Event], main: MainThread) -> list[OperatorWait]:
    """Waits of the main thread by operator, the longest first; those of copies to the device are transfers."""
    starts = main.transfers[:, 0]
    ends = main.transfers[:, 1]
    of_thread = _outermost(events)
    found: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for call in main.waiting:
        place = starts.searchsorted(call.ts, side="right") - 1
        if call.tid == main.tid and place >= 0 and call.ts < ends[place]:
            continue
        around = _around(call, of_thread.get(call.tid, []))
        found[around.name][around.ts] += call.dur
    waits = [OperatorWait(name, len(each), sum(each.values())) for name, each in found.items()]
    return sorted(waits, key=lambda wait: wait.us, reverse=True)


def _outermost(events: Iterable[Event]) -> dict[int | str, list[Event]]:
    """Operators that no other one holds, by thread and in the order of time."""
    threads: dict[int | str, list[Event]] = defaultdict(list)
    operators = (event for event in events if event.cat == "cpu_op" and event.name.startswith(OPERATOR))
    for event in sorted(operators, key=lambda event: (event.ts, -event.dur)):
        before = threads[event.tid]
        if not before or event.ts >= before[-1].ts + before[-1].dur:
            before.append(event)
    return threads


def _around(call: Event, operators: Sequence[Event]) -> Event:
    place = bisect_right(operators, call.ts, key=lambda event: event.ts) - 1
    if place < 0:
        return call
    operator = operators[place]
    return operator if call.ts < operator.ts + operator.dur else call
