"""Over time: the machine while blocks ran, and a timeline of some steps."""

from __future__ import annotations

from collections.abc import Mapping

from pindiag import figures
from pindiag.model import Drawing, Report, Waits
from pindiag.report.charts import machine, timeline
from pindiag.report.charts._svg import Chart

_WAITS: Mapping[Waits, str] = {
    "main_for_workers": "The main thread waits for its workers",
    "main_for_pin_thread": "The main thread waits for the pin thread",
    "main_for_loader": "The main thread waits for its loader",
    "main_for_itself": "The main thread loads its batches itself, and nothing else meanwhile",
    "main_for_copies": "The main thread waits for copies to the GPU",
    "main_for_gpu": "The main thread waits for the GPU",
    "gpu_for_main": "The GPU waits for the main thread to give it work",
    "all_for_gpu": "Everything waits for the GPU",
}
_MEANWHILE = {
    "wait": "waiting for its loader",
    "synchronise": "waiting for the device",
    "launch": "launching",
    "operators": "in operators",
    "python": "in Python",
}
_WORTH_A_WORD = 0.01
_KERNELS_NAMED = 3


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
    """Who waits for whom; None where no step was recorded."""
    if not drawing.timeline:
        return None
    trial = drawing.timeline_trial or ""
    shown = f"ypical steps of {labels.get(trial, trial) or 'the script'}"
    title = f"{_WAITS[drawing.timeline_waits]}: t{shown}" if drawing.timeline_waits else f"T{shown}"
    records = f"Its blocks: {trial}." if trial else ""
    caption = " ".join(filter(None, (drawing.timeline_source, "Hollow bars are waits.", _notes(drawing), records)))
    return Chart(timeline.chart(drawing.timeline, drawing.timeline_steps_ms, spoken, title), title, caption)


def _notes(drawing: Drawing) -> str:
    """Words on bars that do not speak for themselves, where they are drawn."""
    names = {span.name for span in drawing.timeline}
    said = {
        "hand-off": "At the lower edge of a worker's lane: the thread that hands its batches over.",
        "python": "Python: all that is not in PyTorch, among it the release of a batch's memory.",
    }
    return " ".join(words for name, words in said.items() if name in names)


def of_gpu(report: Report, drawing: Drawing) -> str | None:
    """What kept the GPU of the drawn trial idle, and its longest kernels; None where its window does not tell."""
    gpu = next((trial.gpu for trial in report.trials if trial.id == drawing.timeline_trial), None)
    if gpu is None or gpu.idle is None or gpu.idle_share is None or gpu.busy_share is None:
        return None
    causes = {words: getattr(gpu.idle, name) for name, words in _MEANWHILE.items()}
    told = sorted((share, words) for words, share in causes.items() if share >= _WORTH_A_WORD)
    meanwhile = ", ".join(f"{words} ({figures.share(share)})" for share, words in reversed(told))
    longest = gpu.longest_kernels[:_KERNELS_NAMED]
    kernels = ", ".join(f"{kernel.name} ({figures.share(kernel.share)})" for kernel in longest)
    return (
        f"In the profiler window the GPU ran kernels for {figures.share(gpu.busy_share)} of the time and nothing for "
        f"{figures.share(gpu.idle_share)}"
        + (f", while the main thread was {meanwhile}" if meanwhile else "")
        + (f". Most of the kernels' time is that of {kernels}." if kernels else ".")
    )


def _before(drawing: Drawing) -> bool:
    """Whether the drawing of the slowest step begins before it."""
    return drawing.slowest_steps_ms[1:2] > [0.0] and len(drawing.slowest_steps_ms) > 2


def slowest_chart(drawing: Drawing, spoken: str) -> Chart | None:
    """The slowest step; None where none stands out."""
    if not drawing.slowest or drawing.slowest_over_median is None:
        return None
    over = figures.ratio(drawing.slowest_over_median)
    if not drawing.slow_steps:
        title, caption = f"The slowest of these steps took {over} as long as the median", ""
    else:
        slowest = drawing.slow_steps[0]
        title = f"The slowest step took {over} as long as the median of its block"
        caption = f"Step {slowest.step} of block {slowest.block}, from the probe's records. Hollow bars are waits." + (
            " What is left of the dashed line came before it, when its batch was begun." if _before(drawing) else ""
        )
    svg = timeline.chart(drawing.slowest, drawing.slowest_steps_ms, spoken, title, slug="slowest")
    return Chart(svg, title, caption)
