"""Where a step goes: stages of the main thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pindiag import figures
from pindiag.model import Fact, Report
from pindiag.report import conclusions, names
from pindiag.report.charts import stages
from pindiag.report.charts._svg import ACCENT, BAR, BG, LINE, MUTED, SOFT, Chart
from pindiag.report.charts.stages import Steps

_SWATCHES = {ACCENT: "k1", BAR: "k2", SOFT: "k3", MUTED: "k4", BG: "k5", LINE: "k6"}


def chart(steps: Sequence[Steps], spoken: str) -> Chart | None:
    """A stacked bar each; None for a single one, which a table shows better."""
    if len(steps) < 2:
        return None
    title = conclusions.stages(steps)
    merged = " What was not measured apart is in the rest of the step." if any("rest" in s.parts for s in steps) else ""
    return Chart(stages.chart(steps, spoken, title), title, f"Main thread, mean of the counted steps, ms.{merged}")


def notes(report: Report) -> list[str]:
    """How long the GPU was starved, what is pinned by hand or not at all, and which operators wait for the device."""
    own = {fact.name: fact for fact in report.facts if fact.trial == report.baseline}
    found = _starved(report, own)
    pinned = own.get("hand_pin_ms_per_step")
    if pinned is not None and isinstance(pinned.value, float) and pinned.value > 0:
        places = pinned.source.partition("; ")[0]
        found.append(f"As written it pins by hand for {figures.milliseconds(pinned.value)} ms a step: {places}.")
    found += _unpinned(report)
    waits = own.get("window_sync_operators")
    if waits is not None and waits.value is not None:
        found.append(f"As written these operators wait for the device in the profiler window: {waits.value}.")
    return found


def _unpinned(report: Report) -> list[str]:
    """Batches that were to be pinned and were not."""
    trials = [fact.trial for fact in report.facts if fact.name == "batch_pinned" and fact.value is False]
    if not trials:
        return []
    where = names.listing([names.labels(report.trials).get(trial or "", trial or "") for trial in trials])
    what = f"Batches came out unpinned, or in part, although pinning was asked for: {where}."
    return [f"{what} A batch of a class of its own needs a method pin_memory()."]


def _starved(report: Report, own: Mapping[str, Fact]) -> list[str]:
    """As written and as recommended, where the GPU's own clock was asked."""
    chosen = report.recommendation.trial if report.recommendation else report.baseline
    written = _nothing_to_do(own)
    better = _nothing_to_do({fact.name: fact for fact in report.facts if fact.trial == chosen})
    if written is None:
        return []
    also = f"; as recommended, for {better}" if better and chosen != report.baseline else ""
    source = own["gpu_starved_ms"].source
    return [f"As written the GPU had nothing to do for {written} while the script waited for a batch{also} ({source})."]


def _nothing_to_do(own: Mapping[str, Fact]) -> str | None:
    starved, step = (own[name].value if name in own else None for name in ("gpu_starved_ms", "step_ms"))
    if not isinstance(starved, float) or not isinstance(step, float):
        return None
    return f"{figures.milliseconds(starved)} ms of a step's {figures.milliseconds(step)} ms"


def faces(steps: Sequence[Steps], spoken: str) -> dict[str, str]:
    """Words of each stage shown, and the class of its swatch."""
    present = {part for one in steps for part in one.parts}
    classes = {part: _SWATCHES[face] for part, (face, _) in stages.faces(spoken).items()}
    return {names.STAGE_WORDS[part]: classes[part] for part in (*names.STAGES, "rest") if part in present}
