"""The slow steps: how many, how regularly, and why the slowest are slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Drawing, SlowStep, Span
from pindiag.report import names
from pindiag.report.charts import strip
from pindiag.report.charts._svg import Chart

_MUCH = 0.5
"""Of what a step took longer: what has this share of it is why."""
_LONGER = 1.25
"""A batch that took no longer than this times the median took no longer than usual."""
_FEW = 0.02
"""Below this share of the steps, the first sentence says that few are slow."""


def strip_chart(drawing: Drawing) -> Chart | None:
    """The steps of the block that has the slowest one; None where no step was timed."""
    if len(drawing.strip_ms) < 2 or drawing.strip_block is None:
        return None
    marked = [slow.step for slow in drawing.slow_steps if slow.block == drawing.strip_block]
    part = strip.shown(drawing.strip_ms, marked[0] - 1 if marked else 0)
    title = heading(drawing)
    cut = f", {len(part)} of its {len(drawing.strip_ms)} steps" if len(part) < len(drawing.strip_ms) else ""
    caption = f"Block {drawing.strip_block}{cut}. Hollow: the wait for the batch; filled: the rest of the step." + (
        " A triangle marks those in the table." if marked else ""
    )
    svg = strip.chart(
        [drawing.strip_ms[at] for at in part],
        [drawing.strip_wait_ms[at] for at in part],
        part.start + 1,
        marked,
        title,
    )
    return Chart(svg, title, caption)


def heading(drawing: Drawing) -> str:
    """How many steps are slow, and whether they come at a regular distance."""
    if not drawing.slow_count:
        return f"No step is slow: none of {figures.count(drawing.step_count)} took 1.25 × the median of its block"
    if drawing.slow_every is not None:
        often = {2: "second", 3: "third"}.get(drawing.slow_every, f"{drawing.slow_every}th")
        return f"Every {often} step is slow{_shared_reason(drawing.slow_steps)}"
    few = "Only " if drawing.slow_count < _FEW * drawing.step_count else ""
    counted = f"{few}{figures.count(drawing.slow_count)} of {figures.count(drawing.step_count)} steps"
    return f"{counted} took more than 1.25 × the median{_shared_reason(drawing.slow_steps)}"


def _shared_reason(slow: Sequence[SlowStep]) -> str:
    waiting = sum(_waited(step) for step in slow)
    if waiting == len(slow):
        return ": the slowest waited for their batches"
    return "" if waiting else ": the slowest waited no longer than usual, their own part took longer"


def _waited(slow: SlowStep) -> bool:
    longer = slow.ms - slow.usual_ms
    return slow.wait_ms - slow.usual_wait_ms >= _MUCH * longer


def why(slow: SlowStep, workers: int) -> str:
    """Why a step took longer than usual, in a sentence."""
    if not _waited(slow):
        return "It waited no longer than usual for its batch: its own part took longer."
    if not workers:
        return "The main thread needed longer to load the batch itself."
    if slow.handed is False:
        return "No batch came in while it waited: it was made by then, and was on its way from worker to main thread."
    if slow.worker is None or slow.batch_ms is None or slow.usual_batch_ms is None:
        return "It waited, and no record says for which worker's batch."
    took = f"{figures.milliseconds(slow.batch_ms)} ms, usually {figures.milliseconds(slow.usual_batch_ms)} ms"
    if slow.batch_ms > _LONGER * slow.usual_batch_ms:
        return f"Worker {slow.worker} took longer to make the batch that it waited for ({took})."
    return f"Worker {slow.worker} made the batch as fast as usual ({took}) and had begun it {_begun(slow)}."


def _begun(slow: SlowStep) -> str:
    before = slow.begun_before_ms or 0.0
    return f"only {figures.milliseconds(abs(before))} ms {'before' if before >= 0 else 'after the start of'} the step"


def lanes(spans: Sequence[Span]) -> list[tuple[str, str, float]]:
    """What each lane did, in milliseconds: the drawing in numbers."""
    sums: dict[tuple[str, str], float] = {}
    for span in spans:
        sums[span.lane, span.name] = sums.get((span.lane, span.name), 0.0) + span.end_ms - span.start_ms
    return [(lane, names.span(name), ms) for (lane, name), ms in sorted(sums.items(), key=_by_lane)]


def _by_lane(entry: tuple[tuple[str, str], float]) -> tuple[bool, str, float]:
    (lane, _), ms = entry
    return (not lane.startswith("worker"), lane, -ms)


def script(facts: Mapping[str, float | None]) -> list[tuple[str, float]]:
    """What `script` is made of in the profiler window, milliseconds of a mean step; empty where no window tells."""
    words = {
        "script_operators_ms": "operators, forward",
        "script_launch_ms": "calls that launch",
        "script_backward_ms": "backward",
        "script_python_ms": "Python and all else",
    }
    return [(said, value) for name, said in words.items() if (value := facts.get(name)) is not None]
