"""The footer: what the file holds, clause by clause, and what it does not."""

from __future__ import annotations

from pindiag.model import Drawing, Fix, Report, Scalar
from pindiag.report.redaction import REDACTION


def paths_shown(report: Report) -> bool:
    """Whether names and paths were left in."""
    state: Scalar = report.environment.get(REDACTION)
    return isinstance(state, str) and state.startswith("off")


def holds(report: Report, fix: Fix | None, drawing: Drawing) -> list[str]:
    """What is embedded."""
    held = []
    if report.blocks:
        held.append("measurements")
    if report.loader is not None or report.trials:
        held.append("the loop's settings")
    if report.environment:
        held.append("versions and hardware")
    if fix is not None and fix.patch:
        held.append("the changed lines of the script with their neighbours")
    if report.target.error:
        held.append("the script's traceback with its source lines")
    if report.target.files_changed:
        held.append("names of files that the script touched")
    if drawing.timeline:
        held.append("times of some steps from the profiler")
    return held or ["no measurement"]


def lacks(report: Report) -> list[str]:
    """What is not embedded."""
    private = [] if paths_shown(report) else ["user and host names", "home paths", "addresses"]
    return [*private, "environment variables", "command-line arguments", "data or weights"]
