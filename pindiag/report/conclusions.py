"""Headings: each section says what its figures show, or that they show nothing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from pindiag import figures
from pindiag.model import Finding, NoiseFloor, PatchVerification, Report, Series, Verification
from pindiag.report import about, names
from pindiag.report.charts._svg import Row
from pindiag.report.charts.stages import Steps

_STAGE_NOUNS = {
    "wait": "the wait for the batch",
    "transfer": "the transfer",
    "pin": "pinning by hand",
    "synchronise": "synchronising",
    "optimizer": "the optimizer",
    "script": "the script's own part",
    "rest": "the rest of the step",
}
_FULL_CORE_PERCENT = 95.0
_LOW_MEMORY_SHARE = 0.1
_PRESSED_SHARE = 0.1
"""Limits of the machine are spoken of from here on; the charts show all values."""
_MOVED = 0.25
"""Of what a step gains or loses in all: what a part must have moved for a word about it."""
AS_FAST = 1.02
"""What is at most this much slower counts as equally fast, as in the recommendation."""
_SAME_MEMORY = 0.02
"""Share of its memory by which a configuration must differ from another for a word about it."""


def why(report: Report, finding: Finding | None) -> str:
    """The primary finding's own title."""
    if finding is not None:
        return finding.title
    if not any(trial.status == "measured" for trial in report.trials):
        return f"No experiment ran: {ending(report)}"
    return "No cause was found by what was measured"


def reached(rows: Sequence[Row]) -> str:
    """Heading of the chart on the first screen."""
    chosen = next((row for row in rows if row.role == "chosen"), None)
    if chosen is None:
        return "What each configuration reached"
    top = max(rows, key=_median)
    words = _quoted(chosen)
    return f"{words} trains fastest" if top is chosen else f"{words}: the cheapest within 2 % of the fastest"


def sweep(rows: Sequence[Row], floor: NoiseFloor) -> str:
    """Which configurations lie wholly above the script as written."""
    others = [row for row in rows if row.role != "baseline" and row.trial.versus_baseline]
    decided = [(row, ci) for row in others if row.trial.versus_baseline and (ci := row.trial.versus_baseline.ci95)]
    if not others:
        return "Nothing could be compared with the script as written"
    if not decided:
        return "Too few rounds for intervals: nothing is decided"
    edge = floor.ratio or 1.0
    above = [row for row, ci in decided if ci[0] > 1 and _ratio(row) > edge]
    below = [row for row, ci in decided if ci[1] < 1 and _ratio(row) < 1 / edge]
    if not above:
        slower = "" if not below else f"; {_number(len(below))} {'is' if len(below) == 1 else 'are'} slower"
        return f"No configuration is faster than the script as written beyond the noise{slower}"
    if len(above) == len(others):
        return f"Every configuration is faster than the script as written, most of all {_quoted(above[0])}"
    if len(above) <= 2:
        verb = "lies" if len(above) == 1 else "lie"
        words = " and ".join(_quoted(row) for row in above)
        return f"Only {words} {verb} wholly above the script as written"
    furthest = _quoted(above[0])
    return f"{len(above)} of {len(others)} configurations lie wholly above the script as written, {furthest} furthest"


def frontier(subject: Row, rows: Sequence[Row]) -> str:
    """What memory the recommended configuration, or the script as written, takes for what it reaches."""
    used = subject.trial.memory_bytes.total or 0
    if subject.role == "baseline":
        return _as_written_costs(subject, rows)
    fastest = max(rows, key=_median)
    if fastest is not subject:
        saved = (fastest.trial.memory_bytes.total or 0) - used
        price = f"{_less(saved)} memory than" if abs(saved) >= _SAME_MEMORY * used else "as much memory as"
        return (
            f"{_quoted(subject)} reaches {figures.share(_median(subject) / _median(fastest))} of the fastest, "
            f"{_quoted(fastest)}, with {price} it"
        )
    baseline = next((row for row in rows if row.role == "baseline"), None)
    saved = 0 if baseline is None else (baseline.trial.memory_bytes.total or 0) - used
    if baseline is None or abs(saved) < _SAME_MEMORY * used:
        return f"{_quoted(subject)} is the fastest and needs {figures.byte_size(used)}"
    return f"{_quoted(subject)} is the fastest, with {_less(saved)} memory than the script as written"


