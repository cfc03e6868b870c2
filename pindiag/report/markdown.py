"""summary.md: at most 30 lines to paste into a ticket."""

from __future__ import annotations

import re

from pindiag import figures
from pindiag.model import Report, RunSpec
from pindiag.report import _templates, about, names
from pindiag.report import rows as trials
from pindiag.report.ceilings import ceilings
from pindiag.report.sections.method import limits
from pindiag.report.sections.verdict import Mark, main_fix, marks, next_step, training
from pindiag.report.text import clean, quantity

LONGEST = 30
_CODE = re.compile("(`[^`]+`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""A tracker would take it for HTML, and show nothing of it or load what it names."""
_MOST_ROWS = 6
_MOST_DIFF_LINES = 10
_MOST_GAPS = 6
_LONGEST_LINE = 400


def render_markdown(report: Report, spec: RunSpec) -> str:
    """The verdict, its figures and its patch in at most 30 lines of plain Markdown.

    Args:
        report: as `redact_report` gives it.
        spec: for the target's name and the commands to go on with.

    Raises:
        TemplateMissing: the installation is broken.
    """
    diff, more = _diff(report)
    text = _templates.template("summary.md.j2").render(
        headline=_line(report.verdict.headline),
        lead=_line(report.verdict.lead),
        sure=". ".join(_mark(mark) for mark in marks(report, names.primary_finding(report))) + ".",
        rates=_ceilings(report) or _rates(report),
        possible=_line(report.verdict.possible),
        error=_last_line(report.target.error),
        diff=diff,
        more_hunks=more,
        notes=_notes(report, spec),
    )
    return "\n".join(text.strip().splitlines()[:LONGEST]) + "\n"


def _line(text: str) -> str:
    """One line of a ticket: no line break or fence of the script's can end it."""
    # str.split() would take the narrow spaces out of figures.
    flat = re.sub(r"[ \t\r\n\v\f]+", " ", str(clean(text))).strip().replace("```", "'''")
    flat = "".join(part if part.startswith("`") else _TAG.sub(r"\\<", part) for part in _CODE.split(flat))
    return flat if len(flat) <= _LONGEST_LINE else f"{flat[: _LONGEST_LINE - 1]}…"


def _mark(mark: Mark) -> str:
    return f"{mark.word} {mark.more}".strip()


def _last_line(error: str | None) -> str:
    lines = (error or "").strip().splitlines()
    return _line(lines[-1]).replace("`", "'") if lines else ""


def _ceilings(report: Report) -> list[tuple[str, str, bool]]:
    """What the loop reaches without some of its stages, and training below it; empty where none was measured."""
    found = ceilings(report, names.primary_finding(report))
    if found is None:
        return []
    rows = [(row.label, figures.significant(row.rate.median), row.marked) for row in found.few if row.rate]
    return rows + [
        (label, figures.significant(one.samples_per_second.median), False)
        for label, one in training(report)
        if one.samples_per_second
    ]


def _rates(report: Report) -> list[tuple[str, str, bool]]:
    """The fastest configurations, and in any case the recommended one and the script as written."""
    rows = [row for row in trials.configurations(report, names.labels(report.trials)) if row.trial.samples_per_second]
    wanted = [row for row in rows if row.role != "other"]
    kept = wanted + [row for row in rows if row.role == "other"][: _MOST_ROWS - len(wanted)]
    return [
        (row.label, figures.significant(row.trial.samples_per_second.median), row.role == "chosen")
        for row in rows
        if row in kept and row.trial.samples_per_second
    ]


def _diff(report: Report) -> tuple[list[str], int]:
    """The first hunks of the patch that fit, and the number of those that do not."""
    fix = main_fix(report)
    if fix is None or not fix.patch:
        return [], 0
    pieces = re.split(r"^(?=@@ )", fix.patch, flags=re.MULTILINE)
    lines, hunks = pieces[0].splitlines(), pieces[1:]
    for index, hunk in enumerate(hunks):
        added = hunk.splitlines()
        if index and len(lines) + len(added) > _MOST_DIFF_LINES:
            return lines, len(hunks) - index
        lines += added[:_MOST_DIFF_LINES]
    return lines, 0


def _by_hand(report: Report) -> list[str]:
    """What the patch leaves to the user, so that nobody applies half a change."""
    fix = main_fix(report)
    lines = fix.snippet.splitlines() if fix is not None and fix.snippet else []
    return [f"To do by hand{' as well' if fix and fix.patch else ''}: `{line.replace('`', chr(39))}`" for line in lines]


def _notes(report: Report, spec: RunSpec) -> list[str]:
    finding = names.primary_finding(report)
    against = [
        f"{names.words(item.name)}: {quantity(item.value, item.unit)}"
        for item in (finding.counter_evidence if finding else [])
        if item.value
    ]
    kinds = {word: _of_status(report, status) for word, status in _KINDS}
    gaps = list(dict.fromkeys(gap.reason for gap in report.not_measured))
    more = f" and {len(gaps) - _MOST_GAPS} more reasons" if len(gaps) > _MOST_GAPS else ""
    notes = [
        *_by_hand(report),
        _batch_sizes(report),
        f"Against it: {'; '.join(against)}." if against else "",
        " ".join(f"{word}: {', '.join(found)}." for word, found in kinds.items() if found),
        f"Not measured because: {'; '.join(gaps[:_MOST_GAPS])}{more}." if gaps else "",
        *limits(report),
        _step(next_step(report, spec)),
        _machine(report, spec),
    ]
    return [_line(note) for note in notes if note]


def _batch_sizes(report: Report) -> str:
    """Other batch sizes, which are no part of the table: they change training itself."""
    tried = [
        f"batch {row.trial.configuration.batch_size} {figures.ratio_with_interval(gain.ratio, gain.ci95)}"
        for row in trials.batch_sizes(report)
        if row.role != "baseline" and (gain := row.trial.versus_baseline)
    ]
    return f"Other batch sizes, which change training and are never recommended: {'; '.join(tried)}." if tried else ""


_KINDS = (
    ("Also confirmed", "confirmed"),
    ("Suspected", "suspected"),
    ("Not settled", "not_settled"),
    ("Ruled out", "ruled_out"),
)


def _of_status(report: Report, status: str) -> list[str]:
    return [one.cause for one in report.findings if one.status == status and one.cause != report.verdict.primary_cause]


def _step(step: tuple[str, str, bool] | None) -> str:
    if step is None:
        return ""
    words, what, is_command = step
    return f"{words} `{what}`" if is_command else f"{words} {what}."


def _machine(report: Report, spec: RunSpec) -> str:
    values = report.environment
    parts = [
        about.machine(report, spec),
        *(f"{name} {values[key]}" for name, key in (("Python", "python"), ("torch", "torch")) if values.get(key)),
    ]
    blocks, turns = len(report.blocks), about.rounds(report)
    run = f"{blocks} block{'s' * (blocks != 1)} in {turns} round{'s' * (turns != 1)} of `{about.command(spec)}`"
    return f"{', '.join(parts)}. pindiag {spec.pindiag_version}, schema {report.schema_version}; {run}."
