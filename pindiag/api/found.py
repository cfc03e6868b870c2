"""Runs on disk: what each found, newest first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pindiag.errors import NotARun
from pindiag.model import Base, Recommendation, Report, RunSpec
from pindiag.store import RunDirectory

RUNS = Path("pindiag-runs")
"""Where `pindiag run` writes without -o."""
_DEEPEST = 3
Firmness = Literal["verified", "measured", "provisional"]


class Found(Base, frozen=True, kw_only=True):
    """A run directory and what its report says; what a run without a report lacks is None, with the reason."""

    directory: str
    target: str
    """File name of the script, or the module's name."""
    started_utc: str
    """ISO 8601."""
    status: Literal["ok", "failed", "interrupted", "no_report"]
    headline: str | None
    primary_cause: str | None
    ratio: float | None
    """Throughput of the change that comes first over the script as written; None: no change is recommended."""
    ci95: tuple[float, float] | None
    firmness: Firmness | None
    reason: str | None = None


def runs(folder: Path = RUNS) -> list[Found]:
    """All runs below a folder, newest first; a folder that is a run itself counts.

    Raises:
        NotARun: there is none.
    """
    found = [one for place in _run_directories(folder) if (one := _found(place)) is not None]
    if not found:
        raise NotARun(
            f"There are no runs in {folder}.",
            "Make one: `pindiag run train.py --sweep`; or name the folder that holds them.",
        )
    return sorted(found, key=lambda one: (one.started_utc, one.directory), reverse=True)


def _run_directories(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        inside = len(Path(place).relative_to(folder).parts)
        if "run.json" in files:
            yield Path(place)
        if "run.json" in files or inside >= _DEEPEST:
            # What a script wrote and pindiag keeps is nobody's run.
            folders.clear()


def _found(place: Path) -> Found | None:
    """None where run.json is something else's."""
    directory = RunDirectory(place)
    try:
        spec = directory.read_spec()
    except NotARun:
        return None
    try:
        return _of_report(place, spec, directory.read_report())
    except NotARun as error:
        missing = f"no report was written; make it: pindiag report {place}"
        return _without_report(place, spec, error.cause if directory.report_json.exists() else missing)


def _of_report(place: Path, spec: RunSpec, report: Report) -> Found:
    from pindiag.report import about

    recommended = report.recommendation
    changed = recommended if about.leading(report) not in (None, report.baseline) else None
    fix = changed.fix if changed is not None else None
    gain = fix.effect if fix is not None and fix.effect is not None else changed and changed.versus_baseline
    return Found(
        directory=str(place),
        target=target_name(spec),
        started_utc=spec.started_utc,
        status=report.target.status,
        headline=report.verdict.headline,
        primary_cause=report.verdict.primary_cause,
        ratio=gain.ratio if gain else None,
        ci95=gain.ci95 if gain else None,
        firmness=_firmness(changed) if changed is not None else None,
        reason=None if gain else "no change is recommended",
    )


def _firmness(changed: Recommendation) -> Firmness:
    """Of the gain that is stated."""
    effect = changed.fix.effect if changed.tweak is not None and changed.fix is not None else None
    return changed.firmness if effect is None or effect.kind == "predicted" else effect.kind


def _without_report(place: Path, spec: RunSpec, reason: str) -> Found:
    return Found(
        directory=str(place),
        target=target_name(spec),
        started_utc=spec.started_utc,
        status="no_report",
        headline=None,
        primary_cause=None,
        ratio=None,
        ci95=None,
        firmness=None,
        reason=reason,
    )


def target_name(spec: RunSpec) -> str:
    """The script's file name, or the module's name."""
    return spec.target if spec.module else os.path.basename(spec.target)


def page(run_directory: Path | None = None) -> Path:
    """The report to look at: of a run directory, or of the newest run that has one.

    Raises:
        NotARun: there is no run, or it has no report.
    """
    if run_directory is None:
        pages = [Path(one.directory) / "report.html" for one in runs() if one.status != "no_report"]
        shown = next((page for page in pages if page.is_file()), None)
        if shown is None:
            raise NotARun(f"No run in {RUNS} has a report.", "Make it: `pindiag report RUN_DIR`.")
        return shown
    directory = RunDirectory.open(run_directory)
    if not directory.report_html.is_file():
        raise NotARun(f"{run_directory} has no report.html.", f"Make it: `pindiag report {run_directory}`.")
    return directory.report_html
