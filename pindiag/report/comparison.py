"""Two runs beside each other as text and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pindiag import figures
from pindiag.comparison_model import ComparedFigure, ComparedRate, Comparison
from pindiag.report import _templates, names
from pindiag.report.doctor import Section
from pindiag.report.html import policy_hash
from pindiag.report.ticket import markdown_cell

_NOT_MEASURED = "not measured"
_HEADER = ("", "base", "new", "ratio")
_MEMORY_WORDS = {"pss": "processes (PSS)", "pinned": "pinned", "shm": "shared"}


def conclusion(compared: Comparison) -> str:
    """What is shown about the script as written, in one sentence."""
    rate = compared.throughput[0]
    if rate.ratio is None:
        return f"Nothing to compare: {rate.reason}."
    if rate.ci95 is None:
        return f"As written: {figures.ratio(rate.ratio)}, too few values for an interval."
    gain = f"{figures.ratio(rate.ratio)} (95 % interval {figures.interval(rate.ci95)})"
    if rate.ci95[0] <= 1 <= rate.ci95[1]:
        return f"No difference shown: as written, the new run is {gain} as fast as the base."
    return f"As written, the new run is {'faster' if rate.ratio > 1 else 'slower'}: {gain}."


def sections(compared: Comparison) -> list[Section]:
    """The conclusion, then throughput, what must be known of it, verdicts, stages, memory, and what else differs."""
    found = [
        Section(conclusion(compared)),
        Section("Throughput, samples/s", _HEADER, [_rate(rate) for rate in compared.throughput]),
        Section("To be known", notes=compared.notes),
        Section("Verdicts", ("", "base", "new"), _verdicts(compared)),
        Section("A step as written, ms", _HEADER, [_figure(one) for one in compared.stages]),
        Section("Memory as written", _HEADER, [_figure(one) for one in compared.memory]),
        Section("What else differs", ("", "base", "new"), _differences(compared)),
    ]
    return [one for one in found if one.rows or one.notes or one is found[0]]


def render_comparison(compared: Comparison, version: str) -> str:
    """The page as text.

    Args:
        compared: redacted, as `redact` gives it.
        version: pindiag's own.

    Raises:
        TemplateMissing: the installation is broken.
    """
    style = _templates.asset("report.css")
    return _templates.template("comparison.html.j2").render(
        title=conclusion(compared),
        sections=sections(compared)[1:],
        compared=compared,
        version=version,
        style=Markup(style),
        style_hash=policy_hash(style),
    )


def render_comparison_summary(compared: Comparison) -> str:
    """The conclusion and the throughput in Markdown."""
    rows = [("", *_HEADER[1:]), ("---",) * len(_HEADER), *map(_rate, compared.throughput)]
    table = ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in rows]
    return "\n".join([f"**{conclusion(compared)}**", "", *table, ""])


def _verdicts(compared: Comparison) -> list[tuple[str, ...]]:
    base, new = compared.base, compared.new
    rows = [
        ("run", base.source, new.source),
        ("begun", base.started_utc or "not known", new.started_utc or "not known"),
        ("verdict", base.headline, new.headline),
        ("cause", _cause(base.primary_cause, base.confidence), _cause(new.primary_cause, new.confidence)),
        ("recommended", base.recommended or "no change", new.recommended or "no change"),
    ]
    return [row for row in rows if any(row[1:])]


def _cause(cause: str | None, confidence: str) -> str:
    return f"{cause}, {confidence}" if cause else "none"


def _rate(rate: ComparedRate) -> tuple[str, ...]:
    sides = (rate.base_samples_per_second, rate.new_samples_per_second)
    shown = [_NOT_MEASURED if side is None else figures.significant(side) for side in sides]
    if rate.ratio is None:
        return rate.name, *shown, _NOT_MEASURED
    return rate.name, *shown, f"{figures.ratio_with_interval(rate.ratio, rate.ci95)}, {rate.source}"


def _figure(one: ComparedFigure) -> tuple[str, ...]:
    written = figures.milliseconds if one.unit == "ms" else figures.byte_size
    shown = [_NOT_MEASURED if side is None else written(side) for side in (one.base, one.new)]
    ratio = figures.ratio(one.new / one.base) if one.base and one.new is not None else "–"
    label = names.STAGE_WORDS[one.name] if one.unit == "ms" else _MEMORY_WORDS[one.name]
    return label, *shown, ratio


def _differences(compared: Comparison) -> Sequence[tuple[str, ...]]:
    return [(names.words(one.name), str(one.base), str(one.new)) for one in compared.differences]