def _as_written_costs(subject: Row, rows: Sequence[Row]) -> str:
    """Whether the script as written could be as fast in less memory, as far as intervals say."""
    used = subject.trial.memory_bytes.total or 0
    as_fast = [row for row in rows if row is not subject and _no_slower(row)]
    least = min(as_fast, key=lambda row: row.trial.memory_bytes.total or 0, default=None)
    saved = 0 if least is None else used - (least.trial.memory_bytes.total or 0)
    if least is None or saved < _SAME_MEMORY * used:
        return f"The script as written needs {figures.byte_size(used)}"
    return f"{_quoted(least)} is as fast as the script as written, with {_less(saved)} memory"


def _no_slower(row: Row) -> bool:
    interval = _interval(row)
    return interval is not None and interval[0] >= 1 / AS_FAST


def _less(saved_bytes: float) -> str:
    return f"{figures.byte_size(abs(saved_bytes))} {'less' if saved_bytes > 0 else 'more'}"


def batch_sizes(rows: Sequence[Row]) -> str:
    """What the fastest of the other batch sizes is shown to bring, never without what it means."""
    others = [row for row in rows if row.role != "baseline"]
    shown = [row for row in others if (ci := _interval(row)) is not None and ci[0] > 1]
    best = max(shown, key=_ratio, default=None)
    if best is None:
        return "No other batch size is shown to bring more samples a second"
    gain = figures.ratio_with_interval(_ratio(best), _interval(best))
    size = best.trial.configuration.batch_size
    return f"A batch size of {size} brings {gain} the samples a second, and changes training"


def stages(steps: Sequence[Steps]) -> str:
    """Which part of the step moves where."""
    baseline = next((one for one in steps if one.row.role == "baseline"), None)
    chosen = next((one for one in steps if one.row.role == "chosen"), None)
    shown = baseline or chosen or (steps[0] if steps else None)
    if shown is None or not shown.parts:
        return "Where a step goes was not measured"
    if baseline is None or chosen is None:
        part, value = max(shown.parts.items(), key=lambda item: item[1])
        return f"The largest part of a step is {_STAGE_NOUNS[part]}: {_ms(value)} of {_ms(shown.total)} ms"
    moved = {
        part: chosen.parts.get(part, 0.0) - baseline.parts.get(part, 0.0) for part in {**baseline.parts, **chosen.parts}
    }
    told = [part for part, ms in moved.items() if abs(ms) >= max(0.05, _MOVED * abs(chosen.total - baseline.total))]
    parts = [
        f"{_ms(abs(moved[part]))} ms {'less' if moved[part] < 0 else 'more'} for {_STAGE_NOUNS[part]}" for part in told
    ]
    whole = f"As recommended a step takes {_ms(chosen.total)} instead of {_ms(baseline.total)} ms"
    return f"{whole}: {names.listing(sorted(parts, key=lambda words: 'more' in words))}" if parts else whole


def machine(series: Series | None, reason: str | None, report: Report) -> str:
    """What was at its limit while blocks ran."""
    if series is None:
        return f"The machine was not watched: {reason or 'no reason was recorded'}"
    found = []
    if (_inside(series, series.main_cpu_percent) or 0) >= _FULL_CORE_PERCENT:
        found.append("the main process keeps its core busy")
    total = report.environment.get("memory_bytes")
    free = [value for value in series.memory_available_bytes if value is not None]
    if free and isinstance(total, int) and min(free) < _LOW_MEMORY_SHARE * total:
        found.append(f"memory runs low ({figures.byte_size(min(free))} left)")
    pressures = {
        "tasks queue for a CPU": series.psi_cpu_share,
        "tasks stall on storage": series.psi_io_share,
        "tasks stall for memory": series.psi_memory_share,
    }
    for words, values in pressures.items():
        share = _inside(series, values)
        if share is not None and share >= _PRESSED_SHARE:
            found.append(f"{words} {figures.share(share)} of the time")
    return _capital(names.listing(found)) if found else "No resource of the machine was at its limit in the blocks"


