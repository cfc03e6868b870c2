"""`pindiag list`: the runs on disk and what they found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pindiag.api.found import Found
    from pindiag.report.doctor import Section


@click.command("list", short_help="List the runs, newest first.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array, newest first, and nothing else.")
def command(folder: Path | None, *, as_json: bool) -> None:
    """List the runs below DIR (default: pindiag-runs), newest first: target, when, gain, verdict."""
    import msgspec

    from pindiag.api import found
    from pindiag.cli import console

    runs = found.runs(folder or found.RUNS)
    if as_json:
        console.payload(msgspec.json.format(msgspec.json.encode(runs)).decode())
    else:
        console.sections([_section(run) for run in runs])


def _section(run: Found) -> Section:
    """A run in three lines: paths and verdicts are too long for a table's columns on a narrow terminal."""
    from pindiag import figures
    from pindiag.report.doctor import Section

    when = run.started_utc[:16].replace("T", " ")
    gain = "no gain" if run.ratio is None else figures.ratio_with_interval(run.ratio, run.ci95)
    title = f"{when} UTC  {run.target}  {gain if run.headline else 'no report'}"
    return Section(title, notes=[f"  {run.headline or run.reason}", f"  {run.directory}"])
