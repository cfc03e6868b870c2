"""Who waits for whom in the steps of a timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pindiag.analysis.intervals import Spans, length, outside, shared, union
from pindiag.model import Span, Waits

MUCH = 0.2
"""Of the steps: what waits less waits for nobody in particular."""
MOST = 0.5
"""Of a wait: what is busy for that long is what is waited for."""
FULL = 0.75
"""Of the steps: a GPU that runs for that long is the limit itself; the profiler slows all that feeds it."""
WORK = ("operators", "backward", "optimizer", "python")
BUSY = ("fetch", "collate", "hand-off")


def who_waits(found: Sequence[Span], end_ms: float, *, workers: bool) -> Waits | None:
    """What is waited for most; None where it is nothing, or cannot be said.

    Args:
        found: bars from 0 to `end_ms`.
        end_ms: see `found`.
        workers: whether the loader has some.
    """

    def of_main(*names: str) -> Spans:
        return _union(found, ("main",), names)

    gpu = _union(found, ("copies", "kernels"))
    waits = {name: of_main(name) for name in ("wait", "transfer", "synchronise")}
    most = max(waits, key=lambda name: length(waits[name]))
    wait = waits[most]
    if length(wait) > MUCH * end_ms:
        return _behind(found, most, wait, workers)
    if length(gpu) >= FULL * end_ms:
        return "all_for_gpu"
    idle = outside(gpu, 0.0, end_ms)
    if len(gpu) and length(idle) > MUCH * end_ms and shared(idle, of_main(*WORK)) > MOST * length(idle):
        return "gpu_for_main"
    return None


def _behind(found: Sequence[Span], stage: str, wait: Spans, workers: bool) -> Waits | None:
    """What is busy while the main thread waits."""

    def busy(lanes: Collection[str], names: Collection[str] = ()) -> bool:
        return shared(wait, _union(found, lanes, names)) > MOST * length(wait)

    if stage != "wait":
        return "main_for_copies" if busy(("copies",)) else "main_for_gpu" if busy(("kernels",)) else None
    if not workers:
        return "main_for_itself"
    if busy(("pin thread",)):
        return "main_for_pin_thread"
    lanes = {span.lane for span in found if span.lane.startswith("worker ")}
    return "main_for_workers" if busy(lanes, BUSY) else "main_for_loader"


def _union(found: Sequence[Span], lanes: Collection[str], names: Collection[str] = ()) -> Spans:
    bars = [(bar.start_ms, bar.end_ms) for bar in found if bar.lane in lanes and (not names or bar.name in names)]
    return union(np.array(bars, dtype=float).reshape(-1, 2))