def causes(findings: Sequence[Finding]) -> str:
    """How many findings of each kind."""
    counts = [(word, sum(one.status == status for one in findings)) for status, word in names.STATUS_WORDS.items()]
    parts = [f"{_number(count)} {word.lower()}" for word, count in counts if count]
    return _capital(", ".join(parts)) if parts else "No rule could be asked: nothing was measured"


def factors(report: Report) -> str:
    """How many of the six rules of thumb could be held against a measurement."""
    count = sum(bool(factor.measured) and "not measured" not in factor.measured.lower() for factor in report.factors)
    if not report.factors:
        return "No rule of thumb could be checked by a measurement"
    return (
        f"{_capital(_number(count))} of {_number(len(report.factors))} rules of thumb could be checked by a measurement"
    )


def verification(verified: Verification) -> str:
    """What fresh pairs say of the gain."""
    gain = figures.ratio_with_interval(verified.ratio, verified.ci95)
    pairs = about.pairs(verified)
    if verified.agrees_with_live is False:
        return f"Live and fresh disagree: {pairs} give {gain}"
    borne_out = verified.ci95 is not None and verified.ci95[0] > 1
    return (
        f"{pairs} that did not choose it bear the gain out: {gain}"
        if borne_out
        else f"{pairs} do not settle it: {gain}"
    )


def patched(verified: PatchVerification) -> str:
    """What the patch gives, measured with it in the files."""
    if verified.ratio is None:
        return f"The patch was not measured: {verified.reason}"
    gain = figures.ratio_with_interval(verified.ratio, verified.ci95)
    pairs = about.pairs(verified)
    shown = verified.ci95 is not None and verified.ci95[0] > 1
    set_by_hand = names.listing([f"{name}={value}" for name, value in verified.by_hand.items()])
    patch = f"the patch, with {set_by_hand} set by hand," if set_by_hand else "the patch"
    if shown:
        return f"{_capital(patch)} gives {gain} in {pairs}"
    return f"No gain of {patch} is shown by {pairs}: {gain}"


def records(report: Report) -> str:
    """How many blocks stand below, and how many of them count."""
    counted = sum(block.status == "counted" for block in report.blocks)
    total = len(report.blocks)
    if not total:
        return "There is no block"
    if counted == total:
        return f"All {total} blocks were counted" if total > 1 else "The one block was counted"
    return f"{counted} of {total} blocks were counted"


def _quoted(row: Row) -> str:
    """A label that holds commas, told apart from the sentence around it."""
    return f"“{row.label}”"


def ending(report: Report) -> str:
    """How the script ended, where nothing was measured."""
    return f'the script\'s exit was "{report.target.exit}"'


def _ratio(row: Row) -> float:
    return row.trial.versus_baseline.ratio if row.trial.versus_baseline else 1.0


def _interval(row: Row) -> tuple[float, float] | None:
    return row.trial.versus_baseline.ci95 if row.trial.versus_baseline else None


def _median(row: Row) -> float:
    return row.trial.samples_per_second.median if row.trial.samples_per_second else 0.0


def _inside(series: Series, values: Sequence[float | None]) -> float | None:
    """Mean over the blocks, which do not overlap."""
    bands = sorted((band.start_s, band.end_s) for band in series.bands)
    starts, ends = [start for start, _ in bands], [-math.inf, *(end for _, end in bands)]
    found = [
        value
        for at, value in zip(series.t_s, values, strict=True)
        if value is not None and math.isfinite(value) and at <= ends[bisect_right(starts, at)]
    ]
    return sum(found) / len(found) if found else None


_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ms(value: float) -> str:
    return figures.milliseconds(value)
