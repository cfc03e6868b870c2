"""Over time: the machine while blocks ran, and a timeline of some steps."""

from __future__ import annotations

from collections.abc import Mapping

from pindiag.model import Drawing
from pindiag.report.charts import machine, timeline
from pindiag.report.charts._svg import Chart


def machine_chart(drawing: Drawing, title: str) -> tuple[Chart | None, list[str]]:
    """Small multiples, and the titles of those that nothing was recorded for."""
    if drawing.series is None or not drawing.series.t_s:
        return None, []
    shown, missing = machine.panels(drawing.series)
    if not shown:
        return None, missing
    bins = (
        " Lines are drawn from the least and the largest value of each bin." if machine.binned(drawing.series) else ""
    )
    caption = f"Seconds since the run began. Grey bands: counted blocks, whose treatment the records name.{bins}"
    return Chart(machine.chart(drawing.series, shown, title), title, caption), missing


def timeline_chart(drawing: Drawing, labels: Mapping[str, str], spoken: str) -> Chart | None:
    """Who waits for whom; None where no trace was recorded."""
    if not drawing.timeline:
        return None
    trial = drawing.timeline_trial or ""
    title = f"Some steps of {labels.get(trial, trial) or 'the script'}"
    caption = "From the profiler window after the counted blocks. Hollow bars are waits."
    return Chart(timeline.chart(drawing.timeline, spoken, title), title, caption)
